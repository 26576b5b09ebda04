package ringlimit

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/limit"
)

// Limits that do not come back during a test, and that a crash does not forget.
const severalLost = `
tiers:
  default:
    - {name: few, algorithm: token_bucket, limit: 4, window: 87600h, durability: sync, on_failure: deny}
    - {name: many, algorithm: fixed_window, limit: 1000, window: 87600h, durability: sync, on_failure: deny}
`

// pairs makes requests with two limits, and remembers what became of them.
type pairs struct {
	mu         sync.Mutex
	admitted   map[string]int64
	refused    int
	unanswered int // of them, by on_failure
}

const pairedKeys = 60

// run asks for keys from the first one on while f runs.
func (p *pairs) run(t *testing.T, nodes []*Node, first int, f func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	for c := range 8 {
		wg.Go(func() {
			for i := c * 7; ; i++ {
				select {
				case <-done:
					return
				case <-time.After(5 * time.Millisecond):
				}
				p.request(t, nodes[i%len(nodes)], fmt.Sprintf("cust_%d", (first+i/3+c)%pairedKeys))
			}
		})
	}
	f()
	close(done)
	wg.Wait()
	time.Sleep(5 * time.Second) // the refunds arrive, and the survivors agree
}

func (p *pairs) request(t *testing.T, n *Node, key string) {
	v, err := n.Check(t.Context(), Request{Key: key})
	if err != nil {
		t.Error(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case v.Allowed:
		p.admitted[key]++
	case v.Source == limit.SourceFallback:
		p.unanswered++
	default:
		p.refused++
	}
}

// compare holds what is counted to what was admitted. Where nothing was lost both
// are the same.
func (p *pairs) compare(t *testing.T, n *Node, lossless bool) {
	t.Helper()
	if p.refused == 0 {
		t.Error("no request was refused: this has tested little")
	}
	for i := range pairedKeys {
		key := fmt.Sprintf("cust_%d", i)
		v := check(t, n, Request{Key: key, Peek: true})
		for _, l := range v.Limits() {
			used, admitted := l.Limit-l.Remaining, p.admitted[key]
			if l.Source == limit.SourceFallback || used < admitted || lossless && used != admitted {
				t.Errorf("%s of %s: %d are used, %d were admitted: %+v", l.Rule.Name, key, used, admitted, l)
			}
		}
	}
}

func newPairs() *pairs { return &pairs{admitted: map[string]int64{}} }

// While all owners live, a request that is refused leaves nothing charged. When
// partitions move, some of what was given back is charged again, as always with
// refunds; none of what was admitted is forgotten.
func TestPartitionsMoveInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, set, p := newMemory(), parseRules(t, severalLost), newPairs()
		nodes := cluster(t, m, 3, set)
		time.Sleep(time.Second)
		p.run(t, nodes, 0, func() { time.Sleep(300 * time.Millisecond) })
		p.compare(t, nodes[0], true)
		var joined *Node
		p.run(t, nodes[:2], 25, func() {
			time.Sleep(100 * time.Millisecond)
			joined = start(t, m.config(t, 3, set))
			time.Sleep(100 * time.Millisecond)
			if err := nodes[2].Leave(t.Context()); err != nil {
				t.Error(err)
			}
			time.Sleep(100 * time.Millisecond)
		})
		p.compare(t, joined, false)
		if p.unanswered > 0 {
			t.Errorf("%d requests had no owner's verdict", p.unanswered)
		}
		stop(t, nodes[0], nodes[1], joined)
	})
}

// When an owner dies in the middle of requests, some of what was to be given back is
// lost; none of what was admitted is forgotten.
func TestOwnerDiesInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p := newMemory(), newPairs()
		nodes := cluster(t, m, 3, parseRules(t, severalLost))
		time.Sleep(time.Second)
		p.run(t, nodes[:2], 0, func() {
			time.Sleep(100 * time.Millisecond)
			m.kill(2)
			time.Sleep(300 * time.Millisecond)
		})
		p.compare(t, nodes[0], false)
		nodes[2].close(t.Context())
		stop(t, nodes[:2]...)
	})
}
