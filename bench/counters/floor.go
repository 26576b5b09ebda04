package counters

import (
	"math/bits"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
)

// floor is the same kind of table with nothing but counters: one array of slots, half
// full, without locks, phases, names, growth or expiry. Its rule is the only one.
type floor struct {
	slots []slot
	rule  *limit.Rule
}

// slot is as long as one of the table's without its name: an id and a state.
type slot struct {
	id    owner.ID
	words [3]int64
	used  bool
}

func newFloor(n int, rule *limit.Rule) *floor {
	return &floor{slots: make([]slot, 1<<bits.Len(uint(2*n-1))), rule: rule}
}

func (f *floor) home(id owner.ID) int { return int(id.Lo) & (len(f.slots) - 1) }

// find is where a counter is, or has to be put.
func (f *floor) find(id owner.ID) *slot {
	for i := f.home(id); ; i = (i + 1) & (len(f.slots) - 1) {
		if s := &f.slots[i]; !s.used || s.id == id {
			return s
		}
	}
}

func (f *floor) decide(now int64, c *owner.Call, v *limit.Verdict) {
	s := f.find(c.ID)
	s.id, s.used = c.ID, true
	state := limit.State{A: s.words[0], B: s.words[1], C: s.words[2]}
	f.rule.Apply(&c.Charge, &state, v, now)
	s.words = [3]int64{state.A, state.B, state.C}
}

// decideFrame touches all slots first, so that their cache misses overlap, as the
// table does.
func (f *floor) decideFrame(now int64, calls []owner.Call, results []owner.Result) {
	f.touch(calls)
	for i := range calls {
		results[i] = owner.Result{}
		f.decide(now, &calls[i], &results[i].Verdict)
	}
}

// touch is not inlined: the compiler would notice that nobody wants the sum.
//
//go:noinline
func (f *floor) touch(calls []owner.Call) (sum int64) {
	for i := range calls {
		sum += f.slots[f.home(calls[i].ID)].words[0]
	}
	return sum
}
