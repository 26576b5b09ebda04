package owner

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"pgregory.net/rapid"
)

// exported is the whole partition, in chunks of so many counters.
func exported(t fataler, tab *Table, p int, now int64, most int) (all []Entry) {
	t.Helper()
	for from, done := Cursor(0), false; !done; {
		var chunk []Entry
		chunk, from, done = tab.Export(p, now, from, most)
		if len(chunk) > most {
			t.Fatalf("%d entries in a chunk of %d", len(chunk), most)
		}
		all = append(all, chunk...)
	}
	return all
}

func imported(t fataler, tab *Table, p int, now int64, entries []Entry) {
	t.Helper()
	if err := tab.Import(p, now, entries); err != nil {
		t.Fatalf("import: %v", err)
	}
}

// use makes random calls on a table, some under another rule than before, and
// returns the time after them.
func use(t *rapid.T, tab *Table, now int64, rules [][]*limit.Rule, keys int) int64 {
	for range rapid.IntRange(0, 60).Draw(t, "calls") {
		now += rapid.Int64Range(0, int64(50*time.Millisecond)).Draw(t, "ns")
		i := rapid.IntRange(0, keys-1).Draw(t, "key")
		c := on(tab, key(i), rapid.SampledFrom(rules[i%len(rules)]).Draw(t, "rule"))
		c.Mode = rapid.SampledFrom([]limit.Mode{limit.Take, limit.Take, limit.Take, limit.Refund}).Draw(t, "mode")
		if _, err := answer(tab, now, with(c, c.Mode, rapid.Int64Range(1, 5).Draw(t, "cost"))); err != nil {
			t.Fatalf("%v", err)
		}
	}
	return now
}

// shipped is all that a partition says, in terms that do not depend on a clock.
func shipped(t fataler, tab *Table, p int, now int64) map[string]Entry {
	t.Helper()
	all := map[string]Entry{}
	for _, e := range exported(t, tab, p, now, 1000) {
		if _, twice := all[string(e.Name)]; twice {
			t.Fatalf("%q is exported twice", e.Name)
		}
		all[string(e.Name)] = Entry{Rule: e.Rule, State: e.State}
	}
	return all
}

func sameCounters(a, b map[string]Entry) bool {
	if len(a) != len(b) {
		return false
	}
	for name, x := range a {
		if y, ok := b[name]; !ok || x.Rule.ID() != y.Rule.ID() || !reflect.DeepEqual(x.State, y.State) {
			return false
		}
	}
	return true
}

// Law: a partition that moves to a table with another clock admits there, at
// any later time, at most what it would have admitted here. What the windows of
// the clocks have to do with it is the concern of package limit: here they agree.
func TestMovedPartitionIsNoLaxer(t *testing.T) {
	rules := rulesFor(t)
	rapid.Check(t, func(t *rapid.T) {
		const keys = 20
		here := holding(Config{Partitions: 1})
		now := use(t, here, start, rules, keys)
		here.Freeze(0)
		there := NewTable(Config{Partitions: 1, Memory: 1}) // the bound does not hold for what moves
		there.SetPhase(0, Acquiring)
		ahead := rapid.SampledFrom([]int64{0, int64(6 * time.Second), -int64(60 * time.Hour)}).Draw(t, "clock differs by")
		transit := rapid.Int64Range(0, int64(20*time.Millisecond)).Draw(t, "transit")
		entries := exported(t, here, 0, now, rapid.IntRange(1, 30).Draw(t, "chunk"))
		now += transit
		imported(t, there, 0, now+ahead, entries)
		here.Thaw(0)
		there.SetPhase(0, Holding)
		check(t, here)
		check(t, there)
		for range rapid.IntRange(1, 20).Draw(t, "checks") {
			now += rapid.Int64Range(0, int64(400*time.Millisecond)).Draw(t, "ns")
			for i := range keys {
				rule := rapid.SampledFrom(rules[i%len(rules)]).Draw(t, "rule")
				ours, _ := answer(here, now, with(on(here, key(i), rule), limit.Peek, 1))
				theirs, _ := answer(there, now+ahead, with(on(there, key(i), rule), limit.Peek, 1))
				if theirs.Remaining > ours.Remaining || theirs.Allowed && !ours.Allowed {
					t.Fatalf("%q: %+v here, %+v there", key(i), ours, theirs)
				}
				if transit == 0 && theirs != ours {
					t.Fatalf("%q: %+v here, %+v there, and nothing was on the way", key(i), ours, theirs)
				}
			}
		}
	})
}

