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
// all partitions are held.
//
// A look comes first and not a charge that is given back, because a charge may
// bring a counter under another rule, which a refund does not undo.
func (t *Table) decideGroup(now int64, calls []Call, results []Result) {
	if !t.peekGroup(now, calls, results) || calls[0].Mode != limit.Take || Refused(calls, results) {
		return
	}
	for i := range calls {
		t.decideOne(now, &calls[i], &results[i])
		if results[i].Taken || calls[i].Shadow && results[i].Err == nil {
			continue
		}
		t.giveBack(now, calls[:i], results)
		if err := results[i].Err; err != nil {
			failGroup(results, err)
		}
		return
	}
}

// peekGroup says what each call would come to. It reports false when one cannot
// be decided.
func (t *Table) peekGroup(now int64, calls []Call, results []Result) bool {
	for i := range calls {
		look := calls[i]
		look.Mode = limit.Peek
		if t.decideOne(now, &look, &results[i]); results[i].Err != nil {
			failGroup(results, results[i].Err)
			return false
		}
	}
	return true
}

// giveBack undoes what part of a group has taken before another call was refused
// in spite of the look: there is no memory for its counter, or the group names one
// counter twice.
func (t *Table) giveBack(now int64, taken []Call, results []Result) {
	for i := range taken {
		if !results[i].Taken {
			continue
		}
		back := taken[i]
		back.Mode, back.Age = limit.Refund, 0
		t.decideOne(now, &back, &results[i])
	}
	for i := range taken { // after all of them: they may be of one counter
		look := taken[i]
		look.Mode = limit.Peek
		t.decideOne(now, &look, &results[i])
	}
}

// failGroup gives all of a group one error.
func failGroup(results []Result, err error) {
	for i := range results {
		results[i] = Result{Err: err}
	}
}
