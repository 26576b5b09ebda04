package owner

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"pgregory.net/rapid"
)

// groups draws a frame of groups. No group names a counter twice.
func (m *model) groups(t *rapid.T, call func() *Call) (calls []Call) {
	for range rapid.IntRange(1, 5).Draw(t, "groups") {
		named := map[string]bool{}
		first := len(calls)
		for range rapid.IntRange(1, 12).Draw(t, "size") {
			c := *call()
			if named[string(c.Counter)] {
				continue
			}
			named[string(c.Counter)] = true
			c.Mode, c.Joined = limit.Take, len(calls) > first
			c.Shadow = rapid.IntRange(0, 5).Draw(t, "shadow") == 0
			calls = append(calls, c)
		}
	}
	return calls
}

// judgeGroup compares the answers to a group with what they would be by the model,
// one after the other.
func (m *model) judgeGroup(t *rapid.T, now int64, calls []Call, results []Result) {
	if len(calls) == 1 {
		m.judge(t, now, &calls[0], results[0].Verdict, results[0].Err)
		return
	}
	looks, refused, lost, news := m.look(now, calls)
	for i := range calls {
		switch r := &results[i]; {
		case lost || r.Err != nil: // the model stays as it is
			full := !lost && !refused && news && r.Err == ErrFull
			if *r != (Result{Err: results[0].Err}) || !full && r.Err != ErrNotHolder || lost != (r.Err == ErrNotHolder) {
				t.Fatalf("%d of %d: %+v; lost %v, refused %v, new %v", i, len(calls), r, lost, refused, news)
			}
		case refused:
			if r.Taken || r.Verdict != looks[i] {
				t.Fatalf("%d of %d of a refused group: %+v, want %+v", i, len(calls), r, looks[i])
			}
		default:
			want, _ := m.decide(now, &calls[i])
			if r.Verdict != want || r.Taken != want.Allowed {
				t.Fatalf("%d of %d: %+v, want %+v", i, len(calls), r, want)
			}
		}
	}
}

// look is what each call would come to by itself. A partition of one may be lost,
// and a counter may be new: then there may be no room for it.
func (m *model) look(now int64, calls []Call) (looks []limit.Verdict, refused, lost, news bool) {
	for _, c := range calls {
		s, ok := m.state[string(c.Counter)]
		c.Mode = limit.Peek
		v, err := m.decide(now, &c)
		looks = append(looks, v)
		refused = refused || !v.Allowed && !c.Shadow
		lost = lost || err != nil
		news = news || v.Allowed && (!ok || s.rule.FreshAt(s.State) <= now)
	}
	return looks, refused, lost, news
}

// Case G47, envoyproxy#1060: 5/h used up and 100/h in one check.
func TestG47TheOtherLimitIsNotCharged(t *testing.T) {
	for _, a := range algorithms {
		tab := holding(Config{Partitions: 8})
		calls := []Call{
			*on(tab, "small", mustRule(t, per(5, time.Hour, a))),
			*on(tab, "large", mustRule(t, per(100, time.Hour, a))),
		}
		if a == limit.LeakyBucket {
			calls[0].Rule = mustRule(t, limit.Spec{Algorithm: a, Limit: 5, Window: time.Hour, Burst: 4})
			calls[1].Rule = mustRule(t, limit.Spec{Algorithm: a, Limit: 100, Window: time.Hour, Burst: 99})
		}
		calls[1].Joined = true
		results := make([]Result, 2)
		for i := range 20 {
			tab.DecideFrame(start, calls, results)
			small, large := results[0].Verdict, results[1].Verdict
			if want := i < 5; small.Allowed != want || !large.Allowed || results[1].Taken != want {
				t.Fatalf("%v, request %d: %+v", a, i+1, results)
			}
			if want := int64(max(95, 99-i)); large.Remaining != want || small.Remaining != int64(max(0, 4-i)) {
				t.Fatalf("%v, request %d: %d and %d left", a, i+1, small.Remaining, large.Remaining)
			}
		}
	}
}

