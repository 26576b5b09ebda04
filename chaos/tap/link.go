package tap

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"time"
)

// Link is what happens to frames on the way from one port to another. The zero
// value is a wire: they arrive at once.
type Link struct {
	Delay  time.Duration // one way, on average
	Jitter time.Duration // by how much the delay of one frame differs at most
}

// deviations is how many standard deviations make up the jitter.
const deviations = 2

// draw is the delay of one frame: normally distributed, as the sum of many small
// queues is, but drawn again when it is beyond the jitter (one of 22), so that a
// run can rely on a bound.
func (l Link) draw(r *rand.Rand) time.Duration {
	z := r.NormFloat64()
	for math.Abs(z) > deviations {
		z = r.NormFloat64()
	}
	return l.Delay + time.Duration(z/deviations*float64(l.Jitter))
}

// lanes is into how many lanes the TCP connections of a path are spread. Two
// that share one keep their order among each other too, which harms nobody.
const lanes = 64

// path is the way from one port to another.
//
// Frames of one TCP connection keep their order, all others may overtake each
// other. So it is in real networks: jitter comes from queues, which keep order,
// and where there are parallel ways, each connection is held to one of them. Were
// it not so here, TCP would take every frame that was overtaken by three others
// for lost, send it again and halve its speed: a lossy network, and not a slow
// one. Its reader sees no difference, for TCP holds back what came too early.
// Datagrams are mixed up thoroughly, because gossip must bear that.
type path struct {
	Link
	last [lanes]time.Time // when the newest frame of each lane arrives
}

// due is when a frame that sets out now arrives.
func (p *path) due(now time.Time, data []byte, r *rand.Rand) time.Time {
	due := now.Add(p.draw(r))
	lane, ordered := laneOf(data)
	if !ordered {
		return due
	}
	if p.last[lane].After(due) {
		due = p.last[lane]
	}
	p.last[lane] = due
	return due
}

// What is read of a frame: Ethernet II (IEEE 802.3, 3.2.6), IPv4 (RFC 791, 3.1)
// and the ports of TCP (RFC 9293, 3.1). Nodes have no other addresses.
const (
	headerBytes  = 14
	etherType    = 12
	typeIPv4     = 0x0800
	ipv4Bytes    = 20
	ipv4Protocol = 9
	protocolTCP  = 6
	portsBytes   = 4
)

// laneOf tells TCP connections of a path apart by their ports. Anything else has
// no lane.
func laneOf(data []byte) (lane int, ok bool) {
	if len(data) < headerBytes+ipv4Bytes || binary.BigEndian.Uint16(data[etherType:]) != typeIPv4 {
		return 0, false
	}
	packet := data[headerBytes:]
	words := int(packet[0] & 0x0f)
	if packet[ipv4Protocol] != protocolTCP || len(packet) < 4*words+portsBytes {
		return 0, false
	}
	const golden = 0x9e3779b1 // 2^32 over the golden ratio: spreads neighbours (Knuth, TAOCP 6.4)
	return int(binary.BigEndian.Uint32(packet[4*words:]) * golden >> 26), true
}
