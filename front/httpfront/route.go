package httpfront

import (
	"net/http"
	"strings"

	"github.com/ringlimit/ringlimit/limit"
)

// routeSource is a pair of headers, by canonical name.
type routeSource struct{ method, uri string }

// forwardedRoute is the route that the proxy in front names; empty when it
// names none. A client can add to its request the headers that the proxy does
// not set, so two pairs that differ are refused: else a client of nginx could
// choose its rule with X-Forwarded-Uri.
func (id *Identity) forwardedRoute(h http.Header) (string, error) {
	var route string
	for _, source := range id.routes {
		named, err := source.read(h)
		switch {
		case err != nil:
			return "", err
		case named == "" || named == route:
		case route != "":
			return "", &limit.InputError{
				Field:   source.uri,
				Problem: "contradicts another header that names the route; the proxy must clear the one that it does not set",
			}
		default:
			route = named
		}
	}
	return route, nil
}

// read returns the pair's route; a pair that lacks one half is absent.
func (s routeSource) read(h http.Header) (string, error) {
	method, err := single(h, s.method)
	if err != nil {
		return "", err
	}
	uri, err := single(h, s.uri)
	if err != nil || method == "" || uri == "" {
		return "", err
	}
	return routeOf(method, uri), nil
}

// routeOf drops the query, which may be long and names no rule. Whoever matches
// the route brings its path into one spelling: it stays encoded here, because
// decoding twice would let a client write one path as another.
func routeOf(method, uri string) string {
	path, _, _ := strings.Cut(uri, "?")
	return method + " " + path
}
