package httpfront

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/limit"
)

// gate decides about requests that carry no JSON: the common part of
// /v1/authorize and the middleware.
type gate struct{ Config }

// Middleware limits what next serves. It needs no Limits, no Explainer and no Ready.
//
// An admitted request gets the limit's headers and goes on with the
// ResponseWriter as it is, so that next can flush and hijack; one that a
// leaky_bucket rule admits waits for its turn first. A refused one is answered
// here.
func Middleware(cfg Config) func(next http.Handler) http.Handler {
	g := gate{cfg.withDefaults()}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			req, err := g.Identity.request(r, anyone, r.URL.EscapedPath())
			if g.admit(w, r, &req, err, 0) {
				next.ServeHTTP(w, r)
			}
		})
	}
}

// authorizePath is where proxies ask. Envoy's ext_authz appends the client's
// path to it.
const authorizePath = "/v1/authorize"

// authorize answers 200 or the refusal to the proxy in front. It waits out the
// delay of an admitted request, because that proxy cannot.
func (g *gate) authorize(w http.ResponseWriter, r *http.Request) {
	status, err := denyStatus(r)
	if err != nil {
		front.ProblemOf(err).Write(w)
		return
	}
	own := strings.TrimPrefix(r.URL.EscapedPath(), authorizePath)
	if own == "" {
		own = authorizePath
	}
	req, err := g.Identity.request(r, gateway, own)
	if g.admit(w, r, &req, err, status) {
		w.WriteHeader(http.StatusOK)
	}
}

// denyStatus is the status that the proxy wants for every refusal; 0 if it does
// not say. nginx understands 401 and 403 alone. Below authorizePath the query is
// the client's. Other parameters are too: Caddy passes the client's query on.
func denyStatus(r *http.Request) (int, error) {
	if r.URL.Path != authorizePath || !strings.Contains(r.URL.RawQuery, "deny_status") {
		return 0, nil
	}
	switch text := r.URL.Query().Get("deny_status"); text {
	case "":
		return 0, nil
	case "403", "429":
		return strconv.Atoi(text)
	default:
		return 0, &limit.InputError{Field: "deny_status", Problem: "must be 403 or 429"}
	}
}

// admit says whether the request may go on; if not, it has answered. status
// stands in for that of any refusal which the client brought about.
func (g *gate) admit(w http.ResponseWriter, r *http.Request, req *limit.Request, err error, status int) bool {
	if err == nil && req.Key == "" {
		if g.Identity.allowMissing {
			return true
		}
		// 429 and not 401: who the client is is for others to judge; here those
		// without a key have a budget of nothing.
		err = front.NewProblem(http.StatusTooManyRequests, "", g.Identity.missingKey())
	}
	var v limit.Verdict
	if err == nil {
		v, err = g.check(r.Context(), req)
	}
	if err == nil && v.Delay > 0 {
		err = await(w, r, &v)
	}
	switch {
	case err != nil:
		g.fail(w, err, status)
	case !v.Allowed:
		front.WriteDenial(w, &v, g.Now(), status, g.Rand())
	default:
		front.SetHeaders(w.Header(), &v, g.Now())
		return true
	}
	return false
}

// check takes an unknown tier for the default one: the client did not choose it
// and its request is no worse for it.
func (g *gate) check(ctx context.Context, req *limit.Request) (limit.Verdict, error) {
	v, err := g.Checker.Check(ctx, *req)
	if input, bad := errors.AsType[*limit.InputError](err); bad && req.Tier != "" && input.Field == "tier" {
		req.Tier = ""
		return g.Checker.Check(ctx, *req)
	}
	return v, err
}

// fail answers a request that was not decided.
func (g *gate) fail(w http.ResponseWriter, err error, status int) {
	p := g.problem(err)
	if status != 0 && p.Status < http.StatusInternalServerError {
		p.Status = status
	}
	p.Write(w)
}

// await lets the request's turn come; the verdict is then one of that moment.
func await(w http.ResponseWriter, r *http.Request, v *limit.Verdict) error {
	if err := extend(w, r, v.Delay); err != nil {
		return err
	}
	if err := wait(r.Context(), v.Delay); err != nil {
		return err
	}
	later(v, v.Delay)
	return nil
}

// later lets time pass for a verdict.
func later(v *limit.Verdict, d time.Duration) {
	v.ResetAfter = max(v.ResetAfter-d, 0)
	for i := range v.Limits() {
		later(&v.Limits()[i], d)
	}
}

// extend keeps our wait from using up the time that the server allows for an
// answer: past it the client would get an empty reply.
func extend(w http.ResponseWriter, r *http.Request, d time.Duration) error {
	server, ok := r.Context().Value(http.ServerContextKey).(*http.Server)
	if !ok || server.WriteTimeout <= 0 {
		return nil // it allows any
	}
	err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d + server.WriteTimeout))
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

// wait returns the context's error if that ends first.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
