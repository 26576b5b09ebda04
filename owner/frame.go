package owner

import "github.com/ringlimit/ringlimit/limit"

// frameLocks is how many calls of a frame are decided under one hold of their
// partitions' locks: enough for their cache misses to overlap. With more the
// sorting costs what the overlap gains.
const frameLocks = 8

// DecideFrame answers calls in order, as Decide does, into results of the same
// length. Takes that are joined are a group: all are charged that pass, or none
// if one refuses; see decideGroup.
//
// It takes the locks of several calls together, to touch all their slots before it
// decides the first; one by one, each call would wait for its memory alone. With a
// million counters this halves the time of a call.
func (t *Table) DecideFrame(now int64, calls []Call, results []Result) {
	for len(calls) > 0 {
		n := together(calls)
		t.decideTogether(now, calls[:n], results[:n])
		calls, results = calls[n:], results[n:]
	}
}

// together is how many calls to decide under one hold of the locks: whole groups
// only, and at least one.
func together(calls []Call) int {
	n := min(frameLocks, len(calls))
	if n == len(calls) || !calls[n].Joined {
		return n
	}
	first := n
	for first > 0 && calls[first].Joined {
		first--
	}
	if first > 0 {
		return first
	}
	return GroupEnd(calls, 0)
}

func (t *Table) decideTogether(now int64, calls []Call, results []Result) {
	var room [frameLocks]int // a larger group needs more
	set := lockSet(room[:0])
	for i := range calls {
		if t.has(calls[i].Partition) {
			set = set.with(calls[i].Partition)
		}
	}
	t.lock(set)
	defer t.unlock(set)
	t.touch(calls)
	for i := 0; i < len(calls); {
		end := GroupEnd(calls, i)
		if end-i > 1 {
			t.decideGroup(now, calls[i:end], results[i:end])
		} else {
			t.decideOne(now, &calls[i], &results[i])
		}
		i = end
	}
}

// decideOne answers a call whose partition's lock is held.
func (t *Table) decideOne(now int64, c *Call, r *Result) {
	*r = Result{}
	if !t.has(c.Partition) {
		r.Err = ErrNotHolder
		return
	}
	r.Err = t.decide(&t.partitions[c.Partition], now, c, &r.Verdict)
	r.Taken = r.Err == nil && c.Mode == limit.Take && r.Verdict.Allowed
}

// lockSet is partitions to lock, ascending, so that two frames never wait for
// each other, and each of them once.
type lockSet []int

func (s lockSet) with(p int) lockSet {
	i := len(s)
	for i > 0 && s[i-1] >= p {
		i--
	}
	if i < len(s) && s[i] == p {
		return s
	}
	s = append(s, p)
	copy(s[i+1:], s[i:])
	s[i] = p
	return s
}

func (t *Table) lock(s lockSet) {
	for _, p := range s {
		t.partitions[p].mu.Lock()
	}
}

func (t *Table) unlock(s lockSet) {
	for _, p := range s {
		t.partitions[p].mu.Unlock()
	}
}

// touch reads where each call's counter should be, and a little behind, for the
// cache lines. No read waits for another or decides a branch, so the processor
// has them all under way at once. Inlined, the compiler would notice that nobody
// wants the sum.
//
//go:noinline
func (t *Table) touch(calls []Call) (sum uint32) {
	for i := range calls {
		if !t.has(calls[i].Partition) {
			continue
		}
		if s := &t.partitions[calls[i].Partition].slots; len(s.at) > 0 {
			home := s.home(calls[i].ID.Lo)
			sum += s.at[home].rule + s.at[home+2].rule // there are `tail` places behind the last home
		}
	}
	return sum
}