// Law: imports from several holders, whole or in part, repeated and in any
// order, come to the same, and to no less than each of them.
func TestImportIsOrderFree(t *testing.T) {
	rules := rulesFor(t)
	rapid.Check(t, func(t *rapid.T) {
		now := start + int64(10*time.Second)
		var all []Entry
		for range rapid.IntRange(1, 3).Draw(t, "holders") {
			tab := holding(Config{Partitions: 1})
			end := use(t, tab, start, rules, 10)
			all = append(all, exported(t, tab, 0, end, 100)...)
		}
		one, two := NewTable(Config{Partitions: 1}), NewTable(Config{Partitions: 1})
		one.SetPhase(0, Acquiring)
		two.SetPhase(0, Holding)
		imported(t, one, 0, now, all)
		if len(all) > 0 {
			order := rapid.Permutation(all).Draw(t, "order")
			again := rapid.SliceOfN(rapid.SampledFrom(all), 0, 20).Draw(t, "again")
			for chunk := range slices.Chunk(append(order, again...), rapid.IntRange(1, 40).Draw(t, "chunk")) {
				imported(t, two, 0, now, chunk)
			}
		}
		got, want := shipped(t, two, 0, now), shipped(t, one, 0, now)
		if !sameCounters(got, want) {
			t.Fatalf("in another order %+v; want %+v", got, want)
		}
		one.SetPhase(0, Holding)
		for _, e := range all {
			alone := e.Rule.Peek(e.Rule.Receive(e.State, now), now, 1)
			if v, _ := answer(one, now, with(on(one, string(e.Name), e.Rule), limit.Peek, 1)); v.Remaining > alone.Remaining && want[string(e.Name)].Rule.ID() == e.Rule.ID() {
				t.Fatalf("%q: merged %+v, alone %+v", e.Name, v, alone)
			}
		}
		check(t, one)
		check(t, two)
	})
}

// Whoever is asked while a partition is frozen decides nothing; thawed, it goes
// on as if nothing had been.
func TestFreezeAndThaw(t *testing.T) {
	tab := holding(Config{Partitions: 2})
	rule := mustRule(t, per(5, time.Hour, limit.SlidingWindowLog))
	c := on(tab, "a", rule)
	decide(t, tab, start, c)
	if !tab.Freeze(c.Partition) || tab.Phase(c.Partition) != Released || tab.Freeze(c.Partition) {
		t.Fatal("the partition was held and now is not")
	}
	for _, mode := range []limit.Mode{limit.Take, limit.Peek, limit.Refund} {
		results := make([]Result, 1)
		tab.DecideFrame(start, []Call{*with(c, mode, 1)}, results)
		if _, err := answer(tab, start, c); err != ErrNotHolder || results[0].Err != ErrNotHolder {
			t.Errorf("mode %d: %v, in a frame %v", mode, err, results[0].Err)
		}
	}
	if err := tab.Import(c.Partition, start, nil); err != nil {
		t.Errorf("nothing at all is refused: %v", err)
	}
	if err := tab.Import(c.Partition, start, []Entry{{Name: []byte("b"), Rule: rule}}); err != ErrNotReceiving {
		t.Errorf("a frozen partition received: %v", err)
	}
	if !tab.Thaw(c.Partition) || tab.Thaw(c.Partition) {
		t.Fatal("the partition was frozen and now is not")
	}
	if v := decide(t, tab, start, with(c, limit.Take, 1)); v.Remaining != 3 {
		t.Errorf("thawed: %+v", v)
	}
	for _, ph := range []Phase{None, Acquiring, Released} {
		if tab.SetPhase(0, ph); tab.Freeze(0) {
			t.Errorf("phase %v was held", ph)
		}
	}
}

