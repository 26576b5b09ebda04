package adminfront

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"

	"github.com/ringlimit/ringlimit/front"
)

// metricsPath needs no token: a scraper often has none, and no label carries a key.
const metricsPath = "/metrics"

// guard decides who may read and who may write.
type guard struct {
	token   *[sha256.Size]byte // hash of the token; nil: there is none
	private bool               // reading needs the token too
	origin  *http.CrossOriginProtection
}

func newGuard(token []byte, private bool) *guard {
	g := &guard{private: private, origin: http.NewCrossOriginProtection()}
	if token != nil {
		sum := sha256.Sum256(token)
		g.token = &sum
	}
	return g
}

// read says why the request may not be answered at all.
func (g *guard) read(r *http.Request) error {
	if !g.private || r.URL.Path == metricsPath {
		return nil
	}
	return g.bearer(r)
}

// write says why the request may not change anything, or who makes it.
//
// Where no token is needed, whoever reaches this door is believed, and a browser
// on this machine reaches it for any page that it shows. So no page may write: not
// one of another site, and not one whose own name was made to lead here (DNS
// rebinding), which a Host that is neither an address nor localhost gives away.
func (g *guard) write(r *http.Request) (Author, error) {
	if g.origin.Check(r) != nil {
		return Author{}, front.NewProblem(http.StatusForbidden, "Origin", "Origin: pages of other sites may not change rules")
	}
	if g.token == nil && !g.private {
		if !literal(r.Host) {
			return Author{}, front.NewProblem(http.StatusForbidden, "Host", "Host: must be localhost or an IP address for a change of rules without a token")
		}
		return Author{Address: r.RemoteAddr}, nil
	}
	return Author{Address: r.RemoteAddr, Token: true}, g.bearer(r)
}

// bearer asks for the token. Hashes are compared, so that the time it takes tells
// neither the token nor its length.
func (g *guard) bearer(r *http.Request) error {
	lines := r.Header["Authorization"]
	if len(lines) == 0 {
		return unauthorized("")
	}
	scheme, token, _ := strings.Cut(lines[0], " ")
	sum := sha256.Sum256([]byte(strings.TrimLeft(token, " ")))
	if len(lines) > 1 || !strings.EqualFold(scheme, "Bearer") || g.token == nil || subtle.ConstantTimeCompare(sum[:], g.token[:]) != 1 {
		return unauthorized(`, error="invalid_token"`)
	}
	return nil
}

func unauthorized(parameters string) error {
	return &Refusal{
		Problem:      front.NewProblem(http.StatusUnauthorized, "Authorization", "Authorization: must be Bearer and the token of this node's --admin-token-file"),
		authenticate: `Bearer realm="ringlimit admin"` + parameters,
	}
}

// literal says whether a Host names this machine without a name server's help.
func literal(hostPort string) bool {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = strings.Trim(hostPort, "[]")
	}
	return strings.EqualFold(host, "localhost") || net.ParseIP(host) != nil
}
