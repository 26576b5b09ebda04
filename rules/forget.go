package rules

// Forget lets go of the rules that were found, and keeps the room: Matches that wait
// to be used again would keep rules in memory that a change has replaced.
func (m *Matches) Forget() {
	for i := range m.Winners {
		w := &m.Winners[i] // field by field: to clear a slice of one is a call
		w.Rule, w.Missing, w.Counter = nil, "", nil
	}
	if len(m.found) > 0 {
		clear(m.found)
	}
	for i := range m.own {
		if m.own[i].exists() {
			m.own[i] = entity{}
		}
	}
	m.Winners, m.found = m.Winners[:0], m.found[:0]
}
