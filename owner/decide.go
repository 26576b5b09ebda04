package owner

import "github.com/ringlimit/ringlimit/limit"

// Decide answers a call into v as of now, in Unix nanoseconds. The error is
// ErrNotHolder, also behind the bound of DecideUntil, or ErrFull; then nothing was counted, and v says nothing.
//
// The verdict is written in place, here and below: to copy it from function to
// function costs as much as to decide.
func (t *Table) Decide(now int64, c *Call, v *limit.Verdict) error {
	if !t.has(c.Partition) {
		return ErrNotHolder
	}
	p := &t.partitions[c.Partition]
	p.mu.Lock()
	defer p.mu.Unlock()
	return t.decide(p, now, c, v)
}

func (t *Table) has(partition int) bool { return uint(partition) < uint(len(t.partitions)) }

// decide is Decide; the caller holds the partition's lock.
func (t *Table) decide(p *partition, now int64, c *Call, v *limit.Verdict) error {
	// Two nodes with different views must never both count. The view is only
	// advice; this is what keeps them from it.
	if p.phase != Holding || now > t.until.Load() {
		return ErrNotHolder
	}
	now = max(now, p.floor)
	at, found := p.find(c.ID)
	if !found {
		return t.first(p, now, c, v)
	}
	s := at.slot()
	rule := t.rules.at(s.rule)
	if rule != c.Rule && rule.ID() != c.Rule.ID() {
		t.carried(p, now, s, rule, c, v)
		return nil
	}
	var state limit.State
	p.read(s, rule, &state)
	rule.Apply(&c.Charge, &state, v, now)
	if c.Mode != limit.Peek {
		t.keep(p, s, logOf(s, rule), rule, &state)
	}
	return nil
}

// carried answers a call under another rule than the counter's. The caller's
// rule decides: nodes hear of a change at different moments, and each means what
// it says.
func (t *Table) carried(p *partition, now int64, s *slot, old *limit.Rule, c *Call, v *limit.Verdict) {
	state, log, rule := p.state(s, old), logOf(s, old), old
	if c.Rule.ApplyCarried(old, &c.Charge, &state, v, now) {
		rule = c.Rule
		was := s.rule
		s.rule = t.rules.acquire(rule)
		t.rules.release(was)
	}
	t.keep(p, s, log, rule, &state)
}

// keep writes a state back. A log that the algorithm replaced by another one
// gets a block that fits.
func (t *Table) keep(p *partition, s *slot, b block, rule *limit.Rule, state *limit.State) {
	if (b != 0 || state.Log != nil) && !same(p.logs.at(b), state.Log) {
		var grown int64
		b, grown = p.replaceLog(s.id, b, state.Log)
		t.memory.add(grown)
	}
	s.write(state, rule, b)
}

// same says whether two logs are one.
func same(a, b []limit.Stamp) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// first answers a call for a counter that does not exist. Only a Take that is
// admitted creates it: whatever else is asked, it would equal a fresh one.
func (t *Table) first(p *partition, now int64, c *Call, v *limit.Verdict) error {
	var state limit.State
	c.Rule.Apply(&c.Charge, &state, v, now)
	if c.Mode != limit.Take || !v.Allowed {
		return nil
	}
	if !t.create(p, now, c, &state) {
		t.refused.Add(1)
		*v = limit.Verdict{}
		return ErrFull
	}
	return nil
}
