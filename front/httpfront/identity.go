package httpfront

import (
	"net/netip"
	"strings"
)

// IdentityConfig says who is asking, where a request carries no JSON that says
// so: in /v1/authorize and in the middleware. The zero value is the default.
//
// Two parties are believed. Whoever calls /v1/authorize is the proxy in front:
// its route and tier headers count, so that proxy must set or clear them, and
// clients must not reach the door past it. The middleware faces clients: there
// the two count only from TrustedProxies. X-Forwarded-For counts only from
// TrustedProxies in both, so list the proxy that calls /v1/authorize if clients
// are told apart by address.
type IdentityConfig struct {
	// Key lists where the key is looked for: "header:NAME" or "ip". The first
	// that is present wins; an empty header is absent. Default: header:X-API-Key,
	// then ip.
	//
	// The value of a header is the key as it stands. An address is the key
	// "ip:192.0.2.1", and a header must not begin with "ip:": otherwise a client
	// could use up the budget of another's address.
	Key []string `yaml:"key"`
	// Missing is what happens when none is present: "deny" (default) or "allow".
	Missing string `yaml:"missing"`
	// TrustedProxies lists CIDRs. X-Forwarded-For is read right to left through
	// their addresses; the first other one is the client's. Default: none, so
	// that the address is that of the connection.
	TrustedProxies []string `yaml:"trusted_proxies"`
	// IPv6Prefix is how many bits of an IPv6 address tell clients apart, 1 to
	// 128. Default: 64, what a single subscriber commonly has.
	IPv6Prefix int `yaml:"ipv6_prefix"`
	// Tier names the header with the client's tier. An unknown tier is the
	// default tier. Default: none.
	Tier string `yaml:"tier"`
	// Route lists pairs "METHOD-HEADER URI-HEADER"; the first pair that is there
	// in full says what is called. Pairs that contradict each other are refused:
	// one of them is not the proxy's. Default: X-Forwarded-Method X-Forwarded-Uri,
	// then X-Original-Method X-Original-URI.
	Route []string `yaml:"route"`
}

// Identity is an IdentityConfig, checked and compiled. It is immutable.
type Identity struct {
	keys         []keySource
	allowMissing bool
	trusted      []netip.Prefix
	ipv6Bits     int
	tier         string // header's canonical name; empty: none
	routes       []routeSource
}

// keySource is a header's canonical name; the empty one is the client's address.
type keySource string

const addressKey keySource = ""

// addressPrefix begins every key that is an address.
const addressPrefix = "ip:"

// Network is the part of an address that tells clients apart: an IPv4 address
// whole, an IPv6 address to the configured prefix.
func (id *Identity) Network(addr netip.Addr) netip.Addr {
	if !addr.Is6() {
		return addr
	}
	prefix, err := addr.Prefix(id.ipv6Bits)
	if err != nil {
		return addr
	}
	return prefix.Addr()
}

// missingKey tells a refused client what it should have sent.
func (id *Identity) missingKey() string {
	var names []string
	for _, source := range id.keys {
		if source == addressKey {
			names = append(names, "a known client address")
		} else {
			names = append(names, "the header "+string(source))
		}
	}
	return "the request does not say who is asking; it needs " + strings.Join(names, " or ")
}