// A group that names one counter twice is judged by what both take together.
func TestGroupThatNamesACounterTwice(t *testing.T) {
	for _, a := range algorithms {
		tab := holding(Config{Partitions: 8})
		rule := mustRule(t, per(5, time.Hour, a))
		if a == limit.LeakyBucket {
			rule = mustRule(t, limit.Spec{Algorithm: a, Limit: 5, Window: time.Hour, Burst: 4})
		}
		calls := []Call{*on(tab, "other", rule), *on(tab, "twice", rule), *on(tab, "twice", rule)}
		calls[1].Joined, calls[2].Joined = true, true
		results := make([]Result, 3)
		tab.DecideFrame(start, calls, results)
		tab.DecideFrame(start, calls, results)
		if v := results[2]; !v.Taken || v.Verdict.Remaining != 1 {
			t.Fatalf("%v: the second pair: %+v", a, v)
		}
		tab.DecideFrame(start, calls, results)
		if results[0].Taken || results[1].Taken || results[2].Taken || results[2].Verdict.Allowed {
			t.Errorf("%v: the third pair: %+v", a, results)
		}
		for i, want := range []int64{3, 1} {
			if left := results[i].Verdict.Remaining; left != want {
				t.Errorf("%v: counter %d: %d left, want %d", a, i, left, want)
			}
		}
	}
}

// No group is charged in part, and no counter above its limit, whoever else is at
// it. Groups of many orders and sizes never wait for each other without end.
func TestGroupsOfManyGoroutines(t *testing.T) {
	for _, a := range algorithms {
		t.Run(a.String(), func(t *testing.T) { stressGroups(t, a) })
	}
}

func stressGroups(t *testing.T, a limit.Algorithm) {
	const counters, most = 24, 300
	tab := holding(Config{Partitions: 16})
	spec := per(most, 100_000*time.Hour, a)
	if a == limit.LeakyBucket {
		spec = limit.Spec{Algorithm: a, Limit: 1, Window: 10 * time.Hour, Burst: most - 1}
	}
	rule := mustRule(t, spec)
	var admitted [counters]atomic.Int64
	var wg sync.WaitGroup
	for w := range 8 {
		rng := rand.New(rand.NewPCG(uint64(w), 1))
		wg.Go(func() {
			for range 400 {
				var calls []Call
				var at []int
				for range 1 + rng.IntN(3) { // groups
					for i, k := range rng.Perm(counters)[:1+rng.IntN(12)] {
						c := *on(tab, key(k), rule)
						c.Joined = i > 0
						calls, at = append(calls, c), append(at, k)
					}
				}
				results := make([]Result, len(calls))
				tab.DecideFrame(start, calls, results)
				for i, end := 0, 0; i < len(calls); i = end {
					end = GroupEnd(calls, i)
					for k := i; k < end; k++ {
						if results[k].Taken == Refused(calls[i:end], results[i:end]) {
							t.Error("a group was charged in part")
						}
						if results[k].Taken {
							admitted[at[k]].Add(1)
						}
					}
				}
			}
		})
	}
	wg.Wait()
	full := 0
	for k := range counters {
		c := on(tab, key(k), rule)
		c.Mode = limit.Peek
		v, _ := answer(tab, start, c)
		if n := admitted[k].Load(); n > most || v.Remaining != most-n {
			t.Errorf("counter %d: %d admitted of %d, %d left", k, n, most, v.Remaining)
		}
		if v.Remaining == 0 {
			full++
		}
	}
	if full == 0 {
		t.Error("no counter came to its limit: this has tested little")
	}
	check(t, tab)
}

// A group is refused whole by a node that holds a part of it.
func TestGroupOfWhichAPartIsElsewhere(t *testing.T) {
	tab := holding(Config{Partitions: 8})
	rule := mustRule(t, per(5, time.Hour, limit.FixedWindow))
	calls := []Call{*on(tab, key(1), rule), *on(tab, key(2), rule), *on(tab, key(3), rule)}
	calls[1].Joined, calls[2].Joined = true, true
	for _, lost := range []int{calls[2].Partition, 99} {
		calls := slices.Clone(calls)
		calls[2].Partition = lost
		if lost < 8 {
			tab.SetPhase(lost, Released)
		}
		results := make([]Result, 3)
		tab.DecideFrame(start, calls, results)
		for i := range results {
			if results[i] != (Result{Err: ErrNotHolder}) {
				t.Errorf("partition %d, call %d: %+v", lost, i, results[i])
			}
		}
	}
	if n := tab.Stats().Counters; n != 0 {
		t.Errorf("%d counters were made", n)
	}
}