// A freeze in the midst of many callers: each unit that was admitted is in the
// copy, and none that was not.
func TestFreezeIsExact(t *testing.T) {
	const keys = 20
	for _, a := range algorithms {
		rule := mustRule(t, per(100_000, 1000*time.Hour, a))
		if a == limit.LeakyBucket {
			rule = mustRule(t, limit.Spec{Algorithm: a, Limit: 1, Window: time.Hour, Burst: 99_999, Police: true})
		}
		here, there := holding(Config{Partitions: 1}), NewTable(Config{Partitions: 1})
		there.SetPhase(0, Acquiring)
		var admitted [keys]atomic.Int64
		var clock, refused atomic.Int64
		clock.Store(start)
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() {
				for refused.Load() < 100 { // those that come too late
					i, now := rand.IntN(keys), clock.Add(1)
					switch v, err := answer(here, now, on(here, key(i), rule)); {
					case err != nil:
						refused.Add(1)
					case v.Allowed:
						admitted[i].Add(1)
					}
				}
			})
		}
		for clock.Load() < start+2000 {
			here.Sweep(clock.Load(), 1)
		}
		here.Freeze(0)
		imported(t, there, 0, clock.Load(), exported(t, here, 0, clock.Load(), 7))
		callers.Wait()
		there.SetPhase(0, Holding)
		for i := range keys {
			v := decide(t, there, clock.Load(), with(on(there, key(i), rule), limit.Peek, 1))
			if used := rule.Capacity() - v.Remaining; used != admitted[i].Load() || used == 0 {
				t.Errorf("%v: %d admitted, %d arrived", a, admitted[i].Load(), used)
			}
		}
		check(t, there)
	}
}

// A holder receives and copies out while it decides, as when two that both held
// a partition find each other: no unit that it admits meanwhile is lost.
func TestImportWhileHolding(t *testing.T) {
	const callers, asks, keys = 4, 300, 20
	for _, a := range algorithms {
		rule := mustRule(t, per(100_000, 1000*time.Hour, a))
		if a == limit.LeakyBucket {
			rule = mustRule(t, limit.Spec{Algorithm: a, Limit: 1, Window: time.Hour, Burst: 99_999, Police: true})
		}
		other, tab := holding(Config{Partitions: 1}), holding(Config{Partitions: 1})
		for i := range keys {
			decide(t, other, start, on(other, key(i), rule))
		}
		theirs := exported(t, other, 0, start, keys)
		var admitted [keys]atomic.Int64
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				for n := range asks {
					if v, err := answer(tab, start, on(tab, key(n%keys), rule)); err == nil && v.Allowed {
						admitted[n%keys].Add(1)
					}
				}
			})
		}
		for range 2 {
			wg.Go(func() {
				for range asks / 10 {
					imported(t, tab, 0, start, theirs)
					exported(t, tab, 0, start, 7)
				}
			})
		}
		wg.Wait()
		for i := range keys {
			v := decide(t, tab, start, with(on(tab, key(i), rule), limit.Peek, 1))
			used, ours := rule.Capacity()-v.Remaining, admitted[i].Load()
			if ours != callers*asks/keys || used != ours && used != ours+1 { // one more if theirs came first
				t.Errorf("%v: %d used, %d admitted", a, used, ours)
			}
		}
		check(t, tab)
	}
}

// A partition that is copied while it goes on: what is there all the while comes
// exactly once.
func TestExportWhileHolding(t *testing.T) {
	tab := holding(Config{Partitions: 1})
	rule, brief := mustRule(t, per(5, time.Hour, limit.FixedWindow)), mustRule(t, per(5, time.Millisecond, limit.FixedWindow))
	for i := range 300 {
		decide(t, tab, start, on(tab, key(i), rule))
	}
	seen, now := map[string]int{}, start
	for from, done := Cursor(0), false; !done; {
		var chunk []Entry
		chunk, from, done = tab.Export(0, now, from, 10)
		for _, e := range chunk {
			seen[string(e.Name)]++
		}
		for i := range 20 {
			decide(t, tab, now, on(tab, key(1000+int(now-start)+i), brief))
		}
		now += int64(2 * time.Millisecond)
		tab.Sweep(now, 1)
	}
	for i := range 300 {
		if seen[key(i)] != 1 {
			t.Fatalf("%q came %d times", key(i), seen[key(i)])
		}
	}
}

