package peerrpc

import (
	"errors"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
)

// judge answers frames, one at a time. Its slices are kept from frame to frame.
type judge struct {
	cfg     *ServerConfig
	calls   []owner.Call // what the table is asked
	results []owner.Result
	places  []place       // one a record
	brought []*limit.Rule // those that came with the frame
	bodies  allowance     // of rules to read
}

// maxBodies is how many rules a second are taken from one stream. All nodes know
// the rules of their own files, so few travel. Without a bound a peer could keep
// a core busy with rules alone: the table's copy of them grows with each.
const maxBodies = 256

// place says where a record's answer comes from.
type place struct {
	call int   // index into calls
	err  error // instead, when the table need not be asked
}

// frame decides the records and appends the answers. All that is wrong with a
// frame is found before any of it is counted.
func (j *judge) frame(records, answers []byte) ([]byte, error) {
	j.calls, j.places, j.brought = j.calls[:0], j.places[:0], j.brought[:0]
	defer func() { clear(j.calls) }() // they alias the frame
	for len(records) > 0 {
		var r record
		var err error
		if records, err = cutRecord(records, &r); err != nil {
			return nil, err
		}
		if len(j.places) == maxRecords {
			return nil, errBadFrame
		}
		j.places = append(j.places, j.place(&r))
	}
	if len(j.places) == 0 {
		return nil, errBadFrame
	}
	j.decide()
	return j.write(answers), nil
}

// place makes a call of a record, or says why not.
func (j *judge) place(r *record) place {
	if !r.valid() {
		return place{err: forward.ErrRejected}
	}
	rule, err := j.rule(r)
	if err != nil {
		return place{err: err}
	}
	id := j.cfg.Seed.ID(r.name)
	j.calls = append(j.calls, owner.Call{
		ID:        id,
		Partition: j.cfg.Partition(id.Hi),
		Charge:    limit.Charge{Counter: r.name, Rule: rule, Cost: r.cost, Mode: r.mode},
	})
	return place{call: len(j.calls) - 1}
}

// rule finds the record's rule. One that came along is good for this frame; the
// table learns it with the first counter that is made under it. So a rule is
// not learned for a counter that another node holds, nor from a bad frame.
func (j *judge) rule(r *record) (*limit.Rule, error) {
	if rule := j.cfg.Table.Rule(r.rule); rule != nil {
		return rule, nil
	}
	if r.body == nil {
		return nil, errUnknownRule
	}
	for _, rule := range j.brought {
		if rule.ID() == r.rule {
			return rule, nil
		}
	}
	if !j.bodies.take(j.cfg.Now(), maxBodies) {
		return nil, forward.ErrRejected
	}
	rule, err := ruleOf(r)
	if err == nil {
		j.brought = append(j.brought, rule)
	}
	return rule, err
}

// ruleOf reads the record's body.
func ruleOf(r *record) (*limit.Rule, error) {
	spec, err := limit.ParseSpec(r.body)
	if err != nil {
		return nil, forward.ErrRejected
	}
	rule, err := limit.NewRule(spec)
	if err != nil || rule.ID() != r.rule {
		return nil, forward.ErrRejected // another name for it would count it twice
	}
	return rule, nil
}

func (j *judge) decide() {
	if n := len(j.calls); cap(j.results) < n {
		j.results = make([]owner.Result, n)
	}
	j.results = j.results[:len(j.calls)]
	j.cfg.Table.DecideFrame(j.cfg.Now(), j.calls, j.results)
}

func (j *judge) write(answers []byte) []byte {
	for _, p := range j.places {
		switch {
		case p.err != nil:
			answers = appendError(answers, p.err)
		case j.results[p.call].Err == nil:
			answers = appendVerdict(answers, &j.results[p.call].Verdict)
		case errors.Is(j.results[p.call].Err, owner.ErrNotHolder):
			hint, ring := j.cfg.Hint(j.calls[p.call].Partition)
			answers = appendNotMine(answers, hint, ring)
		default:
			answers = appendError(answers, j.results[p.call].Err)
		}
	}
	return answers
}
