package owner

import (
	"slices"
	"strings"
	"testing"

	"github.com/ringlimit/ringlimit/limit"
	"pgregory.net/rapid"
)

// Law: logs give back what was put, whichever blocks are freed and moved, and
// hold no chunk but what the blocks need and one spare of each class.
func TestLogsEqualMap(t *testing.T) {
	type held struct {
		b   block
		log []limit.Stamp
	}
	rapid.Check(t, func(t *rapid.T) {
		var l logs
		m := map[ID]*held{}
		next := uint64(0)
		draw := func(t *rapid.T) []limit.Stamp {
			log := make([]limit.Stamp, rapid.SampledFrom([]int{1, 2, 3, 4, 5, 7, 8, 100, 128, 129, 300}).Draw(t, "length"))
			for i := range log {
				next++
				log[i] = limit.Stamp{At: int64(next), Cost: 1}
			}
			return log
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				for range rapid.IntRange(1, 40).Draw(t, "n") {
					log := draw(t)
					next++
					id := ID{Lo: next}
					before, need := l.bytes(), l.need(len(log))
					m[id] = &held{l.put(id, log), log}
					if got := l.bytes() - before; got != need {
						t.Fatalf("put took %d bytes; need says %d", got, need)
					}
				}
			},
			"rewrite": func(t *rapid.T) {
				for _, h := range m {
					if log := draw(t); classOf(len(log)) == h.b.class() {
						h.b, h.log = l.rewrite(h.b, log), log
					}
					break
				}
			},
			"free": func(t *rapid.T) {
				n := rapid.IntRange(1, 40).Draw(t, "n")
				for id, h := range m {
					delete(m, id)
					before := l.bytes()
					moved, ok, released := l.free(h.b)
					if ok {
						m[moved].b = newBlock(h.b.index(), m[moved].b.length())
					}
					if got := before - l.bytes(); got != released {
						t.Fatalf("free gave back %d bytes and says %d", got, released)
					}
					if n--; n == 0 {
						break
					}
				}
			},
			"": func(t *rapid.T) {
				var useful int64
				for id, h := range m {
					if got := l.at(h.b); !slices.Equal(got, h.log) || cap(got) != len(got) {
						t.Fatalf("the log of %v is %v with capacity %d; want %v", id, got, cap(got), h.log)
					}
					useful += stampSize<<h.b.class() + ownerSize
				}
				var spare int64
				for k := range l.classes {
					spare += 2 * chunkBytes(k)
				}
				if l.bytes() > useful+spare || len(m) == 0 && l.bytes() != 0 {
					t.Fatalf("%d bytes are held for %d", l.bytes(), useful)
				}
			},
		})
	})
}

// A slot has 32 bits for where its name lies. Names beyond that are refused
// like any counter that does not fit, and do not wrap around.
func TestNamesBeyondThePointer(t *testing.T) {
	tab := holding(Config{Partitions: 1})
	tab.maxText = 1000
	rule := mustRule(t, per(5, 1e9, limit.FixedWindow))
	full := 0
	for i := range 20 {
		_, err := answer(tab, start, on(tab, key(i)+strings.Repeat("x", 100), rule))
		if err == ErrFull {
			full++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if full == 0 || tab.Stats().Counters != int64(20-full) || tab.partitions[0].segment(0).names.bytes() > 1000 {
		t.Fatalf("%d of 20 refused, %d counters, %d bytes of names", full, tab.Stats().Counters, tab.partitions[0].segment(0).names.bytes())
	}
	check(t, tab)
	// Once they equal fresh ones, their names make room.
	if _, err := answer(tab, start+1e9, on(tab, "new"+strings.Repeat("x", 100), rule)); err != nil {
		t.Fatal(err)
	}
	check(t, tab)
}
