package live

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ringlimit/ringlimit/rules"
)

func tier(name string) rules.EntityName {
	return rules.EntityName{Kind: rules.TierEntity, Name: name}
}

func client(id string) rules.EntityName {
	return rules.EntityName{Kind: rules.ClientEntity, Name: id}
}

// limits is the body of a tier whose only rule has this limit.
func limits(n int) []byte {
	return fmt.Appendf(nil, `{"rules":[{"name":"all","algorithm":"fixed_window","limit":%d,"window":"60s"}]}`, n)
}

func put(t testing.TB, s *Store, name rules.EntityName, body []byte) Entry {
	t.Helper()
	_, e, err := s.Put(name, body, Precondition{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func remove(t testing.TB, s *Store, name rules.EntityName) Entry {
	t.Helper()
	_, e, err := s.Delete(name, Precondition{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// file is a rule file of tiers and their limits.
func file(t testing.TB, tiers map[string]int) *rules.Set {
	t.Helper()
	var b strings.Builder
	b.WriteString("tiers:\n")
	for name, n := range tiers {
		fmt.Fprintf(&b, "  %s: [{name: all, algorithm: fixed_window, limit: %d, window: 60s}]\n", name, n)
	}
	set, err := rules.Parse("rules.yaml", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// shown is all entities in force.
func shown(set *rules.Set) string {
	var b strings.Builder
	for name, body := range set.Entities() {
		fmt.Fprintf(&b, "%s %s\n", name, body)
	}
	return b.String()
}

// copyAll brings to what it lacks, as nodes do.
func copyAll(t testing.TB, to, from *Store) {
	t.Helper()
	entries, _, ok := from.Since(to.Summary().Digest)
	if !ok {
		entries, _ = from.Newer(to.Digest())
	}
	if _, _, err := to.Merge(entries); err != nil {
		t.Fatal(err)
	}
}
