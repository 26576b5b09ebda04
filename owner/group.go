package owner

import "github.com/ringlimit/ringlimit/limit"

// GroupEnd is the end of the group that begins with the call at i: where the next
// one begins.
func GroupEnd(calls []Call, i int) int {
	for i++; i < len(calls) && calls[i].Joined; i++ {
	}
	return i
}

// Refused says whether a group is refused by one of its verdicts, shadows left
// aside. Whoever has no verdict does not refuse.
func Refused(calls []Call, results []Result) bool {
	for i := range calls {
		if r := &results[i]; r.Err == nil && !r.Verdict.Allowed && !calls[i].Shadow {
			return true
		}
	}
	return false
}

// decideGroup answers calls of which either all that pass are charged or none: none
// if one of them refuses. Each verdict then says what it would be by itself. If one
// cannot be decided, all have its error, and none is charged either. The locks of
// all partitions are held. Calls of one counter have to be of one rule.
//
// A look comes first, and then what may still fail: a new counter may find no room,
// but one that has just been made can be dropped without a trace. A charge of an
// old one could not be given back, for it may bring the counter under another rule.
func (t *Table) decideGroup(now int64, calls []Call, results []Result) {
	if !t.peekGroup(now, calls, results) || calls[0].Mode != limit.Take || Refused(calls, results) {
		return
	}
	if err := t.takeNew(now, calls, results); err != nil {
		t.dropNew(calls, results)
		failGroup(results, err)
		return
	}
	for i := range calls {
		if !results[i].Taken {
			t.decideOne(now, &calls[i], &results[i])
		}
	}
}

// peekGroup says what each call would come to. It reports false when one cannot
// be decided.
func (t *Table) peekGroup(now int64, calls []Call, results []Result) bool {
	for i := range calls {
		look := calls[i]
		look.Mode = limit.Peek
		look.Cost += takenBefore(calls, results, i)
		if t.decideOne(now, &look, &results[i]); results[i].Err != nil {
			failGroup(results, results[i].Err)
			return false
		}
	}
	return true
}

// takenBefore is what the group would have taken from the counter of the call at i
// already, if it names that more than once.
func takenBefore(calls []Call, results []Result, i int) (cost int64) {
	for k := range calls[:i] {
		if calls[k].ID == calls[i].ID && results[k].Verdict.Allowed {
			cost += calls[k].Cost
		}
	}
	return cost
}

// takeNew charges the calls whose counters do not exist. It looks until there are
// none left: to make room for one, another of the group may be dropped that equals
// a fresh one.
func (t *Table) takeNew(now int64, calls []Call, results []Result) error {
	for made := true; made; {
		made = false
		for i := range calls {
			c, r := &calls[i], &results[i]
			if r.Taken || !r.Verdict.Allowed || t.exists(c) {
				continue
			}
			if t.decideOne(now, c, r); r.Err != nil {
				return r.Err
			}
			made = true
		}
	}
	return nil
}

func (t *Table) exists(c *Call) bool {
	_, found := t.partitions[c.Partition].find(c.ID)
	return found
}

// dropNew undoes what takeNew has done.
func (t *Table) dropNew(calls []Call, results []Result) {
	for i := range calls {
		if !results[i].Taken {
			continue
		}
		p := &t.partitions[calls[i].Partition]
		if at, found := p.find(calls[i].ID); found {
			t.drop(p, at)
			t.compact(p, at.seg)
		}
	}
}

// failGroup gives all of a group one error.
func failGroup(results []Result, err error) {
	for i := range results {
		results[i] = Result{Err: err}
	}
}
