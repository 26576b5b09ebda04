package rules

// Forget lets go of the rules that were found, and keeps the room: Matches that wait
// to be used again would keep rules in memory that a change has replaced.
func (m *Matches) Forget() {
	clear(m.Winners)
	clear(m.found)
	for i := range m.own {
		if m.own[i].exists() {
			m.own[i] = entity{}
		}
	}
	m.Winners, m.found = m.Winners[:0], m.found[:0]
}
