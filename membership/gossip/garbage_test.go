package gossip

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/membership"
)

// aliveMessage is memberlist's packet for "this node is alive", packed by hand:
// the test is a stranger that knows the wire format, msgpack, and no key.
func aliveMessage(name string, meta []byte) []byte {
	const aliveMsg, mapOfSix, uint16Of = 4, 0x86, 0xcd
	b := []byte{aliveMsg, mapOfSix}
	raw := func(v string) { b = append(append(b, 0xda, byte(len(v)>>8), byte(len(v))), v...) }
	number := func(v uint16) { b = append(b, uint16Of, byte(v>>8), byte(v)) }
	raw("Incarnation")
	number(1)
	raw("Node")
	raw(name)
	raw("Addr")
	raw("\x0a\x00\x00\x09")
	raw("Port")
	number(7703)
	raw("Meta")
	raw(string(meta))
	raw("Vsn")
	raw("\x01\x05\x02\x00\x00\x00")
	return b
}

// Whatever arrives at the gossip port, the node lives on and its members with
// it. Plaintext is the harder case: a key turns nearly all of it away at once.
func TestGarbageOnTheGossipPort(t *testing.T) {
	bubble(t, func(w *world) {
		nodes := w.cluster(3)
		r := rand.New(rand.NewPCG(1, 2))
		good := aliveMessage("n3/1", []byte("meta"))
		for i := range 3000 {
			b := make([]byte, r.IntN(1500))
			for j := range b {
				b[j] = byte(r.Uint32())
			}
			if i%3 == 0 { // a good message with a few wrong bytes
				b = append([]byte(nil), good...)
				for range 1 + r.IntN(4) {
					b[r.IntN(len(b))] = byte(r.Uint32())
				}
			} else if len(b) > 0 {
				b[0] = byte(r.IntN(14)) // a message type that exists
			}
			w.net.Send("10.0.0.66:1", addr(1), b)
			if i%100 == 0 {
				time.Sleep(time.Millisecond)
				w.sendStream(b)
			}
		}
		time.Sleep(5 * time.Second)
		if err := nodes[0].Announce(membership.Draining, 0); err != nil {
			t.Fatal(err)
		}
		w.eventually(2*time.Second, "n1 lives on", func() bool {
			return all(nodes, func(n *node) bool {
				m, _ := n.latest().Find("n1")
				return m.State == membership.Draining && n.sees("n1", "n2", "n3")
			})
		})
		if lines := len(nodes[0].log.all()) / 100; lines > 2000 {
			t.Errorf("garbage filled the log with about %d lines", lines)
		}
	})
}

func (w *world) sendStream(b []byte) {
	c, err := w.net.Dial("10.0.0.66:1", addr(1), time.Second)
	if err != nil {
		w.t.Error(err)
		return
	}
	_, _ = c.Write(b)
	_ = c.Close()
}
