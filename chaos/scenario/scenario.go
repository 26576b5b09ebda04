// Package scenario has the nouns of a chaos run (what is limited, what is done
// to the cluster, what is promised) and reads them from small YAML files.
package scenario

import (
	"fmt"
	"slices"
	"time"
)

// A Scenario is one experiment.
type Scenario struct {
	Name   string // of its file
	About  string // one sentence for the reader
	Nodes  int    // how many to begin with, unless the caller says otherwise
	Needs  int    // fewer make no sense
	Start  Start
	Net    Net
	Serve  []string // flags of every node, beside the harness's own
	Files  int      // how many file descriptors a node may have; 0: as many as we
	Memory int64    // how many bytes of memory a node gets, by a cgroup; 0: as many as we
	Client Client
	Counts []Class
	Steps  []Step
	Bounds Bounds
}

// Start says how the first nodes come up.
type Start string

// OneByOne starts one node alone and then all others, which join it. Together
// starts all at once, each with all as --join. BySteps leaves it to a step.
const (
	OneByOne Start = "one_by_one"
	Together Start = "together"
	BySteps  Start = "by_steps"
)

// Net says where the nodes live.
type Net string

// On Loopback the nodes share this machine's network. With Namespaces each has
// one of its own, which takes privileges, and only there links can be cut.
// Switched is the same with a switch of ours in between, which costs more, and
// only there links can be slow.
const (
	Loopback   Net = "loopback"
	Namespaces Net = "namespaces"
	Switched   Net = "switch"
)

// Client is how the load behaves.
type Client struct {
	Patience time.Duration // it gives up waiting for an answer after this
	Hot      int           // percent of the load that goes to the first key
}

// Class is a rule of the run and how many keys it limits. Times and limits are
// as in a rule file.
type Class struct {
	Name       string
	Algorithm  string
	Limit      int64
	Window     time.Duration
	Burst      int64 // as the rule says it; see Capacity
	OnFailure  string
	Durability string
	Keys       int
	Once       bool // for Flood: each key is asked for once, by nothing else
}

// Slack is U, what a crash of the owner may let through beyond the limit: what
// the rule allows to be admitted before the standby has a copy.
func (c *Class) Slack() int64 {
	if c.Durability == "sync" {
		return 0
	}
	return c.Limit / 100
}

// Step is one thing to do; exactly one field is set. Steps run one after the
// other, beside the load.
type Step struct {
	Line int // in the file

	Load    *Load
	Fill    *Fill
	Flood   *Fill // each key that is for once
	Wait    time.Duration
	Fresh   bool          // go on with new keys
	Settle  time.Duration // wait until all nodes see each other, at most so long
	Join    *Join
	Signal  *Signal
	Pause   *Pause
	Start   Target // those that are down
	Restart *Restart
	Resets  Resets
	Limit   *Limit
	Cut     *Cut
	Heal    bool
	Attack  *Attack
	Random  *Random
	Repeat  *Repeat
}

// Load is checks a second from here on; nothing ends it.
type Load struct{ Steady, Bursty int }

// Fill asks for every key until its owner refuses it.
type Fill struct{ Within time.Duration }

// Join adds new nodes.
type Join struct {
	Count int
	Ready bool          // wait until they are
	Clock time.Duration // ahead of everybody's monotonic clock by this
	Alien bool          // with another secret: it must find no way in
	Build string        // a build tag: another program than everybody's
	// Refused is what it must say as it ends by itself, none of the cluster;
	// empty: it is welcome.
	Refused string
}

// Signal ends processes. Wait is how long the harness waits for their exit; 0
// does not wait.
type Signal struct {
	Kill bool // SIGKILL; else SIGTERM
	Who  Target
	Wait time.Duration
}

// Pause stops a process and lets it go on.
type Pause struct {
	Who Target
	For time.Duration
}

// Restart ends and starts each of the nodes in turn, under its old name and
// addresses.
type Restart struct {
	Who    Target
	Kill   bool
	Down   time.Duration // how long it stays away
	Settle time.Duration // before the next; 0: do not wait
}

// Limit changes the limit of a rule at one node, which tells the others.
type Limit struct {
	Node  Target
	Class string
	To    int64
}

// Resets notes when every key's budget is back, or compares it with the note.
type Resets string

