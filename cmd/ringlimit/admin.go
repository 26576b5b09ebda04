package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ringlimit/ringlimit/front/adminfront"
	"github.com/ringlimit/ringlimit/front/httpfront"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
)

// newRegistry makes the registry of one node: several run in one process.
func newRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(
		collectors.NewBuildInfoCollector(),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return r
}

func (r *running) adminHandler() http.Handler {
	return adminfront.New(adminfront.Config{
		Cluster: admin{r.stand, r.identity},
		Rules:   r.editor,
		Metrics: promhttp.HandlerFor(r.registry, promhttp.HandlerOpts{Registry: r.registry}),
		Token:   r.token,
		Private: !loopback(r.settings.admin),
		Logger:  r.log,
	})
}

// admin shows a node, once there is one, to the admin door.
type admin struct {
	*standIn
	identity *httpfront.Identity
}

// Members is adminfront.Cluster's.
func (a admin) Members() []adminfront.Member {
	n := a.node.Load()
	if n == nil {
		return nil
	}
	var all []adminfront.Member
	for _, m := range n.Members() {
		all = append(all, shown(m))
	}
	return all
}

func shown(m membership.Member) adminfront.Member {
	var digest string
	if m.Rules.Digest != 0 {
		digest = fmt.Sprintf("%016x", m.Rules.Digest)
	}
	return adminfront.Member{
		ID:     string(m.ID),
		State:  m.State.String(),
		Addr:   m.HTTP,
		Peer:   m.Peer,
		Gossip: m.Gossip,
		Owner:  m.Owner,
		Boot:   m.Boot.String(),

		RulesVersion: m.Rules.Version,
		RulesDigest:  digest,
	}
}

// Ring is adminfront.Cluster's. Its parts are read one after the other, so that
// during a change they may differ by a step.
func (a admin) Ring() (adminfront.Ring, error) {
	n, err := a.get()
	if err != nil {
		return adminfront.Ring{}, err
	}
	r := adminfront.Ring{Node: n.Name(), Fingerprint: n.RingFingerprint()}
	for _, id := range membership.NewView(n.Members()).Owners() {
		r.Members = append(r.Members, string(id))
	}
	for _, p := range n.Partitions() {
		r.Partitions = append(r.Partitions, adminfront.Partition{
			Partition: p.Partition,
			Phase:     p.Phase,
			Owner:     string(p.Owner),
			Holder:    string(p.Holder),
			Standby:   string(p.Standby),
			Copied:    p.Copied,
			Seeded:    p.Seeded,
		})
	}
	return r, nil
}

// Locate is adminfront.Cluster's.
func (a admin) Locate(ctx context.Context, req limit.Request) (adminfront.Location, error) {
	n, err := a.get()
	if err != nil {
		return adminfront.Location{}, err
	}
	req.IP = a.identity.Network(req.IP) // as the HTTP door counts it
	at, err := n.Locate(ctx, req)
	return adminfront.Location{Partition: at.Partition, Owner: string(at.Owner), Verdict: at.Verdict}, err
}
