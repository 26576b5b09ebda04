package httpfront

import (
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Whichever parser is asked first, an address is read if either reads it.
func TestHopIsReadByEitherParser(t *testing.T) {
	part := rapid.SampledFrom([]string{"192.0.2.1", "::1", "2001:db8::7", "::ffff:192.0.2.1", "fe80::1%eth0", "[", "]", ":", "80", "%", "]:80", ":443", "x", " ", ""})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(part, 0, 5).Draw(t, "text"), "")
		want, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
		if err != nil {
			var hop netip.AddrPort
			hop, err = netip.ParseAddrPort(text)
			want = hop.Addr()
		}
		got, ok := parseHop(text)
		if ok != (err == nil) || ok && got != want.Unmap().WithZone("") {
			t.Fatalf("%q: %v, %v; want %v, %v", text, got, ok, want, err)
		}
	})
}

// What the door itself allocates for a proxy's request: the route, the text of the
// headers, and the slice of their values.
func TestAuthorizeAllocations(t *testing.T) {
	if got := testing.AllocsPerRun(1000, authorizer(allowing(t))); got > 3 {
		t.Errorf("%v allocations, want at most 3", got)
	}
}
