// Package limit holds ringlimit's nouns and its five algorithms.
//
// Everything here is pure: an algorithm is a function of a rule, a state, a
// time and a cost. It reads no clock, takes no lock and does no I/O, and it
// imports nothing but the standard library, so that every other package can
// speak in its terms.
//
//	Request  what a caller asks: who, which route, how much
//	Rule     an algorithm and its parameters, checked and compiled
//	Charge   one rule applied to one counter: what the owner is asked to do
//	State    what a counter remembers
//	Verdict  the answer
//
// Times are Unix nanoseconds of the deciding node's [Clock]; durations are
// nanoseconds. Arithmetic is in integers and rationals: what [NewRule] accepts
// is computed exactly.
package limit
