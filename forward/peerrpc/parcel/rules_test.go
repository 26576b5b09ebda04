package parcel

import (
	"errors"
	"strings"
	"testing"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

func both(rules ...*limit.Rule) *transfer.Replicate {
	m := &transfer.Replicate{}
	for _, rule := range rules {
		m.Copies = append(m.Copies, replicate(rule).Copies...)
	}
	return m
}

// A rule goes over a stream with its first counter, and not again, however the
// rules alternate.
func TestRuleTravelsOnce(t *testing.T) {
	a, b, c := bucket(t, 1), bucket(t, 2), bucket(t, 3)
	p, u := NewPacker(), NewUnpacker(stranger())
	for _, step := range []struct {
		m    *transfer.Replicate
		want []*limit.Rule
	}{
		{both(a, b, a, b), []*limit.Rule{a, b}},
		{both(b, a), nil},
		{both(a, c, mustRule(t, a.Spec)), []*limit.Rule{c}},
	} {
		l := mustPack(t, p, step.m)
		if len(l.Rules) != len(step.want) {
			t.Fatalf("%d rules travel, want %d", len(l.Rules), len(step.want))
		}
		for i, rule := range step.want {
			if string(l.Rules[i]) != string(rule.Encode()) || l.RuleIds[i] != uint64(rule.ID()) {
				t.Errorf("rule %d is %s", i, l.Rules[i])
			}
		}
		same(t, mustUnpack(t, u, travel(t, l)), step.m)
	}
}

// What a rule is cannot be said twice.
func TestRuleStaysWhatItWas(t *testing.T) {
	rule := bucket(t, 1)
	u := NewUnpacker(stranger())
	l := mustPack(t, NewPacker(), replicate(rule))
	mustUnpack(t, u, l)
	mustUnpack(t, u, mustPack(t, NewPacker(), replicate(bucket(t, 2)))) // another is the latest
	l.Rules[0] = []byte("{}")
	same(t, mustUnpack(t, u, l), replicate(rule))
}

// Another stream knows nothing of the first.
func TestRuleTravelsOnEachStream(t *testing.T) {
	rule := bucket(t, 1)
	for range 2 {
		l := mustPack(t, NewPacker(), replicate(rule))
		same(t, mustUnpack(t, NewUnpacker(stranger()), travel(t, l)), replicate(rule))
	}
}

// A rule that the stream has not named may be one that this node knows.
func TestRuleOfTheNodeServes(t *testing.T) {
	rule := bucket(t, 1)
	l := mustPack(t, NewPacker(), replicate(rule))
	l.RuleIds, l.Rules = nil, nil
	if _, err := NewUnpacker(stranger()).Unpack(travel(t, l)); err == nil || !strings.Contains(err.Error(), "has not named") {
		t.Errorf("a rule that nobody knows: %v", err)
	}
	cfg := stranger()
	cfg.Rule = func(id limit.RuleID) *limit.Rule {
		if id == rule.ID() {
			return rule
		}
		return nil
	}
	m := mustUnpack(t, NewUnpacker(cfg), travel(t, l))
	if got := entries(m)[0].Rule; got != rule {
		t.Errorf("the rule is %p, want the node's own %p", got, rule)
	}
	// It also spares the reading of one that is named.
	m = mustUnpack(t, NewUnpacker(cfg), travel(t, mustPack(t, NewPacker(), replicate(rule))))
	if got := entries(m)[0].Rule; got != rule {
		t.Errorf("the rule is %p, want the node's own %p", got, rule)
	}
}

// A rule that only a later version can read makes its own counters useless, and
// no others. A table says so when it is to import them.
func TestUnreadableRuleCostsItsCounters(t *testing.T) {
	later, known := bucket(t, 1), bucket(t, 2)
	for what, spec := range map[string]string{
		"a later version's": `{"algorithm":"token_bucket","limit":1,"window":60000000000,"new":1}`,
		"an unknown zone's": `{"algorithm":"fixed_window","limit":1,"calendar":"day","timezone":"Mars/Base"}`,
		"a long one":        `{"algorithm":"` + strings.Repeat("x", limit.MaxSpecBytes) + `"}`,
	} {
		p, u := NewPacker(), NewUnpacker(stranger())
		m := &transfer.Replicate{Copies: []transfer.Copy{{Partition: 3, Chunk: transfer.Chunk{
			Entries: []owner.Entry{counter(3, "a", later), counter(3, "b", known), counter(3, "c", later)},
		}}}}
		l := mustPack(t, p, m)
		l.Rules[0] = []byte(spec)
		got := entries(mustUnpack(t, u, travel(t, l)))
		if got[0].Rule != nil || got[1].Rule == nil || got[1].Rule.ID() != known.ID() || got[2].Rule != nil {
			t.Errorf("%s: rules %v, %v, %v", what, got[0].Rule, got[1].Rule, got[2].Rule)
		}
		table := owner.NewTable(owner.Config{Partitions: partitions})
		table.SetPhase(3, owner.Acquiring)
		err := table.Import(3, start, []owner.Entry{*got[0], *got[1], *got[2]})
		if n, _ := table.Size(3); err == nil || n != 1 {
			t.Errorf("%s: the table has %d counters and says %v", what, n, err)
		}
	}
}

// A stream names so many rules and no more. The sender says so first.
func TestStreamNamesSoManyRules(t *testing.T) {
	last, more := bucket(t, 1), bucket(t, 2)
	p, u := NewPacker(), NewUnpacker(stranger())
	for i := range limit.RuleID(maxRules - 1) {
		p.rules[i], u.rules[i] = struct{}{}, nil
	}
	l := mustPack(t, p, replicate(last))
	same(t, mustUnpack(t, u, travel(t, l)), replicate(last))
	if _, err := p.Pack(replicate(more)); !errors.Is(err, ErrTooManyRules) {
		t.Errorf("Pack: %v, want ErrTooManyRules", err)
	}
	if _, err := u.Unpack(travel(t, mustPack(t, NewPacker(), replicate(more)))); !errors.Is(err, ErrTooManyRules) {
		t.Errorf("Unpack: %v, want ErrTooManyRules", err)
	}
	mustPack(t, p, replicate(last)) // what is named goes on
}

// The rules of a letter that is not sent are yet to travel.
func TestRulesOfALargeMessageAreNotSent(t *testing.T) {
	rule := bucket(t, 1)
	p := NewPacker()
	large := replicate(rule)
	long := counter(3, strings.Repeat("x", maxName-8), rule)
	for range maxCounters/maxName + 2 {
		large.Copies[0].Chunk.Entries = append(large.Copies[0].Chunk.Entries, long)
	}
	if _, err := p.Pack(large); !errors.Is(err, ErrTooLarge) {
		t.Fatalf("%v, want ErrTooLarge", err)
	}
	l := mustPack(t, p, replicate(rule))
	same(t, mustUnpack(t, NewUnpacker(stranger()), travel(t, l)), replicate(rule))
}
