package wire

import (
	"strings"

	"github.com/ringlimit/ringlimit/limit"
)

// Fields of a Rule.
const (
	rID        = one
	rName      = two
	rTier      = three
	rAlgorithm = four
	rLimit     = five
	rWindow    = six
	rCalendar  = seven
	rTimezone  = eight
	rBurst     = nine
	rJitter    = ten
	rShadow    = n11
)

// maxRules bounds the rules that a stream has numbers for. Rules that change are new
// ones, and a stream may live for long.
const maxRules = 4096

// Numbers is the rules that one stream or batch has named, and their numbers. It is
// not safe for concurrent use.
type Numbers struct {
	ids   map[*limit.Rule]uint32
	fresh []byte // their messages, for who has not heard of them
}

// of is the rule's number, and 0 on a nil Numbers.
func (n *Numbers) of(r *limit.Rule) uint64 {
	if n == nil {
		return 0
	}
	id, ok := n.ids[r]
	if !ok {
		id = uint32(len(n.ids) + 1)
		if n.ids == nil {
			n.ids = map[*limit.Rule]uint32{}
		}
		n.ids[r] = id
		n.fresh = appendRule(n.fresh, id, r)
	}
	return uint64(id)
}

// take appends the rules that were named for the first time since the last take, as
// the field of a message.
func (n *Numbers) take(b []byte, tag uint64) []byte {
	for rest := string(n.fresh); len(rest) > 0; {
		var rule string
		rule, rest, _ = cutBytes(rest) // our own
		b = appendString(b, tag, rule)
	}
	n.fresh = n.fresh[:0]
	return b
}

// Renew begins anew when there are too many: numbers that come again replace the
// rules they had. All verdicts with the present ones must have been sent.
func (n *Numbers) Renew() {
	if len(n.ids) > maxRules {
		clear(n.ids)
	}
}

// appendRule appends a Rule with its length.
func appendRule(b []byte, id uint32, r *limit.Rule) []byte {
	at := len(b) + 1
	b = append(b, 0)
	b = appendNumber(b, rID, uint64(id))
	b = appendString(b, rName, r.Name)
	b = appendString(b, rTier, r.Tier)
	b = appendString(b, rAlgorithm, r.Algorithm.String())
	b = appendNumber(b, rLimit, uint64(r.Limit))
	if r.Window > 0 {
		b = appendDuration(b, rWindow, r.Window)
	}
	b = appendString(b, rCalendar, r.Calendar.String())
	b = appendString(b, rTimezone, r.Timezone)
	b = appendNumber(b, rBurst, uint64(r.Burst))
	b = appendBool(b, rJitter, r.Jitter)
	return end(appendBool(b, rShadow, r.Shadow), at)
}

// Rules is the rules that a client has heard of on one stream or in one batch. A
// node may number each anew, so that there are maxRules and those of one message.
type Rules struct{ known map[uint64]*limit.Rule }

// learn reads a Rule.
func (k *Rules) learn(s string) error {
	var r told
	s = strings.Clone(s) // the rule's texts outlive the message
	for len(s) > 0 {
		var f field
		var err error
		if s, err = f.cut(s); err != nil {
			return err
		}
		if err = r.read(&f); err != nil {
			return err
		}
	}
	if k.known == nil {
		k.known = map[uint64]*limit.Rule{}
	}
	if len(k.known) >= 2*maxRules { // only who does not keep to the protocol comes here
		return errMalformed
	}
	k.known[r.id] = r.rule()
	return nil
}

// find is nil when a verdict names no rule. Of one that was not told only the name is
// known; its waits are spread, as is the default.
func (k *Rules) find(id uint64, name string) *limit.Rule {
	if r := k.known[id]; r != nil {
		return r
	}
	if name == "" {
		return nil
	}
	return &limit.Rule{Name: name, Jitter: true}
}

// told is a rule as a node tells it.
type told struct {
	id             uint64
	name, tier     string
	jitter, shadow bool
	spec           limit.Spec
}

func (t *told) read(f *field) (err error) {
	switch f.tag {
	case rID | kindVarint:
		t.id = f.number
	case rName | kindBytes:
		t.name = f.bytes
	case rTier | kindBytes:
		t.tier = f.bytes
	case rAlgorithm | kindBytes:
		t.spec.Algorithm, _ = limit.ParseAlgorithm(f.bytes) // one of a later version is none
	case rLimit | kindVarint:
		t.spec.Limit = int64(f.number)
	case rWindow | kindBytes:
		t.spec.Window, err = readDuration(f.bytes)
	case rCalendar | kindBytes:
		t.spec.Calendar, _ = limit.ParseCalendar(f.bytes)
	case rTimezone | kindBytes:
		t.spec.Timezone = f.bytes
	case rBurst | kindVarint:
		t.spec.Burst = int64(f.number)
	case rJitter | kindVarint:
		t.jitter = f.number != 0
	case rShadow | kindVarint:
		t.shadow = f.number != 0
	}
	return err
}

// rule compiles what is told, so that it knows how long a month is. What this
// version cannot compile (an algorithm of a later one, a time zone that this machine
// lacks) still has its numbers.
func (t *told) rule() *limit.Rule {
	r, err := limit.NewRule(t.spec)
	if err != nil {
		r = &limit.Rule{Spec: t.spec}
	}
	r.Name, r.Tier, r.Jitter, r.Shadow = t.name, t.tier, t.jitter, t.shadow
	return r
}
