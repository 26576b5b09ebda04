package rules

// warn finds what is allowed but probably not meant.
func (ed *entityDraft) warn(e *entity) {
	for i, d := range ed.rules {
		d.warnOfSmallCounter()
		for k, other := range e.rules {
			if k != i && e.rules[i].explainIdle(other) != "" {
				d.warn(d.start, d.path, "%s", e.rules[i].explainIdle(other))
				break
			}
		}
	}
}

// explainIdle says why the rule can have no effect beside the other one, or "".
func (r *rule) explainIdle(other *rule) string {
	if other.dim != r.dim || other.atLevel != r.atLevel || other.text != r.text {
		return ""
	}
	switch {
	case other.priority > r.priority && (r.shadow || !other.shadow):
		return "never applies: " + quoteName(other) + " has its route_pattern and by, and a higher priority"
	case other.priority == r.priority && r.unlimited && !other.unlimited && !other.shadow:
		return "lifts no limit: " + quoteName(other) + " has its route_pattern, by and priority, and applies beside it"
	}
	return ""
}
