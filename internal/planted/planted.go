// Package planted lets a build have one known fault, so that those who judge the
// program can be judged. Which one is a constant that a build tag chooses; the
// compiler drops the branches of all others, and without a tag all of them.
//
// A fault is one or two lines at the place of the rule that it breaks:
//
//	if planted.Fault == planted.NoFence {
//
// It takes a tag such as planted_fence, and two tags do not compile. docs/chaos.md
// says which scenario convicts which.
package planted

// A Kind is a fault, or the lack of one.
type Kind string

// The faults. Each has a file of its name, and its tag is planted_ and that name.
const (
	None           Kind = ""
	NoMerge        Kind = "merge"   // what a new owner is sent is not merged
	NoFreeze       Kind = "freeze"  // who gives a partition decides on meanwhile
	Add            Kind = "add"     // what comes twice counts twice
	NoFence        Kind = "fence"   // a node that stood still goes on deciding
	ClosestStandby Kind = "standby" // copies lie with the next on the ring, not with the heir
	NoRepeat       Kind = "ack"     // nobody asks again for an acknowledgement that was lost
	AbsoluteTime   Kind = "time"    // a state travels as a moment of its sender's clock
	Evict          Kind = "evict"   // counters in use make room for new ones
)

// OtherRing is no fault but another program: its ring has other parameters, and
// no cluster may take it in.
const OtherRing Kind = "ring"
