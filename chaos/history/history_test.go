package history

import (
	"sync"
	"testing"
)

// Records of all writers are there, across chunks, in each writer's order.
func TestRecords(t *testing.T) {
	h := New()
	const writers, each = 4, chunk
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				h.Add(Record{Key: uint32(w), Call: int64(i), Source: Owner, Allowed: i%2 == 0})
			}
		})
	}
	all.Wait()
	h.Add(Record{Key: writers, Source: Fallback, Allowed: true}, Record{Key: writers, Fault: Broken})
	next := map[uint32]int64{}
	for r := range h.Records() {
		if r.Key < writers && r.Call != next[r.Key] {
			t.Fatalf("record %d of writer %d, want %d", r.Call, r.Key, next[r.Key])
		}
		next[r.Key]++
	}
	if len(next) != writers+1 || next[0] != each || next[writers] != 2 {
		t.Errorf("records by key: %v", next)
	}
	if got, want := h.Totals(), (Totals{writers*each + 2, writers * each / 2, 2}); got != want {
		t.Errorf("totals are %+v, want %+v", got, want)
	}
}

func TestEventsByTime(t *testing.T) {
	h := New()
	h.Mark(Event{At: 20, Kind: Exited})
	h.Mark(Event{At: 10, Kind: Killed})
	h.Mark(Event{Kind: Note})
	got := h.Events()
	if len(got) != 3 || got[0].Kind != Note && got[0].Kind != Killed {
		t.Errorf("events are %+v", got)
	}
	for i := 1; i < len(got); i++ {
		if got[i].At < got[i-1].At {
			t.Errorf("events are out of order: %+v", got)
		}
	}
}

func TestSources(t *testing.T) {
	for s := Owner; s <= Fallback; s++ {
		if got, ok := ParseSource(s.String()); !ok || got != s {
			t.Errorf("%v is read as %v, %v", s, got, ok)
		}
	}
	if _, ok := ParseSource("none"); ok {
		t.Error("none was read as a source")
	}
}