// What equals a fresh counter does not travel, and one that is asked for is
// copied alone.
func TestExportLeavesOut(t *testing.T) {
	tab := holding(Config{Partitions: 1})
	short, long := mustRule(t, per(5, time.Second, limit.SlidingWindowLog)), mustRule(t, per(5, time.Hour, limit.SlidingWindowLog))
	decide(t, tab, start, on(tab, "short", short))
	decide(t, tab, start, on(tab, "long", long))
	decide(t, tab, start, on(tab, "other", long))
	now := start + int64(time.Second)
	all := shipped(t, tab, 0, now)
	if _, there := all["short"]; len(all) != 2 || there {
		t.Errorf("exported %v; want what is used yet", all)
	}
	ids := []ID{on(tab, "short", short).ID, on(tab, "none", short).ID, on(tab, "long", long).ID}
	these := tab.ExportThese(0, now, ids)
	if len(these) != 1 || string(these[0].Name) != "long" || these[0].ID != ids[2] || these[0].Rule != long {
		t.Errorf("asked for three of which one is used: %+v", these)
	}
	if these := holding(Config{Partitions: 1}).ExportThese(0, now, ids); these != nil {
		t.Errorf("of an empty partition: %+v", these)
	}
}

// Long logs end a chunk early, so that nobody waits long for the lock.
func TestExportOfLongLogs(t *testing.T) {
	const stamps = exportStamps / 4
	tab := holding(Config{Partitions: 1})
	rule := mustRule(t, per(stamps, time.Hour, limit.SlidingWindowLog))
	var log limit.Shipped
	for age := range int64(stamps) {
		log.Log = append(log.Log, limit.Stamp{At: stamps - age, Cost: 1})
	}
	for i := range 10 {
		imported(t, tab, 0, start, []Entry{{on(tab, key(i), rule).ID, []byte(key(i)), rule, log}})
	}
	var sizes []int
	for from, done := Cursor(0), false; !done; {
		var chunk []Entry
		chunk, from, done = tab.Export(0, start, from, 100)
		sizes = append(sizes, len(chunk))
	}
	if !slices.Equal(sizes, []int{4, 4, 2}) {
		t.Errorf("ten logs of %d stamps came in chunks of %v", stamps, sizes)
	}
}

// Entries are copies: neither table's later doings show in them.
func TestEntriesAreCopies(t *testing.T) {
	here, there := holding(Config{Partitions: 1}), holding(Config{Partitions: 1})
	rule := mustRule(t, per(50, time.Hour, limit.SlidingWindowLog))
	for i := range 10 {
		decide(t, here, start, on(here, key(i), rule))
	}
	entries := exported(t, here, 0, start, 100)
	before := shipped(t, here, 0, start)
	imported(t, there, 0, start, entries)
	for i := range 10 {
		decide(t, here, start, on(here, key(i), rule))
		decide(t, there, start, with(on(there, key(i), rule), limit.Take, 3))
	}
	here.Sweep(start+int64(2*time.Hour), 1) // drops all
	for i := range 1000 {                   // where they were
		decide(t, here, start, on(here, key(2000+i), rule))
	}
	for _, e := range entries {
		if want := before[string(e.Name)]; e.ID != on(here, string(e.Name), rule).ID || !reflect.DeepEqual(e.State, want.State) {
			t.Errorf("%+v; want %+v", e, want)
		}
	}
	if len(before) != 10 {
		t.Errorf("%d entries of 10", len(before))
	}
}

// A full table takes over what others have counted, accounts for it, and still
// refuses what is new.
func TestImportBeyondTheBound(t *testing.T) {
	here, there := holding(Config{Partitions: 1}), NewTable(Config{Partitions: 1, Memory: 4 << 10})
	for i := range 500 {
		decide(t, here, start, on(here, key(i), mustRule(t, per(5, time.Hour, algorithms[i%5]))))
	}
	there.SetPhase(0, Acquiring)
	imported(t, there, 0, start, exported(t, here, 0, start, 64))
	if s := there.Stats(); s.Counters != 500 || s.Bytes <= 4<<10 {
		t.Fatalf("%+v; want all 500, beyond the bound", s)
	}
	check(t, there)
	there.SetPhase(0, Holding)
	rule := mustRule(t, per(5, time.Hour, limit.FixedWindow))
	was := there.Stats()
	for i := range 500 { // some fit into the room that there is
		answer(there, start, on(there, key(1000+i), rule))
	}
	if s := there.Stats(); s.Bytes > was.Bytes || s.Refused == 0 {
		t.Errorf("with new counters %+v; before %+v", s, was)
	}
	if v := decide(t, there, start, on(there, key(2), rule)); v.Remaining != 3 {
		t.Errorf("one that was taken over: %+v", v)
	}
	there.SetPhase(0, None)
	check(t, there)
}

