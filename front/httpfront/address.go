package httpfront

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// client is the address that asks, and whether the connection comes from a
// trusted proxy. The zero Addr means unknown (a Unix socket).
func (id *Identity) client(r *http.Request) (addr netip.Addr, proxied bool) {
	peer, _ := parseHop(r.RemoteAddr)
	if !id.trusts(peer) {
		return peer, false
	}
	return id.throughProxies(peer, r.Header["X-Forwarded-For"]), true
}

// throughProxies walks X-Forwarded-For from the nearest hop on, as long as the
// addresses are those of trusted proxies. What stands left of the first other
// one was written by that client and is worth nothing. An entry that is no
// address ends the walk at the proxy that wrote it.
func (id *Identity) throughProxies(nearest netip.Addr, lines []string) netip.Addr {
	for _, line := range slices.Backward(lines) {
		for more := true; more; {
			var entry string
			line, entry, more = cutLast(line)
			addr, ok := parseHop(entry)
			if !ok {
				return nearest
			}
			if nearest = addr; !id.trusts(addr) {
				return addr
			}
		}
	}
	return nearest
}

func (id *Identity) trusts(addr netip.Addr) bool {
	return slices.ContainsFunc(id.trusted, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// cutLast splits the last entry off a comma-separated list.
func cutLast(list string) (rest, last string, more bool) {
	i := strings.LastIndexByte(list, ',')
	if i < 0 {
		return "", strings.TrimSpace(list), false
	}
	return list[:i], strings.TrimSpace(list[i+1:]), true
}

// parseHop reads an address with or without a port, with or without brackets. Either
// parser makes an error of what only the other one reads, and that costs more than to
// look: so the one for ports is asked only where there can be one.
func parseHop(text string) (netip.Addr, bool) {
	if strings.Count(text, ":") == 1 || strings.Contains(text, "]:") {
		if hop, err := netip.ParseAddrPort(text); err == nil {
			return hop.Addr().Unmap().WithZone(""), true
		}
	}
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	return addr.Unmap().WithZone(""), err == nil
}
