package transfer

import (
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

// Message is what one core says to another. It may be lost, doubled, delayed
// and overtaken by another.
type Message interface{ message() }

// Views is the records that the sender knows, and what it has just seen for
// itself.
type Views struct {
	Records []Record
	Absent  []membership.NodeID // whose process has refused the sender's connection
}

// Acquire asks for partitions that the sender owns, all it wants of a node in
// one message.
type Acquire struct {
	Records []Record
	Absent  []membership.NodeID // whose process refuses the sender's connections
	Asks    []Ask
}

// Ask is about one partition. With Pull it asks for counters, without it only
// whether there are any: a holder decides on until its turn has come.
type Ask struct {
	Partition int
	Attempt   uint64 // of the asker; the answer repeats it
	Pull      bool
	Release   uint64       // the frozen copy that From belongs to; 0 for the first pull
	From      owner.Cursor // where to go on; see Store.Export
}

// Answers is the reply to Acquire.
type Answers struct {
	Records []Record
	Parts   []Part
}

// Part answers an Ask.
type Part struct {
	Partition int
	Attempt   uint64
	Status    Status
	Release   uint64       // with Held: which frozen copy this is, or 0 when it was not frozen yet
	From      owner.Cursor // the Ask's
	Chunk     Chunk        // with Pull
	Pulled    bool         // it answers a Pull
}

// Status is what the answering node has of a partition.
type Status uint8

const (
	Denied Status = iota // nothing
	Copied               // a copy that a holder has put here
	Held                 // what it decides with, or has frozen for the asker
	Busy                 // it will not give it to the asker as things stand: ask again
)

func (s Status) String() string { return [...]string{"denied", "copied", "held", "busy"}[s] }

// Ack says that the sender holds the partitions, with what was in these frozen
// copies; Nack that it does not and will not because of them.
type (
	Ack  struct{ Releases []Release }
	Nack struct{ Releases []Release }
)

// Release names a frozen copy: the run of the node that froze it, and a number.
type Release struct {
	Partition int
	Boot      membership.BootID
	Number    uint64
}

// Nudge says to the owner that the sender has partitions of it.
type Nudge struct {
	Records  []Record
	Releases []Release // Number 0: it decides; else it has frozen them and waits for an Ack
	Copies   []int     // partitions of which it has copies that another should have
}

func (*Views) message()   {}
func (*Acquire) message() {}
func (*Answers) message() {}
func (*Ack) message()     {}
func (*Nack) message()    {}
func (*Nudge) message()   {}