// textOf is how many bytes of names a partition without garbage has.
func textOf(t *Table, p int) (sum int) {
	for s := range t.partitions[p].directory().all() {
		sum += len(s.names.text)
	}
	return sum
}

// What is prepared is enough, and costs little; what is not needed goes again.
func TestExpect(t *testing.T) {
	here, there := holding(Config{Partitions: 1}), NewTable(Config{Partitions: 1, Memory: 1})
	rule := mustRule(t, per(5, time.Hour, limit.FixedWindow))
	for i := range 3000 {
		decide(t, here, start, on(here, key(i), rule))
	}
	counters, names := here.Size(0)
	if counters != 3000 || names != textOf(here, 0) {
		t.Fatalf("%d counters, %d bytes of names", counters, names)
	}
	there.Expect(0, counters, names)
	if s := there.Stats(); s.Bytes != 0 {
		t.Fatalf("room for what cannot come: %+v", s)
	}
	there.SetPhase(0, Acquiring)
	there.Expect(0, counters, names)
	if s := there.Stats(); s.Bytes > 1<<10 {
		t.Errorf("%d bytes before anything has come", s.Bytes)
	}
	made := map[uint64]*segment{}
	for _, e := range exported(t, here, 0, start, 100) {
		imported(t, there, 0, start, []Entry{e})
		s := there.partitions[0].segment(e.ID.Lo)
		if first := made[s.low]; first != nil && first != s {
			t.Fatalf("the segment from %x on was made anew", s.low)
		}
		made[s.low] = s
	}
	if s := there.Stats(); s.Counters != 3000 || len(made) != 2 || s.Bytes > here.Stats().Bytes*5/4 {
		t.Errorf("%+v in %d segments; %d bytes where they came from", s, len(made), here.Stats().Bytes)
	}
	check(t, there)
	was := there.Stats()
	there.Expect(0, 1<<22, 1<<27)
	there.Expect(0, -1, -1)
	if s := there.Stats(); s != was {
		t.Errorf("a partition with counters is as it was, but for %+v; before %+v", s, was)
	}
}

// A peer that boasts costs little, and no longer than until the next sweep.
func TestExpectOfABoaster(t *testing.T) {
	tab := holding(Config{Partitions: 1})
	rule := mustRule(t, per(5, time.Hour, limit.FixedWindow))
	tab.Expect(0, 1<<62, 1<<62)
	if s := tab.Stats(); s.Bytes > 200<<10 {
		t.Errorf("%d bytes before anything has come", s.Bytes)
	}
	check(t, tab)
	decide(t, tab, start, on(tab, "a", rule))
	check(t, tab)
	tab.Sweep(start, 1)
	if s := tab.Stats(); s.Counters != 1 || s.Bytes > 20<<10 {
		t.Errorf("%+v for one counter, after a sweep", s)
	}
	tab.Sweep(start+int64(time.Hour), 1)
	if s := tab.Stats(); s.Bytes != 0 {
		t.Errorf("%d bytes for nothing", s.Bytes)
	}
	check(t, tab)
}

// An entry that cannot be used is refused by itself, and said so.
func TestImportRefusesEntries(t *testing.T) {
	tab := holding(Config{Partitions: 1})
	tab.maxText = 40
	rule := mustRule(t, per(5, time.Hour, limit.FixedWindow))
	used := limit.Shipped{A: 1, B: int64(time.Hour), C: 2}
	entry := func(name string) Entry {
		return Entry{ID: on(tab, name, rule).ID, Name: []byte(name), Rule: rule, State: used}
	}
	bad := []Entry{{Rule: rule, State: used}, entry("a"), {Name: []byte("b"), State: used}, entry("longer than the forty bytes that there are"), entry("c")}
	bad = append(bad, slices.Repeat(bad[1:2], importEntries)...)
	bad[importEntries+1] = bad[0] // in the second batch
	err := tab.Import(0, start, bad)
	if !errors.Is(err, errNoCounter) || !errors.Is(err, ErrFull) ||
		err.Error() != "entry 0: has no name or no rule\nentry 2: has no name or no rule\nentry 3: the memory for counters is used up\nentry 129: has no name or no rule" {
		t.Errorf("%v", err)
	}
	for _, name := range []string{"a", "c"} {
		if v := decide(t, tab, start, with(on(tab, name, rule), limit.Peek, 1)); v.Remaining != 3 {
			t.Errorf("%q beside them: %+v", name, v)
		}
	}
	check(t, tab)
	for _, ph := range []Phase{None, Released} {
		tab.SetPhase(0, ph)
		if err := tab.Import(0, start, bad); err != ErrNotReceiving {
			t.Errorf("in phase %v: %v", ph, err)
		}
	}
}

