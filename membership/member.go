// Package membership holds the cluster's nouns: who is a member, in which
// state, and the view of all members that a ring is computed from.
package membership

import "strconv"

// NodeID is the name an operator gives a node. It stays the same over restarts;
// a ring is computed from NodeIDs, so that a restarted node owns what it owned.
type NodeID string

// BootID tells one run of a node from the next. A later run has a larger one.
type BootID uint64

func (b BootID) String() string { return strconv.FormatUint(uint64(b), 16) }

// State is how far a node is in its life.
type State uint8

const (
	Joining  State = iota + 1 // knows of the cluster, owns nothing yet
	Serving                   // in the ring
	Draining                  // giving away what it owns
)

func (s State) String() string {
	switch s {
	case Joining:
		return "joining"
	case Serving:
		return "serving"
	case Draining:
		return "draining"
	}
	return "unknown"
}

// Member is what a node says of itself, and where it was heard.
type Member struct {
	ID    NodeID
	Boot  BootID
	State State
	Seq   uint64 // raised by the node whenever it says something new of its state
	Owner bool   // false: forwards checks and never owns a counter
	Peer  string // host:port of its node-to-node gRPC
	HTTP  string // host:port of its HTTP door; empty when it has none
	// Gossip is the host:port that others reach its gossip at. The node does not
	// tell it: it is where the gossip finds it.
	Gossip string
	// Ring is the id of the placement it computes its ring with. Nodes whose
	// placements differ would disagree on owners for ever and must not mix.
	Ring uint64
	// Rules tells which rules it has. Zero: none, or the node does not say.
	Rules RulesSummary
}

// RulesSummary tells the rules of two nodes apart.
type RulesSummary struct {
	Version uint64 // of the latest write; 0: rules that were never written
	Digest  uint64 // equal: the rules are, too; 0: there are none
}

// Owns says whether the member belongs into the ring.
func (m Member) Owns() bool { return m.State == Serving && m.Owner }
