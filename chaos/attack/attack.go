// Package attack is what strangers do to the ports of a node.
package attack

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Port is where a node can be reached.
type Port struct {
	Network, Address string // "tcp" or "udp"; host:port
	Dial             func(ctx context.Context, network, address string) (net.Conn, error)
}

// How much garbage is sent to a port.
const (
	each       = 20 * time.Millisecond // one piece
	maxGarbage = 4 << 10               // bytes of a piece
	patience   = time.Second           // for whoever listens to hang up
)

// openings are how talk that a port understands begins; garbage follows.
var openings = [...]string{
	"",
	"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	"POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 4096\r\n\r\n{\"key\":",
	"GET /" + "%00%ff",
	"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", // a TLS hello
	"\x0a\x01",     // encrypted gossip
	"\x07\x04\x81", // gossip: a compound message
	"\x06",         // gossip: push and pull
}

// Garbage sends nonsense to a port until ctx ends.
func Garbage(ctx context.Context, p Port, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 3))
	tick := time.NewTicker(each)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			throw(ctx, p, piece(r))
		}
	}
}

func piece(r *rand.Rand) []byte {
	b := []byte(openings[r.IntN(len(openings))])
	for range r.IntN(maxGarbage) {
		b = append(b, byte(r.Uint32()))
	}
	return b
}

// throw sends a piece and reads what comes back, if anything. That the other side
// hangs up, or never listened, is as it should be.
func throw(ctx context.Context, p Port, garbage []byte) {
	conn, err := p.Dial(ctx, p.Network, p.Address)
	if err != nil {
		return
	}
	defer conn.Close()
	if p.Network == "udp" {
		garbage = garbage[:min(len(garbage), 1400)] // what fits a packet
	}
	_ = conn.SetDeadline(time.Now().Add(each)) // a conn that cannot wait fails at once
	if _, err := conn.Write(garbage); err == nil && p.Network != "udp" {
		_, _ = io.CopyN(io.Discard, conn, maxGarbage)
	}
}

// drip is how long a slow client takes for one more byte.
const drip = 500 * time.Millisecond

// SlowHeaders opens so many connections and sends headers that never end, until
// ctx ends. Those that the node hangs up on are opened again.
func SlowHeaders(ctx context.Context, p Port, connections int) {
	var open sync.WaitGroup
	defer open.Wait()
	for range connections {
		open.Go(func() {
			for ctx.Err() == nil {
				if !dribble(ctx, p) {
					rest(ctx, patience)
				}
			}
		})
	}
}

// dribble holds one connection until the node or ctx ends it. It says whether
// there was one.
func dribble(ctx context.Context, p Port) bool {
	conn, err := p.Dial(ctx, p.Network, p.Address)
	if err != nil {
		return false
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /v1/check HTTP/1.1\r\nX-Slow: "); err != nil {
		return true
	}
	for rest(ctx, drip) {
		if _, err := conn.Write([]byte("a")); err != nil {
			return true
		}
	}
	return true
}

// rest waits, and says whether ctx let it.
func rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
