package httpfront

import (
	"net/http"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/ringlimit/ringlimit/limit"
)

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
	return method + " " + cleanPath(pathOf(uri)), nil
}

// pathOf cuts a path out of a URI, relative or absolute, as it stands there.
func pathOf(uri string) string {
	if i := strings.IndexAny(uri, "?#"); i >= 0 {
		uri = uri[:i]
	}
	if _, rest, ok := strings.Cut(uri, "://"); ok && !strings.HasPrefix(uri, "/") {
		return rest[strings.IndexByte(rest+"/", '/'):]
	}
	return uri
}

// cleanPath is the path as a router sees it, so that no other spelling of it
// gets round a rule: decoded, and without "//", "/./" and "/../". A slash inside
// a segment stays encoded, as it separates nothing. Bytes that are not UTF-8
// are replaced: the request may be fine, and a route is text.
func cleanPath(escaped string) string {
	if isClean(escaped) {
		return escaped
	}
	kept := strings.NewReplacer("%2F", "%252F", "%2f", "%252F").Replace(escaped)
	decoded, err := url.PathUnescape(kept)
	if err != nil {
		decoded = escaped
	}
	clean := path.Clean("/" + decoded)
	if strings.HasSuffix(decoded, "/") && clean != "/" {
		clean += "/" // ServeMux tells /a from /a/
	}
	return strings.ToValidUTF8(clean, "\uFFFD")
}

// isClean knows most clean paths at a glance.
func isClean(p string) bool {
	return p == "*" || strings.HasPrefix(p, "/") && utf8.ValidString(p) &&
		!strings.Contains(p, "%") && !strings.Contains(p, "//") && !strings.Contains(p, "/.")
}
