package adminfront

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
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
//
// Where no token is needed, whoever reaches this door is believed, and a browser on
// this machine reaches it for any page that it shows. A page whose own name was made
// to lead here (DNS rebinding) could read all that is served. Its Host gives it away.
func (g *guard) read(r *http.Request) error {
	switch {
	case g.private && r.URL.Path == metricsPath, !g.private && local(r):
		return nil
	case g.private, g.token != nil && len(r.Header["Authorization"]) > 0:
		return g.bearer(r)
	}
	return front.NewProblem(http.StatusForbidden, "Host", "Host: must be localhost or this door's address, as in http://127.0.0.1:7704, where no token is shown; under another name give the node an --admin-token-file and send Authorization: Bearer and the token")
}

// write says why the request, which may read, may not change anything, or who makes
// it. No page of another site may, whatever its Host.
func (g *guard) write(r *http.Request) (Author, error) {
	if g.origin.Check(r) != nil {
		return Author{}, front.NewProblem(http.StatusForbidden, "Origin", "Origin: pages of other sites may not change rules")
	}
	if g.token == nil && !g.private {
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

// local says whether the request's Host names this machine without a name server's
// help: localhost, a loopback address, or the address that the connection came to.
// Without one, as HTTP/1.0 allows, no browser sent it.
func local(r *http.Request) bool {
	if r.Host == "" {
		return true
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(r.Host, "["), "]") // without a port
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && (ip.Unmap().IsLoopback() || ip.Unmap() == ours(r))
}

// ours is the address that the connection came to, without a zone: clients leave it
// out of the Host. The zero Addr: it is unknown.
func ours(r *http.Request) netip.Addr {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return at.AddrPort().Addr().Unmap().WithZone("")
}
