package limit

import "math/bits"

// mulDiv is a*b/c and the remainder, with a product of up to 128 bits. The
// quotient must fit 64 bits.
func mulDiv(a, b, c uint64) (quo, rem uint64) {
	hi, lo := bits.Mul64(a, b)
	if hi == 0 { // far cheaper, and the usual case
		return lo / c, lo % c
	}
	return bits.Div64(hi, lo, c)
}
