package peerrpc

import (
	"errors"

	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/rules"
	"github.com/ringlimit/ringlimit/rules/live"
)

// rulesBatch is about how many bytes a message about rules has, unless one entity
// is larger, and maxRulesGiven the most.
const (
	rulesBatch    = 64 << 10
	maxRulesGiven = live.MaxBody + 2*rulesBatch
	perItem       = 32 // bytes of an item's fixed part, about
)

var errColumns = errors.New("the lists of a message about rules differ in length")

// sendStamps hands all stamps to send, in messages.
func sendStamps(stamps []live.Stamp, send func(*peerpb.RulesAsked) error) error {
	for len(stamps) > 0 {
		m, size := new(peerpb.RulesAsked), 0
		for len(stamps) > 0 && size < rulesBatch {
			s := stamps[0]
			m.Kinds = append(m.Kinds, []byte(s.Name.Kind))
			m.Names = append(m.Names, []byte(s.Name.Name))
			m.Counts = append(m.Counts, s.Version.Count)
			m.Nodes = append(m.Nodes, []byte(s.Version.Node))
			m.Sums = append(m.Sums, s.Sum)
			size += perItem + len(s.Name.Name) + len(s.Version.Node)
			stamps = stamps[1:]
		}
		if err := send(m); err != nil {
			return err
		}
	}
	return nil
}

// stamps is those that have come, within the bounds of what a store holds.
type stamps struct {
	list  []live.Stamp
	bytes int               // of names
	words map[string]string // kinds and nodes, of which there are few
}

// add refuses a message that no store would have sent.
func (s *stamps) add(m *peerpb.RulesAsked) error {
	n := len(m.Names)
	if len(m.Kinds) != n || len(m.Counts) != n || len(m.Nodes) != n || len(m.Sums) != n {
		return errColumns
	}
	if n > live.MaxEntries-len(s.list) {
		return errTooManyRules
	}
	for i := range n {
		if s.bytes += len(m.Names[i]); s.bytes > live.MaxBytes {
			return errTooManyRules
		}
		name := rules.EntityName{Kind: rules.EntityKind(s.word(m.Kinds[i])), Name: string(m.Names[i])}
		t := live.Stamp{Name: name, Version: live.Version{Count: m.Counts[i], Node: s.word(m.Nodes[i])}, Sum: m.Sums[i]}
		if err := t.Check(); err != nil {
			return err
		}
		s.list = append(s.list, t)
	}
	return nil
}

// word is one string for all that are equal.
func (s *stamps) word(b []byte) string {
	if w, ok := s.words[string(b)]; ok {
		return w
	}
	if s.words == nil {
		s.words = map[string]string{}
	}
	w := string(b)
	s.words[w] = w
	return w
}

var errTooManyRules = errors.New("too many rules")

func entityName(kind, name []byte) rules.EntityName {
	return rules.EntityName{Kind: rules.EntityKind(kind), Name: string(name)}
}

// sendEntries hands all entries to send, in messages: at least one, with the
// digest.
func sendEntries(entries []live.Entry, digest uint64, send func(*peerpb.RulesGiven) error) error {
	for m := (&peerpb.RulesGiven{Digest: digest}); m != nil; {
		for size := 0; len(entries) > 0 && size < rulesBatch; entries = entries[1:] {
			e := entries[0]
			if size += perItem + len(e.Name.Name) + len(e.Version.Node) + len(e.Body); size > rulesBatch && len(m.Entries) > 0 {
				break // it goes alone, if it is large
			}
			m.Entries = append(m.Entries, &peerpb.RulesEntry{
				Kind: []byte(e.Name.Kind), Name: []byte(e.Name.Name), Count: e.Version.Count, Node: []byte(e.Version.Node), Body: e.Body,
			})
		}
		if err := send(m); err != nil {
			return err
		}
		if m = nil; len(entries) > 0 {
			m = new(peerpb.RulesGiven)
		}
	}
	return nil
}

// received is the entries that have come, within the bounds of what a store
// holds.
type received struct {
	entries []live.Entry
	bytes   int
}

func (r *received) add(m *peerpb.RulesGiven) error {
	if len(m.Entries) > live.MaxEntries-len(r.entries) {
		return errTooManyRules
	}
	for _, g := range m.Entries {
		e := live.Entry{Name: entityName(g.Kind, g.Name), Version: live.Version{Count: g.Count, Node: string(g.Node)}}
		if len(g.Body) > 0 {
			e.Body = g.Body
		}
		if err := e.Check(); err != nil {
			return err
		}
		if r.bytes += len(g.Name) + len(g.Body); r.bytes > live.MaxBytes {
			return errTooManyRules
		}
		r.entries = append(r.entries, e)
	}
	return nil
}
