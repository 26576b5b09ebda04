package owner

import "github.com/ringlimit/ringlimit/limit"

const (
	// ahead is how many calls of a frame are touched before the first of them is
	// decided. With 16 and more at a time a call takes half as long again.
	ahead = 8
	// run is how many calls in a row, of one partition, are decided under one hold
	// of its lock. Who waits for a moment spins; who waits for longer is put to
	// sleep, and his other calls with him.
	run = 16
)

// DecideFrame answers calls in order, as Decide does, into results of the same
// length. Takes that are joined are a group: all are charged that pass, or none
// if one refuses; see decideGroup.
//
// It touches the slots of several calls before it decides the first; one by one,
// each call would wait for its memory alone. With a million counters this halves
// the time of a call.
func (t *Table) DecideFrame(now int64, calls []Call, results []Result) {
	for i, touched := 0, 0; i < len(calls); {
		if i >= touched {
			touched = min(i+ahead, len(calls))
			t.touch(calls[i:touched])
		}
		end := i + together(calls[i:])
		if calls[end-1].Joined {
			t.decideTogether(now, calls[i:end], results[i:end])
		} else {
			t.decideRun(now, calls[i:end], results[i:end])
		}
		i = end
	}
}

// together is how many calls to decide under one hold of locks: a group, or single
// calls that share a partition.
func together(calls []Call) int {
	if n := GroupEnd(calls, 0); n > 1 {
		return n
	}
	n := 1
	for n < min(len(calls), run) && calls[n].Partition == calls[0].Partition && !calls[n].Joined {
		n++
	}
	if n < len(calls) && calls[n].Joined {
		n-- // it is the first of a group
	}
	return n
}

// decideRun answers single calls that share a partition.
func (t *Table) decideRun(now int64, calls []Call, results []Result) {
	if p := calls[0].Partition; t.has(p) {
		t.partitions[p].mu.Lock()
		defer t.partitions[p].mu.Unlock()
	}
	for i := range calls {
		t.decideOne(now, &calls[i], &results[i])
	}
}

// groupPartitions is how many partitions a group usually has at most.
const groupPartitions = 8

// decideTogether answers a group under the locks of all its partitions.
func (t *Table) decideTogether(now int64, calls []Call, results []Result) {
	var room [groupPartitions]int // a larger group needs more
	set := lockSet(room[:0])
	for i := range calls {
		if t.has(calls[i].Partition) {
			set = set.with(calls[i].Partition)
		}
	}
	t.lock(set)
	defer t.unlock(set)
	t.decideGroup(now, calls, results)
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
// It holds no lock: with the locks of all these partitions, a call would wait for
// the locks of those beside it as well. The directory and the segments are
// published whole, and what replaces them leaves them to the collector, which keeps
// them while they are looked at. So it races for words of counters only, and what it
// reads is thrown away.
//
//go:noinline
//go:norace
func (t *Table) touch(calls []Call) (sum uint32) {
	for i := range calls {
		if !t.has(calls[i].Partition) {
			continue
		}
		d := t.partitions[calls[i].Partition].dir.Load()
		if d == nil {
			continue
		}
		if s := &d.of(calls[i].ID.Lo).slots; len(s.at) > 0 {
			home := s.home(calls[i].ID.Lo)
			sum += s.at[home].rule + s.at[home+2].rule // there are `tail` places behind the last home
		}
	}
	return sum
}
