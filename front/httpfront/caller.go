package httpfront

import (
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/ringlimit/ringlimit/limit"
)

// caller is where a request with no JSON comes from.
type caller uint8

const (
	gateway caller = iota // a proxy that asks on behalf of its client
	anyone                // a client, or a proxy if its address says so
)

// request reads who is asking and for what. An empty Key means that none of the
// configured ones is present. own is the request's own path, still encoded. The error is a
// *limit.InputError with the header's name.
func (id *Identity) request(r *http.Request, from caller, own string) (limit.Request, error) {
	addr, proxied := id.client(r)
	req := limit.Request{IP: id.Network(addr)}
	var err error
	if req.Key, err = id.key(r.Header, &req); err != nil || req.Key == "" {
		return req, err
	}
	if from == gateway || proxied {
		if req.Route, err = id.forwardedRoute(r.Header); err != nil {
			return req, err
		}
		if id.tier != "" {
			req.Tier, err = single(r.Header, id.tier)
		}
	}
	if req.Route == "" {
		req.Route = routeOf(r.Method, own)
	}
	return req, err
}

func (id *Identity) key(h http.Header, req *limit.Request) (string, error) {
	for _, source := range id.keys {
		if source == addressKey {
			if req.IP.IsValid() {
				return addressPrefix + req.IP.String(), nil
			}
			continue
		}
		if key, err := headerKey(h, string(source)); key != "" || err != nil {
			return key, err
		}
	}
	return "", nil
}

// headerKey refuses here what the checker would refuse as "key": the client
// knows its header, not our fields.
func headerKey(h http.Header, name string) (string, error) {
	key, err := single(h, name)
	switch {
	case err != nil:
		return "", err
	case len(key) > limit.MaxKeyBytes:
		return "", &limit.InputError{Field: name, Problem: fmt.Sprintf("is %d bytes long; at most %d are allowed", len(key), limit.MaxKeyBytes)}
	case !utf8.ValidString(key):
		return "", &limit.InputError{Field: name, Problem: "is not valid UTF-8"}
	case strings.HasPrefix(key, addressPrefix):
		return "", &limit.InputError{Field: name, Problem: `must not begin with "ip:", which names addresses`}
	}
	return key, nil
}

// single is the value of a header that may be there once. With two, the limiter
// could count one key and the service behind it serve another.
func single(h http.Header, name string) (string, error) {
	switch lines := h[name]; len(lines) {
	case 0:
		return "", nil
	case 1:
		return strings.TrimSpace(lines[0]), nil
	default:
		return "", &limit.InputError{Field: name, Problem: fmt.Sprintf("is there %d times; once would be right", len(lines))}
	}
}