// The two uses of Resets.
const (
	NoteResets    Resets = "note"
	CompareResets Resets = "compare"
)

// Cut harms the network between two groups of nodes.
type Cut struct {
	From, To []int
	Both     bool // also from To to From
	Only     Traffic
	Percent  int  // of the packets that are lost
	Reject   bool // answer like a dead process instead of dropping

	// A Cut with a Delay loses nothing: each way, every packet takes so long, give
	// or take Jitter at most.
	Delay, Jitter time.Duration
}

// Traffic is a kind of packets; empty is all.
type Traffic string

// The kinds of traffic that can be cut alone.
const (
	UDP    Traffic = "udp"
	TCP    Traffic = "tcp"
	Gossip Traffic = "gossip" // both of the gossip port
	Peer   Traffic = "peer"   // checks and hand-overs between nodes
)

// Attack is what strangers do to a node's ports.
type Attack struct {
	Kind        AttackKind
	Who         Target
	Connections int // of SlowHeaders
	For         time.Duration
}

// AttackKind says how.
type AttackKind string

// Garbage sends nonsense to every port, TCP and UDP. SlowHeaders opens HTTP
// connections and never comes to the end of a request.
const (
	Garbage     AttackKind = "garbage"
	SlowHeaders AttackKind = "slow_headers"
)

// Random does one harm after another, as the seed has it.
type Random struct {
	For   time.Duration
	Pause time.Duration // between them
	Kinds []string      // of RandomKinds
}

// RandomKinds lists what Random can do: end a node by a signal and replace it,
// stop one for a while, add one and take another away, or cut one off.
func RandomKinds() []string { return []string{"kill", "terminate", "pause", "join", "cut"} }

// Repeat does its steps several times.
type Repeat struct {
	Times int
	Steps []Step
}

// Builds lists, each once, the build tags of the programs that join, beside the
// one under test.
func Builds(steps []Step) (tags []string) {
	for i := range steps {
		switch s := &steps[i]; {
		case s.Repeat != nil:
			tags = append(tags, Builds(s.Repeat.Steps)...)
		case s.Join != nil && s.Join.Build != "":
			tags = append(tags, s.Join.Build)
		}
	}
	slices.Sort(tags)
	return slices.Compact(tags)
}

// Count is how many steps there are, repetitions included.
func Count(steps []Step) (n int) {
	for i := range steps {
		if r := steps[i].Repeat; r != nil {
			n += r.Times * Count(r.Steps)
		} else {
			n++
		}
	}
	return n
}

// Target chooses nodes.
type Target string

// What a target can be, besides a node's number.
const (
	Any     Target = "any" // one that runs, by the seed
	All     Target = "all" // all that run
	AllButA Target = "all_but_one"
	OwnerOf Target = "owner"   // of the first key
	Standby Target = "standby" // of the first key
	Pair    Target = "owner_and_standby"
	Newest  Target = "newest" // the last that joined
	Down    Target = "down"   // all that do not run
)

// Bounds is what the run must keep. A nil or zero bound is not judged, except
// that Extra and Fallback always are.
type Bounds struct {
	Extra      Share         // admissions by owners beyond A, for one key, of its limit
	Slack      int           // … plus the rule's U so many times: crashes
	Unanswered Share         // checks without an owner's verdict, of all
	Homeless   Share         // checks that found no node ready, of all
	Dark       time.Duration // after a SIGKILL, for the dead node's keys
	Exit       time.Duration // from SIGTERM to exit code 0
	Resets     time.Duration // by which a reset may move
	Ready      time.Duration // from a node's start to its readiness
	Thawed     bool          // what a paused process found on waking is not charged
	Growth     Share         // of memory, goroutines and files from the second to the last quarter of the run; a percentage, or 0: not judged
}

// Share is a number, a percentage, or no bound.
type Share struct {
	Unbounded bool
	ByEvents  bool // of Extra: what the events in the life of each key excuse
	Percent   float64
	Count     int64
}

// Of is the bound in units of whole.
func (s Share) Of(whole int64) int64 {
	return s.Count + int64(s.Percent*float64(whole)/100)
}

func (s Share) String() string {
	switch {
	case s.Unbounded:
		return "any"
	case s.ByEvents:
		return "by_events"
	case s.Percent != 0:
		return fmt.Sprintf("%g%%", s.Percent)
	}
	return fmt.Sprint(s.Count)
}
