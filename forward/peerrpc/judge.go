package peerrpc

import (
	"cmp"
	"time"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
)

// judge answers frames, one at a time. Its slices are kept from frame to frame.
type judge struct {
	cfg      *ServerConfig
	opened   uint64       // the era when the stream began
	promises *promises    // of the stream
	calls    []owner.Call // what the decider is asked
	results  []owner.Result
	places   []place       // one a record
	brought  []*limit.Rule // those that came with the frame
	bodies   allowance     // of rules to read
	group    group         // the one that is being read
}

func newJudge(cfg *ServerConfig) *judge {
	return &judge{cfg: cfg, opened: cfg.Decider.Era(), promises: newPromises()}
}

// maxBodies is how many rules a second are taken from one stream. All nodes know
// the rules of their own files, so few travel. Without a bound a peer could keep
// a core busy with rules alone: the table's copy of them grows with each.
const maxBodies = 256

// maxPatience bounds how long a peer may have an answer put off, whatever it
// says.
const maxPatience = time.Minute

// place says where a record's answer comes from.
type place struct {
	call int   // index into calls
	err  error // instead, when the decider need not be asked
}

// group is the places and the calls since the last record that was not joined to
// the one before it.
type group struct{ places, calls int }

// frame decides the records and appends the answers. When they have been sent,
// promises.follow is to be called with laters, which is how many of them were put
// off. All that is wrong with a frame is found before any of it is counted.
func (j *judge) frame(ask *peerpb.Frame, answers []byte) (_ []byte, laters int, err error) {
	defer func() { clear(j.calls) }() // they alias the frame
	if err := j.read(ask); err != nil {
		return nil, 0, err
	}
	j.decide(ask)
	answers, laters = j.write(answers)
	return answers, laters, nil
}

func (j *judge) read(ask *peerpb.Frame) error {
	j.calls, j.places, j.brought = j.calls[:0], j.places[:0], j.brought[:0]
	records := ask.Records
	if ask.Id == farewell || ask.Id == lateAnswers || len(records) == 0 || len(records) > maxFrame {
		return errBadFrame
	}
	for len(records) > 0 {
		var r record
		var err error
		if records, err = cutRecord(records, &r); err != nil {
			return err
		}
		if len(j.places) == maxRecords || r.joined && len(j.places) == 0 {
			return errBadFrame
		}
		if !r.joined {
			j.group = group{len(j.places), len(j.calls)}
		}
		j.places = append(j.places, j.place(&r))
		if r.joined {
			j.unite()
		}
	}
	return nil
}

// unite sees to it that the decider is asked for all of a group or for none of it.
// That an owner lacks one of its rules is said of all.
func (j *judge) unite() {
	places := j.places[j.group.places:]
	err := cmp.Or(places[len(places)-2].err, places[len(places)-1].err)
	if err == nil && len(places) <= limit.MaxLimits && j.fits() {
		return
	}
	for i := range places {
		places[i].err = cmp.Or(err, forward.ErrRejected)
	}
	j.calls = j.calls[:j.group.calls]
}

// fits says whether the last call may be of its group. All have to be Takes, and
// those of one counter of one rule: by which of two would it be kept?
func (j *judge) fits() bool {
	group := j.calls[j.group.calls:]
	last := &group[len(group)-1]
	for i := range group {
		if c := &group[i]; c.Mode != limit.Take || c.ID == last.ID && c.Rule.ID() != last.Rule.ID() {
			return false
		}
	}
	return true
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
		Charge:    limit.Charge{Counter: r.name, Rule: rule, Cost: r.cost, Mode: r.mode, Age: r.age},
		Joined:    r.joined,
		Shadow:    r.shadow,
	})
	return place{call: len(j.calls) - 1}
}

// rule finds the record's rule. One that came along is good for this frame; the
// decider learns it with the first counter that is made under it. So a rule is
// not learned for a counter that another node holds, nor from a bad frame.
func (j *judge) rule(r *record) (*limit.Rule, error) {
	if rule := j.cfg.Decider.Rule(r.rule); rule != nil {
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

// stale says whether the asker had not heard of this node's era. It may then have
// asked while this node stood still, and have given up.
func (j *judge) stale(ask *peerpb.Frame) bool { return max(ask.Era, j.opened) < j.cfg.Decider.Era() }

// decide asks the decider, unless the frame is stale, or it owes the stream too
// many answers already. The clock is read before the era. The other way round, a
// process that stands still in between would decide by a time of the next era
// what was asked in this one.
func (j *judge) decide(ask *peerpb.Frame) {
	now := j.cfg.Now()
	if j.stale(ask) {
		j.refuse(j.cfg.Decider.NotMine())
		return
	}
	deadline := now + int64(min(ask.PatienceUs, uint64(maxPatience/time.Microsecond)))*1000
	if !j.promises.begin(ask.Id, now, deadline, len(j.calls), j.indices()) {
		j.refuse(forward.ErrOverloaded)
		return
	}
	if n := len(j.calls); cap(j.results) < n {
		j.results = make([]owner.Result, n)
	}
	j.results = j.results[:len(j.calls)]
	j.cfg.Decider.DecideFrame(now, deadline, j.calls, j.results, j.promises, ask.Id)
}

// indices tells for each call which record it is of. Nil: they are the same.
func (j *judge) indices() []uint16 {
	if len(j.calls) == len(j.places) {
		return nil
	}
	indices := make([]uint16, 0, len(j.calls)) // not kept: promises may need it for long
	for i, p := range j.places {
		if p.err == nil {
			indices = append(indices, uint16(i))
		}
	}
	return indices
}

// refuse answers all calls with an error.
func (j *judge) refuse(err error) {
	for i := range j.places {
		if j.places[i].err == nil {
			j.places[i].err = err
		}
	}
}

func (j *judge) write(answers []byte) (_ []byte, laters int) {
	for _, p := range j.places {
		if p.err != nil {
			answers = appendResult(answers, &owner.Result{Err: p.err})
			continue
		}
		r := &j.results[p.call]
		if r.Err == owner.ErrLater {
			laters++
		}
		answers = appendResult(answers, r)
	}
	return answers, laters
}
