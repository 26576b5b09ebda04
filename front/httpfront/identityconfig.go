package httpfront

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// SettingError says which setting is wrong and what would be right.
type SettingError struct {
	Field   string // path from the configuration's root: "identity.key[1]"
	Problem string
}

func (e *SettingError) Error() string { return e.Field + ": " + e.Problem }

func defaults(c IdentityConfig) IdentityConfig {
	if len(c.Key) == 0 {
		c.Key = []string{"header:X-API-Key", "ip"}
	}
	if c.Missing == "" {
		c.Missing = "deny"
	}
	if c.IPv6Prefix == 0 {
		c.IPv6Prefix = 64
	}
	if len(c.Route) == 0 {
		c.Route = []string{"X-Forwarded-Method X-Forwarded-Uri", "X-Original-Method X-Original-URI"}
	}
	return c
}

// NewIdentity compiles the configuration, or returns a *SettingError.
func NewIdentity(c IdentityConfig) (*Identity, error) {
	c = defaults(c)
	id := &Identity{allowMissing: c.Missing == "allow", ipv6Bits: c.IPv6Prefix}
	var err error
	switch {
	case c.Missing != "allow" && c.Missing != "deny":
		return nil, wrong("missing", "%q is unknown; it must be deny or allow", c.Missing)
	case c.IPv6Prefix < 1 || c.IPv6Prefix > 128:
		return nil, wrong("ipv6_prefix", "is %d; it must be from 1 to 128", c.IPv6Prefix)
	}
	if id.keys, err = compile(c.Key, "key", parseKey); err != nil {
		return nil, err
	}
	if id.trusted, err = compile(c.TrustedProxies, "trusted_proxies", parseProxy); err != nil {
		return nil, err
	}
	if id.routes, err = compile(c.Route, "route", parseRoute); err != nil {
		return nil, err
	}
	if c.Tier != "" {
		if id.tier, err = headerName(c.Tier, "tier"); err != nil {
			return nil, err
		}
	}
	return id, nil
}

// compile parses a list; an entry that is there twice is a mistake.
func compile[T comparable](list []string, field string, parse func(text, field string) (T, error)) ([]T, error) {
	var out []T
	for i, text := range list {
		at := fmt.Sprintf("%s[%d]", field, i)
		v, err := parse(text, at)
		if err != nil {
			return nil, err
		}
		if slices.Contains(out, v) {
			return nil, wrong(at, "%q is in the list twice", text)
		}
		out = append(out, v)
	}
	return out, nil
}

func parseKey(text, field string) (keySource, error) {
	if text == "ip" {
		return addressKey, nil
	}
	name, ok := strings.CutPrefix(text, "header:")
	if !ok {
		return "", wrong(field, "%q is unknown; it must be header:NAME or ip", text)
	}
	name, err := headerName(name, field)
	return keySource(name), err
}

func parseProxy(text, field string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return netip.Prefix{}, wrong(field, "%q is an address; the network of this address alone is %s/%d", text, addr, addr.BitLen())
	}
	p, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return p, wrong(field, "%q is not a network; write it like 10.0.0.0/8 or 2001:db8::/32", text)
	case p != p.Masked():
		return p, wrong(field, "%q has bits set beyond its length; the network is %s", text, p.Masked())
	case p.Addr().Is4In6():
		return p, wrong(field, "%q is an IPv4 network in IPv6 clothing; write it like 10.0.0.0/8", text)
	}
	return p, nil
}

func parseRoute(text, field string) (routeSource, error) {
	names := strings.Fields(text)
	if len(names) != 2 {
		return routeSource{}, wrong(field, "%q must be two headers, that of the method and that of the URI", text)
	}
	method, err := headerName(names[0], field)
	if err != nil {
		return routeSource{}, err
	}
	uri, err := headerName(names[1], field)
	if err == nil && uri == method {
		err = wrong(field, "%q names one header for both the method and the URI", text)
	}
	return routeSource{method, uri}, err
}

// headerName checks a header's name and returns its canonical form.
func headerName(name, field string) (string, error) {
	for i := range len(name) {
		if !isTokenByte(name[i]) {
			return "", wrong(field, "%q is not a header's name; it may hold letters, digits and -", name)
		}
	}
	switch name = http.CanonicalHeaderKey(name); name {
	case "":
		return "", wrong(field, "names no header")
	case "Host", "Content-Length", "Transfer-Encoding", "Trailer":
		// net/http takes these out of the header: the key would never be present.
		return "", wrong(field, "%s belongs to the connection and cannot be used here", name)
	}
	return name, nil
}

// isTokenByte is RFC 9110's tchar.
func isTokenByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

func wrong(field, format string, args ...any) error {
	return &SettingError{"identity." + field, fmt.Sprintf(format, args...)}
}
