package ringlimit

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"

	"github.com/ringlimit/ringlimit/limit"
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

// ErrNoRules is the answer to a change of rules at a node that could not get those
// of its cluster: the change would be taken for an earlier one than theirs.
var ErrNoRules = errors.New("ringlimit: the cluster's rules have not come yet; change them at another node")

// Rules is what this node enforces. It is immutable; a change makes another.
func (n *Node) Rules() *rules.Set {
	if s := n.stopgap.Load(); s != nil {
		return s
	}
	return n.store.Rules()
}

// RulesSummary tells which rules this node has: nodes with equal digests have the
// same.
func (n *Node) RulesSummary() membership.RulesSummary {
	return membership.RulesSummary(n.store.Summary())
}

// RulesETag is an entity tag of all that Rules has, quotes included.
func (n *Node) RulesETag() string {
	if s := n.stopgap.Load(); s != nil { // the summary is of the store
		sum := sha256.Sum256(s.LimitsJSON())
		return fmt.Sprintf(`"own-%x"`, sum[:8])
	}
	is := n.RulesSummary()
	return fmt.Sprintf(`"%d-%016x"`, is.Version, is.Digest)
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
	if err := n.writable(); err != nil {
		return nil, err
	}
	return n.store.Apply(set)
}

func (n *Node) writable() error {
	switch {
	case n.gone.Load():
		return ErrLeft
	case n.stopgap.Load() != nil:
		return ErrNoRules
	}
	return nil
}

func tierOf(name string) rules.EntityName {
	return rules.EntityName{Kind: rules.TierEntity, Name: name}
}

func clientOf(id string) rules.EntityName {
	return rules.EntityName{Kind: rules.ClientEntity, Name: id}
}

func (n *Node) entity(name rules.EntityName) (body []byte, etag string, ok bool) {
	if s := n.stopgap.Load(); s != nil { // what is enforced is what is shown
		if body, ok = s.Entity(name); !ok {
			return nil, "", false
		}
		return body, live.SeedOf(name, body).ETag(), true
	}
	e, ok := n.store.Get(name)
	if !ok {
		return nil, "", false
	}
	return e.Body, e.ETag(), true
}

func (n *Node) put(name rules.EntityName, body []byte, p Precondition) (Written, error) {
	if err := n.writable(); err != nil {
		return Written{}, err
	}
	was, is, err := n.store.Put(name, body, p)
	if err != nil {
		return Written{}, err
	}
	return Written{Was: was.Body, Is: is.Body, ETag: is.ETag()}, nil
}

func (n *Node) delete(name rules.EntityName, p Precondition) (Written, error) {
	if err := n.writable(); err != nil {
		return Written{}, err
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

// beginRules puts the cluster's rules in force, or the configured ones where there
// are none. Who cannot get what others have never makes its own those of the
// cluster: an old file must not win over what was written since. Without any rules
// it enforces the file by itself.
func (n *Node) beginRules(ctx context.Context) {
	caught := n.puller.catchUp(ctx)
	if ctx.Err() != nil {
		return
	}
	if caught || !n.store.Empty() { // to seed a store that has rules changes nothing
		n.seed()
		return
	}
	n.cfg.Logger.Error("no member gives its rules: this node enforces the configured ones alone, refuses to change rules, and tries on")
	n.stopgap.Store(n.cfg.Rules)
	close(n.behind)
}

// endStopgap waits, if need be, for the cluster's rules to come after all, or for
// there to be nobody who has any.
func (n *Node) endStopgap(ctx context.Context) {
	select {
	case <-n.behind:
	case <-ctx.Done():
		return
	}
	if n.puller.await(ctx, progress.even) {
		n.seed()
		n.stopgap.Store(nil)
		n.metrics.rulesChanged()
		n.cfg.Logger.Info("the cluster's rules are in force")
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
}

// followRules tells the others of changed rules. It runs until ctx ends; nobody
// else tells them, so that the latest is told last. What is done beforehand for new
// rules must not hold that up.
func (n *Node) followRules(ctx context.Context) {
	changed := make(chan struct{}, 1)
	var preparing sync.WaitGroup
	defer preparing.Wait()
	preparing.Go(func() { n.prepareRules(ctx, changed) })
	for {
		select {
		case <-n.store.Changed():
			n.metrics.rulesChanged()
			select {
			case changed <- struct{}{}:
			default: // it is to begin anyway
			}
			if err := n.gossip.AnnounceRules(n.RulesSummary()); err != nil {
				n.cfg.Logger.Debug("the others were not told of changed rules", "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// prepareRules has the table learn rules before another node asks by them, which
// spares it to send them.
func (n *Node) prepareRules(ctx context.Context, changed <-chan struct{}) {
	for {
		select {
		case <-changed:
			n.table.Learn(firstRules(n.Rules(), learnAhead)...)
		case <-ctx.Done():
			return
		}
	}
}

// learnAhead is how many rules are learnt ahead. A table forgets rules that no
// counter uses when it has many more.
const learnAhead = 10_000

func firstRules(set *rules.Set, most int) []*limit.Rule {
	var first []*limit.Rule
	for r := range set.Rules() {
		if len(first) == most {
			break
		}
		first = append(first, r)
	}
	return first
}
