package gossip

import (
	"time"

	"github.com/hashicorp/memberlist"
)

// Our own timing, beside memberlist's.
const (
	// quiet is how long no event must come before a burst counts as over, and
	// burst the longest that one is waited out. A ring costs milliseconds to
	// build: a joiner that learns of 20 members should cause one, not 20. Longer
	// is fewer rings and later ones.
	quiet = 20 * time.Millisecond
	burst = 200 * time.Millisecond

	// rejoinEvery to twice that lies between two attempts to reach seeds and
	// lost members. memberlist forgets the dead after gossipToTheDead, so that
	// a partition longer than that heals by this alone. Shorter heals sooner
	// and dials the really dead more often.
	rejoinEvery = 5 * time.Second

	// rememberLost is how long a member that vanished without a goodbye is
	// dialled, and maxLost how many are remembered.
	rememberLost = 24 * time.Hour
	maxLost      = 512

	// dialsAtOnce bounds a round of attempts; one that succeeds brings the rest.
	dialsAtOnce = 8

	// retryJoin lies between the rounds of a Join.
	retryJoin = 500 * time.Millisecond

	// lookupTimeout bounds one DNS look-up.
	lookupTimeout = 2 * time.Second

	// spreadTimeout is how long Announce and Leave wait for gossip to take
	// their message. It is sent within three gossip intervals or so.
	spreadTimeout = time.Second

	// repeatAfter lies between an announcement and its repetition: by then the first
	// has gone out, so that they are not lost together.
	repeatAfter = 300 * time.Millisecond

	// twinGrace is how long an earlier boot of our own id may linger: the death
	// of the process we replace is noticed within seconds.
	twinGrace = 15 * time.Second
)

// tune sets memberlist's knobs. It is the LAN preset with these changes, each
// with what it trades.
func tune(c *memberlist.Config) {
	// A member is probed every ProbeInterval, and suspected when neither it nor
	// three others on our behalf got an answer out of it. Shorter finds the
	// dead sooner, costs packets, and suspects the merely busy more often. The
	// fastest detection, about 2 s, must stay longer than the second after
	// which a node that lost its peers stops deciding.
	c.ProbeInterval = 500 * time.Millisecond
	c.ProbeTimeout = 200 * time.Millisecond
	c.IndirectChecks = 3

	// A suspect has SuspicionMult probe intervals (times log10 of the members,
	// if above one) to refute, when another member suspects it too; and
	// SuspicionMaxTimeoutMult times that when nobody does. The first bounds
	// detection from below. The second is for the node that is itself cut off
	// and suspects all others: longer spares it a false view of them, shorter
	// lets the last of three know sooner that it is alone.
	c.SuspicionMult = 3
	c.SuspicionMaxTimeoutMult = 4

	// A node that misses deadlines itself slows its probes down to this many
	// intervals, rather than accuse others.
	c.AwarenessMaxMultiplier = 8

	// News goes to three random members every GossipInterval, each item
	// RetransmitMult times log10 of the members. A shorter interval spreads it
	// sooner; an idle cluster sends nothing. With memberlist's own multiplier, 4,
	// one change in 200 missed a member of five until the next full exchange,
	// without any packet lost; with 6 none of 1,500 did. Announce and Leave wait
	// until an item is sent out, 0.15 to 0.4 s with 8.
	c.GossipInterval = 50 * time.Millisecond
	c.GossipNodes = 3
	c.RetransmitMult = 8

	// The full exchange with a random member, over TCP, repairs what packets
	// lost and brings a node that was paused up to date. Shorter repairs sooner
	// and sends the whole list more often.
	c.PushPullInterval = 10 * time.Second

	// The dead still get gossip for this long, so that one declared dead by
	// mistake learns of it and refutes. Longer also keeps their records.
	c.GossipToTheDeadTime = 30 * time.Second

	// Bounds a stream to another member from dial to end. Close waits for
	// streams we opened, so it is also the longest that Close takes.
	c.TCPTimeout = 2 * time.Second

	// The whole list of 100 members is 30 kB: not worth packing, and one
	// thing less between a packet and its content.
	c.EnableCompression = false
}
