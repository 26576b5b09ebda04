package gossip

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"

	"github.com/ringlimit/ringlimit/membership"
)

// aliveMessage is memberlist's packet for "this node is alive", made by hand:
// the test is a stranger that knows the wire format and no key.
func aliveMessage(t *testing.T, name string, meta []byte) []byte {
	t.Helper()
	const aliveMsg = 4
	b := []byte{aliveMsg}
	var body []byte
	err := codec.NewEncoderBytes(&body, &codec.MsgpackHandle{}).Encode(struct {
		Incarnation uint32
		Node        string
		Addr        []byte
		Port        uint16
		Meta        []byte
		Vsn         []uint8
	}{1, name, []byte{10, 0, 0, 9}, 7703, meta, []uint8{1, 5, 2, 0, 0, 0}})
	if err != nil {
		t.Fatal(err)
	}
	return append(b, body...)
}

// Whatever arrives at the gossip port, the node lives on and its members with
// it. Plaintext is the harder case: a key turns nearly all of it away at once.
func TestGarbageOnTheGossipPort(t *testing.T) {
	bubble(t, func(w *world) {
		nodes := w.cluster(3)
		r := rand.New(rand.NewPCG(1, 2))
		good := aliveMessage(t, "n3/1", []byte("meta"))
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
		if err := nodes[0].SetState(membership.Draining); err != nil {
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
