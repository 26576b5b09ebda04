package rules

import (
	"errors"

	"github.com/ringlimit/ringlimit/limit"
)

// draft is a rule while it is read: defaults first, then field by field, then
// what only all fields together can show.
type draft struct {
	*reader
	path  string
	start place
	at    map[string]place // of the value of each field that is given
	bad   bool             // a problem was reported

	name      string
	pattern   string
	by        []dimension
	priority  int32
	unlimited bool
	spec      limit.Spec
	window    string // as written
	onFailure limit.OnFailure
	deny      bool
	jitter    bool
	shadow    bool

	rule *limit.Rule // the spec, compiled; of an unlimited rule nil
}

const ruleExample = "{name: global, algorithm: token_bucket, limit: 100, window: 60s}"

// readRule reads a rule's mapping. It reports all problems of the rule that do
// not follow from one another.
func (r *reader) readRule(n *value, path string) *draft {
	d := &draft{reader: r, path: path, start: n.at, at: map[string]place{},
		by: byClientOnly, jitter: true}
	before := len(r.problems)
	entries, ok := r.entries(n, path, ruleExample)
	if len(entries) > 0 {
		d.start = entries[0].at
	}
	for _, e := range entries {
		d.at[e.key] = e.value.at
		d.setField(e)
	}
	if d.json && d.given("window") && d.given(windowSeconds) {
		d.refuse(windowSeconds, "says the same as window; leave one of them out")
	}
	if ok {
		d.require("name")
		d.checkUnlimited()
	}
	d.bad = len(r.problems) > before
	if !d.bad && !d.unlimited {
		d.checkFields()
	}
	return d
}

func (d *draft) given(field string) bool { return d.at[field].known() }

// require reports the fields that have no default and are not there.
func (d *draft) require(fields ...string) {
	for _, f := range fields {
		if !d.given(f) && !(f == "window" && d.given(windowSeconds)) {
			d.report(d.start, join(d.path, f), "is missing; a rule is at least %s", ruleExample)
		}
	}
}

// checkUnlimited tells the two kinds of rule apart: one that counts, and one
// that has nothing to say but where it applies.
func (d *draft) checkUnlimited() {
	if !d.unlimited {
		d.require("algorithm", "limit", "window")
		return
	}
	for _, f := range ruleFields {
		switch f.name {
		case "name", "route_pattern", "by", "priority", "unlimited":
		default:
			if d.given(f.name) {
				d.refuse(f.name, "means nothing beside unlimited: true; leave one of them out")
			}
		}
	}
	if d.given(windowSeconds) {
		d.refuse(windowSeconds, "means nothing beside unlimited: true; leave one of them out")
	}
}

// refuse reports a problem of a field at its value, or at the rule when the
// field is not there.
func (d *draft) refuse(field, format string, args ...any) {
	at := d.at[field]
	if !at.known() {
		at = d.start
	}
	d.bad = true
	d.report(at, join(d.path, field), format, args...)
}

// checkFields looks at the fields together: those that the algorithm does not
// have, and what the algorithm says of its parameters.
func (d *draft) checkFields() {
	if d.given("delay") && d.spec.Algorithm != limit.LeakyBucket {
		d.refuse("delay", "belongs to leaky_bucket only; leave it out")
	}
	if d.given("burst") {
		d.checkBurst()
	}
	if !d.bad {
		rule, err := limit.NewRule(d.spec)
		d.rule = rule
		d.refuseSpec(err)
	}
}

// checkBurst looks at a burst that is given, which a Spec cannot tell from one
// left out when it is 0.
func (d *draft) checkBurst() {
	switch {
	case d.spec.Algorithm != limit.TokenBucket && d.spec.Algorithm != limit.LeakyBucket:
		d.refuse("burst", "belongs to token_bucket and leaky_bucket only; leave it out")
	case d.spec.Algorithm == limit.TokenBucket && d.spec.Burst == 0 && d.spec.Limit != 0:
		d.refuse("burst", "is 0, so the bucket could hold nothing; leave it out for a burst of limit, or write limit: 0 to deny all")
	}
}

// refuseSpec reports an error of package limit at the field it names.
func (d *draft) refuseSpec(err error) {
	var spec *limit.SpecError
	if errors.As(err, &spec) {
		d.refuse(spec.Field, "%s", spec.Problem)
	} else if err != nil {
		d.refuse("", "%v", err)
	}
}

// smallCounter is the limit below which sliding_window_counter's typical error,
// 1/(2√limit), is over a tenth.
const smallCounter = 20

func (d *draft) warnOfSmallCounter() {
	if l := d.spec.Limit; d.spec.Algorithm == limit.SlidingWindowCounter && 0 < l && l < smallCounter {
		d.warn(d.at["limit"], join(d.path, "limit"),
			"%d is small for sliding_window_counter, whose estimate is typically off by 1/(2√limit); sliding_window_log is exact and costs little at such a limit", l)
	}
}
