// Package adminfront is the operator's door: who is in the cluster, who holds
// which partition, who counts a key and what is left of it, metrics and profiles,
// and the rules, which can be changed here and nowhere else.
package adminfront

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/limit"
)

// Cluster is what a node knows of the cluster it is in.
type Cluster interface {
	// Members lists all members, this one included, by ID.
	Members() []Member
	// Ring tells who owns and who holds each partition. An error means that there
	// is nothing to tell yet.
	Ring() (Ring, error)
	// Locate finds who counts the request and peeks at its counter. A
	// *[limit.InputError] means that the request is bad input.
	Locate(ctx context.Context, req limit.Request) (Location, error)
}

// Member is a node as /v1/members shows it.
type Member struct {
	ID     string `json:"id"`
	State  string `json:"state"`  // joining, serving or draining
	Addr   string `json:"addr"`   // host:port of its HTTP door; empty if it has none
	Peer   string `json:"peer"`   // host:port where other nodes ask it
	Gossip string `json:"gossip"` // host:port of its gossip: what a new node joins by
	Owner  bool   `json:"owner"`  // false: it forwards and never counts
	Boot   string `json:"boot"`   // differs for each run of the node
	// RulesVersion is that of the latest change of rules that it knows, and
	// RulesDigest equal at members with equal rules; empty if it has none.
	RulesVersion uint64 `json:"rules_version"`
	RulesDigest  string `json:"rules_digest"`
}

// Location is where a request is counted.
type Location struct {
	Partition int
	Owner     string        // node ID; empty when the ring has no owner
	Verdict   limit.Verdict // of a peek; without a Rule nothing counts the request
}

const keysPath = "/v1/keys/"

// Config is what the door needs. All but Token, Private and Logger is required.
type Config struct {
	Cluster Cluster
	Rules   Rules
	Metrics http.Handler // answers /metrics
	// Token is what a change of rules needs, as a bearer token. nil: whoever
	// reaches the door may make one, so that it belongs on a loopback address.
	Token []byte
	// Private: all but /metrics needs the token. It is for a door that other
	// machines reach: profiles and keys are not for everybody. false: who shows no
	// token is answered if the request's Host is an address of this door.
	Private bool
	Logger  *slog.Logger // nil: nowhere
}

type door struct {
	Config
	guard *guard
	mux   *http.ServeMux
}

// New makes the door.
func New(cfg Config) http.Handler {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	d := &door{Config: cfg, guard: newGuard(cfg.Token, cfg.Private), mux: http.NewServeMux()}
	d.mux.HandleFunc("/v1/members", get(d.members))
	d.mux.HandleFunc("/v1/ring", get(d.ring))
	d.mux.HandleFunc(limitsPath, get(d.limits))
	d.mux.Handle(metricsPath, cfg.Metrics)
	d.mux.HandleFunc("/debug/pprof/", get(listProfiles))
	d.mux.HandleFunc("/debug/pprof/{name}", get(profile))
	d.mux.HandleFunc("/debug/pprof/profile", get(cpuProfile))
	d.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		front.NewProblem(http.StatusNotFound, "", "there is nothing at this path").Write(w)
	})
	return d
}

// ServeHTTP takes keys, tiers and clients out of the path itself: a ServeMux would
// redirect a//b to a/b, which is another key.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e, isEntity := entityOf(r.URL.Path)
	key, isKey := strings.CutPrefix(r.URL.Path, keysPath)
	switch err := d.guard.read(r); {
	case err != nil && isEntity && !isRead(r):
		d.refuseWrite(w, r, e, err)
	case err != nil:
		refuse(w, err)
	case isEntity:
		d.entity(w, r, e)
	case isKey:
		get(func(w http.ResponseWriter, r *http.Request) { d.key(w, r, key) })(w, r)
	default:
		d.mux.ServeHTTP(w, r)
	}
}

// get refuses other methods.
func get(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !isRead(r) {
			notAllowed(w, "GET, HEAD")
			return
		}
		serve(w, r)
	}
}

func isRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

func (d *door) members(w http.ResponseWriter, _ *http.Request) {
	members := d.Cluster.Members()
	if members == nil {
		members = []Member{}
	}
	body, err := json.Marshal(map[string][]Member{"members": members})
	if err != nil {
		front.ProblemOf(err).Write(w)
		return
	}
	writeJSON(w, body)
}

func writeJSON(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Write(body)
}
