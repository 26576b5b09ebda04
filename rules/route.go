package rules

import (
	"net/url"
	"path"
	"strings"
)

// route is a request's route, read once per request.
//
// "METHOD /path" and "/path" are HTTP: the path is taken without its query and
// in a canonical spelling. Anything else is a name, matched as it is.
type route struct {
	method  string // empty when the route has none
	path    string // canonical path, or the whole name
	http    bool
	escaped bool // the path has percent-encodings: %25 and %2F only, see canonicalPath
}

func parseRoute(s string) route {
	method, target := "", s
	if i := strings.IndexByte(s, ' '); i > 0 && s[0] != '/' {
		method, target = s[:i], originForm(s[i+1:])
	}
	if target == "" || target[0] != '/' {
		return route{path: s}
	}
	if i := strings.IndexByte(target, '?'); i >= 0 {
		target = target[:i]
	}
	target = canonicalPath(target)
	return route{method: method, path: target, http: true, escaped: strings.IndexByte(target, '%') >= 0}
}

// originForm cuts "http://host" off the target: RFC 9112 lets a client write
// the absolute form to any server, and it names the same resource.
func originForm(target string) string {
	if target == "" || target[0] == '/' {
		return target
	}
	scheme, rest, ok := strings.Cut(target, "://")
	if !ok || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		return target
	}
	if i := strings.IndexAny(rest, "/?"); i < 0 {
		return "/"
	} else if rest[i] == '/' {
		return rest[i:]
	}
	return "/" // "http://host?query" has an empty path
}

// canonicalPath is the one spelling of all paths that net/http.ServeMux takes
// for the same: without //, /./ and /../, and percent-decoded segment by
// segment, but for "/" and "%" inside a segment. Otherwise a client could dodge
// a limit by writing the path in another way.
//
// A path that is canonical already, as nearly all are, is returned as it is,
// without allocation.
func canonicalPath(p string) string {
	if isCanonical(p) {
		return p
	}
	segments := strings.Split(cleanPath(escapedPath(p)), "/")
	for i, s := range segments {
		segments[i] = segmentEscaper.Replace(unescape(s))
	}
	return strings.Join(segments, "/")
}

var segmentEscaper = strings.NewReplacer("%", "%25", "/", "%2F")

// isCanonical reports whether p surely needs no change. It may say no to a
// path that turns out to need none.
func isCanonical(p string) bool {
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case c == '/' && i+1 < len(p) && (p[i+1] == '/' || p[i+1] == '.'):
			return false
		case !asIs[c]:
			return false
		}
	}
	return true
}

// asIs holds the bytes that stand for themselves in a path, whether or not
// another byte of the path makes net/url decode and encode it anew.
var asIs = func() (table [256]bool) {
	for _, c := range []byte("/abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~!$&'()*+,;=:@[]") {
		table[c] = true
	}
	return table
}()

// escapedPath is URL.EscapedPath of a request for p: p itself where it is a
// valid encoding, else p decoded and encoded anew, which makes a %2F a slash.
func escapedPath(p string) string {
	u := url.URL{Path: unescape(p), RawPath: p}
	return u.EscapedPath()
}

func unescape(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s
}

// cleanPath does what the function of this name in net/http does: path.Clean
// that keeps a slash at the end.
func cleanPath(p string) string {
	clean := path.Clean(p)
	if strings.HasSuffix(p, "/") && clean != "/" {
		clean += "/"
	}
	return clean
}
