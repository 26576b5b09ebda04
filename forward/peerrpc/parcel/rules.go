package parcel

import (
	"fmt"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
)

// introduce sees to it that the rules of the entries are in this letter, unless
// they have been in an earlier one.
func (p *Packer) introduce(entries []owner.Entry) error {
	for i := range entries {
		rule := entries[i].Rule
		if rule == p.last {
			continue
		}
		if _, known := p.rules[rule.ID()]; !known {
			if len(p.rules) >= maxRules {
				return ErrTooManyRules
			}
			p.rules[rule.ID()] = struct{}{}
			p.fresh = append(p.fresh, rule)
		}
		p.last = rule
	}
	return nil
}

// withdraw forgets the rules of a letter that is not sent.
func (p *Packer) withdraw() {
	for _, rule := range p.fresh {
		delete(p.rules, rule.ID())
	}
	p.last = nil
}

// learn takes in the rules that a letter brings.
func (u *Unpacker) learn(ids []uint64, specs [][]byte) error {
	if len(ids) != len(specs) {
		return fmt.Errorf("parcel: rules: %d ids have %d specs", len(ids), len(specs))
	}
	for i, spec := range specs {
		id := limit.RuleID(ids[i])
		if _, known := u.rules[id]; known {
			continue
		}
		if len(u.rules) >= maxRules {
			return ErrTooManyRules
		}
		rule, err := u.read(id, spec)
		if err != nil {
			return err
		}
		u.rules[id] = rule
	}
	return nil
}

// read makes a rule of its spec. It is nil when this version cannot: then its
// counters are of no use here, but the others are.
func (u *Unpacker) read(id limit.RuleID, data []byte) (*limit.Rule, error) {
	if rule := u.cfg.lookUp(id); rule != nil {
		return rule, nil
	}
	spec, err := limit.ParseSpec(data)
	if err != nil {
		return nil, nil
	}
	rule, err := limit.NewRule(spec)
	if err != nil {
		return nil, nil
	}
	if rule.ID() != id {
		return nil, fmt.Errorf("parcel: rules: %016x is the id of another rule than %q", uint64(id), data)
	}
	return rule, nil
}

// rule is what the stream has said of a rule, or else what this node knows.
func (u *Unpacker) rule(id limit.RuleID) (*limit.Rule, error) {
	if u.last != nil && u.last.ID() == id {
		return u.last, nil
	}
	rule, known := u.rules[id]
	if !known {
		if rule = u.cfg.lookUp(id); rule == nil {
			return nil, fmt.Errorf("is under rule %016x, which the stream has not named", uint64(id))
		}
	}
	u.last = rule
	return rule, nil
}

func (c *UnpackConfig) lookUp(id limit.RuleID) *limit.Rule {
	if c.Rule == nil {
		return nil
	}
	return c.Rule(id)
}
