package front

import (
	"fmt"
	"net/netip"

	"github.com/ringlimit/ringlimit/limit"
)

// ParseIP reads an IP address that a caller wrote into a field. Empty text is
// the zero Addr: unknown. All spellings of an address are equal afterwards,
// an IPv4 address mapped into IPv6 included; a zone says nothing to us.
func ParseIP(field, text string) (netip.Addr, error) {
	if text == "" {
		return netip.Addr{}, nil
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, &limit.InputError{
			Field:   field,
			Problem: fmt.Sprintf("%.60q is not an IP address; write it like 192.0.2.1 or 2001:db8::1", text),
		}
	}
	return addr.Unmap().WithZone(""), nil
}