// A counter whose holders used different rules keeps the one under which it is
// remembered longer, and loses nothing that this one can express.
func TestImportUnderAnotherRule(t *testing.T) {
	long, short := mustRule(t, per(100, time.Hour, limit.FixedWindow)), mustRule(t, per(10, time.Minute, limit.FixedWindow))
	bucket := mustRule(t, per(10, time.Second, limit.TokenBucket))
	used := func(r *limit.Rule, n int64) Entry {
		s, _ := r.Take(limit.State{}, start, n)
		e := Entry{Name: []byte("a"), Rule: r, State: r.Ship(s, start)}
		e.ID = Seed(7).ID(e.Name)
		return e
	}
	for _, entries := range [][]Entry{
		{used(long, 5), used(short, 9), used(bucket, 10)},
		{used(bucket, 10), used(short, 9), used(long, 5)},
	} {
		tab := holding(Config{Partitions: 1})
		imported(t, tab, 0, start, entries)
		if v := decide(t, tab, start, with(on(tab, "a", long), limit.Peek, 1)); v.Remaining != 91 {
			t.Errorf("%+v; want 91 left", v)
		}
		check(t, tab)
	}
	// Under both it is remembered until the same moment: all nodes choose alike.
	wide := mustRule(t, per(200, time.Hour, limit.FixedWindow))
	var kept []limit.RuleID
	for _, entries := range [][]Entry{{used(long, 5), used(wide, 7)}, {used(wide, 7), used(long, 5)}} {
		tab := holding(Config{Partitions: 1})
		imported(t, tab, 0, start, entries)
		kept = append(kept, shipped(t, tab, 0, start)["a"].Rule.ID())
	}
	if kept[0] != kept[1] {
		t.Error("the order of arrival decides about the rule")
	}
}

// What equals a fresh counter creates none. A partition that has dropped some as
// of a later moment than the caller's receives as of then.
func TestImportAtTheEdges(t *testing.T) {
	tab := holding(Config{Partitions: 1})
	rule := mustRule(t, per(10, 10*time.Second, limit.TokenBucket))
	id := on(tab, "a", rule).ID
	imported(t, tab, 0, start, []Entry{{ID: id, Name: []byte("a"), Rule: rule}})
	if s := tab.Stats(); s.Counters != 0 || s.Bytes != 0 {
		t.Errorf("for a fresh counter %+v", s)
	}
	decide(t, tab, start, on(tab, "b", rule))
	now := start + int64(2*time.Second)
	if tab.Sweep(now, 1) != 1 {
		t.Fatal("nothing was dropped")
	}
	imported(t, tab, 0, start, []Entry{{id, []byte("a"), rule, limit.Shipped{A: int64(5 * time.Second)}}})
	if v := decide(t, tab, now, with(on(tab, "a", rule), limit.Peek, 1)); v.Remaining != 5 {
		t.Errorf("%+v; want 5 left, as sent", v)
	}
}

// Copies of one counter may be counted under different rules. Whatever order
// they come in, none of what was used is forgotten.
func TestImportOfTwoRulesForgetsNothing(t *testing.T) {
	small, large := mustRule(t, per(40, 5*time.Second, limit.TokenBucket)), mustRule(t, per(60, 5*time.Second, limit.TokenBucket))
	for _, order := range [][]*limit.Rule{{small, large}, {large, small}} {
		tab := NewTable(Config{Partitions: 1})
		tab.SetPhase(0, Acquiring)
		for _, rule := range order {
			used, _ := rule.Take(limit.State{}, start, min(50, rule.Capacity()))
			e := Entry{ID: Seed(7).ID([]byte("k")), Name: []byte("k"), Rule: rule, State: rule.Ship(used, start)}
			if err := tab.Import(0, start, []Entry{e}); err != nil {
				t.Fatal(err)
			}
		}
		tab.SetPhase(0, Holding)
		c := on(tab, "k", large)
		c.Mode = limit.Peek
		if v, err := answer(tab, start, c); err != nil || v.Remaining != 10 {
			t.Errorf("50 of 60 are used, %d remain, %v", v.Remaining, err)
		}
	}
}