// A group for which there is no room leaves nothing behind: neither a counter that
// had found room, nor a charge, nor another rule.
func TestGroupWithoutRoom(t *testing.T) {
	dropped := 0
	for memory := int64(6 << 10); memory < 8<<10; memory += 64 {
		tab := holding(Config{Partitions: 1, Memory: memory})
		small, large := mustRule(t, per(5, time.Hour, limit.SlidingWindowLog)), mustRule(t, per(50, time.Hour, limit.SlidingWindowLog))
		if _, err := answer(tab, start, on(tab, "old", small)); err != nil {
			t.Fatal(err)
		}
		for n := 0; ; n += 6 {
			if n > 600 {
				t.Fatalf("%d bytes are room for %d counters", memory, n)
			}
			calls := []Call{*on(tab, "old", large)}
			for i := range 6 {
				calls = append(calls, *on(tab, key(n+i), small))
				calls[i+1].Joined = true
			}
			before, counters := listed(tab), tab.Stats().Counters
			results := make([]Result, len(calls))
			if tab.DecideFrame(start, calls, results); results[0].Err == nil {
				continue
			}
			for i := range results {
				if results[i] != (Result{Err: ErrFull}) {
					t.Fatalf("call %d: %+v", i, results[i])
				}
			}
			if after := listed(tab); !maps.Equal(before, after) || tab.Stats().Counters != counters {
				t.Fatalf("before %v, after %v", before, after)
			}
			check(t, tab)
			if _, err := answer(tab, start, &calls[1]); err == nil {
				dropped++ // alone, it finds room
			}
			break
		}
	}
	if dropped == 0 {
		t.Error("no group had found room for a part of it: this has tested little")
	}
}

// Room for a new counter may come from another one of the group that equals a fresh
// one. Then there may be none for that.
func TestGroupDropsItsOwnForRoom(t *testing.T) {
	const later = start + int64(time.Minute)
	full := 0
	for memory := int64(6 << 10); memory < 8<<10; memory += 64 {
		tab := holding(Config{Partitions: 1, Memory: memory})
		long, short := mustRule(t, per(5, time.Hour, limit.FixedWindow)), mustRule(t, per(5, time.Second, limit.FixedWindow))
		calls := []Call{*on(tab, strings.Repeat("old", 200), short), *on(tab, strings.Repeat("new", 200), long)}
		calls[1].Joined = true
		if _, err := answer(tab, start, &calls[0]); err != nil {
			t.Fatal(err)
		}
		for n, room := 0, true; room; n++ {
			if n > 600 {
				t.Fatalf("%d bytes are room for %d counters", memory, n)
			}
			_, err := answer(tab, start, on(tab, key(n), long))
			room = err == nil
		}
		results, counters := make([]Result, 2), tab.Stats().Counters
		tab.DecideFrame(later, calls, results)
		switch taken := results[0].Taken; {
		case results[0].Err != results[1].Err || taken != results[1].Taken || taken == (results[0].Err == ErrFull):
			t.Fatalf("memory %d: %+v", memory, results)
		case !taken && tab.Stats().Counters == counters-1:
			full++
		}
		check(t, tab)
	}
	if full == 0 {
		t.Error("no group has dropped a counter of its own in vain: this has tested little")
	}
}

// listed is what the counters of partition 0 come to.
func listed(tab *Table) map[string]string {
	all := map[string]string{}
	tab.Each(0, func(name []byte, r *limit.Rule, s limit.State) bool {
		all[string(name)] = fmt.Sprint(r.ID(), s.A, stamps(s))
		return true
	})
	return all
}

// Frames of groups are cut between groups only.
func TestFramesAreCutBetweenGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		calls := make([]Call, rapid.IntRange(1, 60).Draw(t, "calls"))
		for i := 1; i < len(calls); i++ {
			calls[i].Joined = rapid.IntRange(0, 4).Draw(t, "joined") > 0
		}
		for len(calls) > 0 {
			n := together(calls)
			if n < 1 || n < len(calls) && calls[n].Joined || (n > run || calls[n-1].Joined) && n != GroupEnd(calls, 0) {
				t.Fatalf("%d of %+v", n, calls)
			}
			calls = calls[n:]
		}
	})
}
