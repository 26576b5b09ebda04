package rules

// Forget lets go of the rules that were found, and keeps the room: Matches that wait
// to be used again would keep rules in memory that a change has replaced.
func (m *Matches) Forget() {
	all := m.Winners[:cap(m.Winners)] // an earlier Match may have had more
	for i := range all {
		w := &all[i] // field by field: to clear a slice of one is a call
		w.Rule, w.Missing, w.Counter = nil, "", nil
	}
	if found := m.found[:cap(m.found)]; len(found) > 0 { // and who was beaten is behind the end
		clear(found)
	}
	for i := range m.own {
		if m.own[i].exists() {
			m.own[i] = entity{}
		}
	}
	m.Winners, m.found = m.Winners[:0], m.found[:0]
}
