// Package httpfront is the HTTP door: the JSON calls, /v1/authorize for the
// proxies that ask before they let a request through, and a middleware for Go
// servers.
package httpfront

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/limit"
)

// Limits tells which rules are in force, as JSON.
type Limits interface {
	LimitsJSON() []byte
	TierJSON(tier string) ([]byte, bool) // false: no such tier
}

// Explainer checks as a front.Checker does, and says by the same rules which there
// are for the request, and which of them apply, as JSON. What cannot be explained is
// not charged.
type Explainer interface {
	CheckExplained(ctx context.Context, req limit.Request) (v limit.Verdict, explanation []byte, err error)
}

// Config is what the door needs. Checker, Limits and Explainer are required.
type Config struct {
	Checker   front.Checker
	Limits    Limits
	Explainer Explainer
	Ready     func() error     // why the node must not be sent requests; nil: it always may
	Identity  *Identity        // nil: that of the zero IdentityConfig
	Now       func() time.Time // nil: time.Now
	Rand      func() float64   // in [0, 1), spreads Retry-After; nil: math/rand
	Logger    *slog.Logger     // what a client is not told; nil: nowhere
}

func (c Config) withDefaults() Config {
	if c.Ready == nil {
		c.Ready = func() error { return nil }
	}
	if c.Identity == nil {
		c.Identity, _ = NewIdentity(IdentityConfig{})
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// problem is the error as the client reads it. What it hides is logged.
func (c *Config) problem(err error) *front.Problem {
	p := front.ProblemOf(err)
	if p.Status == http.StatusInternalServerError {
		c.Logger.Error("check failed", "error", err)
	}
	return p
}

type server struct {
	gate
	routes  map[string]route
	scratch sync.Pool // of *exchange
	// contentType is that of every answer: a slice for each would be an allocation.
	// Its capacity is its length, so that whoever adds to a header copies it.
	contentType []string
}

type route struct {
	methods []string // none: any
	serve   http.HandlerFunc
}

// New makes the door. Every answer that is not a success is a problem+json body.
func New(cfg Config) http.Handler {
	s := &server{gate: gate{cfg.withDefaults()}, contentType: []string{"application/json"}}
	s.scratch.New = func() any { return newExchange() }
	post, get := []string{http.MethodPost}, []string{http.MethodGet, http.MethodHead}
	s.routes = map[string]route{
		"/v1/check":  {post, s.check},
		"/v1/refund": {post, s.refund},
		"/v1/checks": {post, s.checks},
		"/livez":     {get, s.livez},
		"/readyz":    {get, s.readyz},

		limitsPath:       {get, s.limits},
		limitsPath + "/": {get, s.tier},

		authorizePath:       {nil, s.authorize},
		authorizePath + "/": {nil, s.authorize},
	}
	return s
}

// ServeHTTP looks the path up as it is. A ServeMux would redirect the paths it
// deems unclean, and a proxy that asks /v1/authorize cannot follow.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch route, ok := s.find(r.URL.Path); {
	case !ok:
		front.NewProblem(http.StatusNotFound, "", "there is nothing at this path").Write(w)
	case !route.takes(r.Method):
		allow := strings.Join(route.methods, ", ")
		w.Header().Set("Allow", allow)
		front.NewProblem(http.StatusMethodNotAllowed, "", "this path takes "+allow).Write(w)
	default:
		route.serve(w, r)
	}
}

func (s *server) find(path string) (route, bool) {
	if route, ok := s.routes[path]; ok {
		return route, true
	}
	for _, prefix := range []string{authorizePath + "/", limitsPath + "/"} {
		if strings.HasPrefix(path, prefix) {
			return s.routes[prefix], true
		}
	}
	return route{}, false
}

func (r route) takes(method string) bool {
	return r.methods == nil || slices.Contains(r.methods, method)
}
