package ringlimit

import (
	"context"

	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/rules"
	"github.com/ringlimit/ringlimit/rules/live"
)

// Precondition guards a change of rules against lost updates; see
// [live.Precondition].
type Precondition = live.Precondition

// Why a change of rules was refused, besides a *[rules.Error] for a bad body. Then
// nothing has changed.
var (
	ErrPrecondition = live.ErrPrecondition // the rules are not those that the caller took them for
	ErrNotFound     = live.ErrNotFound     // there is nothing to delete
	ErrInUse        = live.ErrInUse        // clients are in the tier
	ErrFull         = live.ErrFull         // too many tiers and clients
)

// Rules is what this node enforces. It is immutable; a change makes another.
func (n *Node) Rules() *rules.Set { return n.store.Rules() }

// RulesSummary tells which rules this node has: nodes with equal digests have the
// same.
func (n *Node) RulesSummary() membership.RulesSummary {
	return membership.RulesSummary(n.store.Summary())
}

// Limits is a tier's rules as they were written, and their entity tag. It reports
// false for a tier that does not exist.
func (n *Node) Limits(tier string) (body []byte, etag string, ok bool) { return n.entity(tierOf(tier)) }

// Client is a client's own rules and tier as they were written, and their entity
// tag. It reports false for a client without an entry.
func (n *Node) Client(id string) (body []byte, etag string, ok bool) { return n.entity(clientOf(id)) }

// Written is one write of a tier or client.
type Written struct {
	Was, Is []byte // the bodies before and after it, in canonical JSON; nil: not there
	ETag    string // of Is; empty after a deletion
}

// PutLimits replaces a tier, or sets one rule of it; see [rules.ParseTierBody]. It
// is in force here at once, and at the other nodes as soon as gossip has told them,
// within a second as a rule. It outlives a restart of all nodes that have a data
// directory.
func (n *Node) PutLimits(tier string, body []byte, p Precondition) (Written, error) {
	return n.put(tierOf(tier), body, p)
}

// DeleteLimits deletes a tier that no client is in; see PutLimits.
func (n *Node) DeleteLimits(tier string, p Precondition) (Written, error) {
	return n.delete(tierOf(tier), p)
}

// PutClient replaces a client's tier and rules; see PutLimits.
func (n *Node) PutClient(id string, body []byte, p Precondition) (Written, error) {
	return n.put(clientOf(id), body, p)
}

// DeleteClient deletes a client's entry; see PutLimits.
func (n *Node) DeleteClient(id string, p Precondition) (Written, error) {
	return n.delete(clientOf(id), p)
}

// ApplyRules puts each tier and client of set that differs from what is in force,
// all of them or none; see PutLimits. What set lacks stays. It returns what has
// changed.
func (n *Node) ApplyRules(set *rules.Set) ([]rules.Change, error) {
	if n.gone.Load() {
		return nil, ErrLeft
	}
	return n.store.Apply(set)
}

func tierOf(name string) rules.EntityName {
	return rules.EntityName{Kind: rules.TierEntity, Name: name}
}

func clientOf(id string) rules.EntityName {
	return rules.EntityName{Kind: rules.ClientEntity, Name: id}
}

func (n *Node) entity(name rules.EntityName) (body []byte, etag string, ok bool) {
	e, ok := n.store.Get(name)
	if !ok {
		return nil, "", false
	}
	return e.Body, e.ETag(), true
}

func (n *Node) put(name rules.EntityName, body []byte, p Precondition) (Written, error) {
	if n.gone.Load() {
		return Written{}, ErrLeft
	}
	was, is, err := n.store.Put(name, body, p)
	if err != nil {
		return Written{}, err
	}
	return Written{Was: was.Body, Is: is.Body, ETag: is.ETag()}, nil
}

func (n *Node) delete(name rules.EntityName, p Precondition) (Written, error) {
	if n.gone.Load() {
		return Written{}, ErrLeft
	}
	was, _, err := n.store.Delete(name, p)
	return Written{Was: was.Body}, err
}

// restore reads the data directory.
func (n *Node) restore() error {
	if n.cfg.DataDir == "" {
		return nil
	}
	warnings, err := n.store.KeepIn(n.cfg.DataDir)
	n.warnOfRules(warnings)
	if err != nil {
		return &ConfigError{"data-dir", err}
	}
	return nil
}

func (n *Node) warnOfRules(warnings []string) {
	for _, w := range warnings {
		n.cfg.Logger.Warn("rules", "problem", w)
	}
}

// seed makes the configured rules those of a cluster that has none.
func (n *Node) seed() {
	seeded, err := n.store.Seed(n.cfg.Rules)
	if err != nil {
		n.cfg.Logger.Error("the rules are in force, but lost when this node restarts", "error", err)
	}
	if !seeded && n.store.Differs(n.cfg.Rules) {
		n.cfg.Logger.Warn("the configured rules differ from those that the cluster has, and were not applied; to apply a rule file send this node a SIGHUP, or use ringlimit rules put")
	}
	n.prepareRules()
}

// followRules tells the others of changed rules, first of all, for they wait. It
// runs until ctx ends; nobody else tells them, so that the latest is told last.
func (n *Node) followRules(ctx context.Context) {
	for {
		select {
		case <-n.store.Changed():
			if err := n.gossip.AnnounceRules(n.RulesSummary()); err != nil {
				n.cfg.Logger.Debug("the others were not told of changed rules", "error", err)
			}
			n.prepareRules()
		case <-ctx.Done():
			return
		}
	}
}

// prepareRules does beforehand what checks would have to do under new rules.
func (n *Node) prepareRules() {
	set, learnt := n.Rules(), 0
	n.metrics.prepare(set)
	for r := range set.Rules() {
		if learnt++; learnt > learnAhead {
			return
		}
		n.table.Learn(r)
	}
}

// learnAhead is how many rules are learnt before another node asks by them, which
// spares it to send them. Each that is new costs a copy of the list of all.
const learnAhead = 1000
