package rules

import (
	"fmt"
	"strings"
	"unicode/utf8"
	"unique"

	"github.com/ringlimit/ringlimit/limit"
)

// Bounds on a Set, and on the body of one of its entities.
const (
	MaxTiers     = 1_000
	MaxClients   = 100_000
	MaxRules     = 1_000 // of one tier or client
	MaxBodyBytes = 1 << 20
)

// EntityKind is what an entity is: a tier or a client.
type EntityKind string

const (
	TierEntity   EntityKind = "tier"
	ClientEntity EntityKind = "client"
)

// EntityName names what is written and replicated as one: a tier or a client,
// with all its rules.
type EntityName struct {
	Kind EntityKind
	Name string
}

// String is "tier/free" or "client/cust_42".
func (n EntityName) String() string { return string(n.Kind) + "/" + n.Name }

// ParseEntityName reads what String writes.
func ParseEntityName(text string) (EntityName, error) {
	kind, name, _ := strings.Cut(text, "/")
	n := EntityName{EntityKind(kind), name}
	if problem := n.problem(); problem != "" {
		return EntityName{}, fmt.Errorf("%.64q %s", text, problem)
	}
	return n, nil
}

func (n EntityName) problem() string {
	switch n.Kind {
	case TierEntity:
		return nameProblem(n.Name)
	case ClientEntity:
		return clientProblem(n.Name)
	}
	return "is neither a tier nor a client; write tier/NAME or client/ID"
}

// clientProblem checks a client's id, which is the key of its requests.
func clientProblem(id string) string {
	switch {
	case id == "":
		return "is empty; give the key that the client's requests have"
	case len(id) > limit.MaxKeyBytes:
		return fmt.Sprintf("is %d bytes long; at most %d are allowed", len(id), limit.MaxKeyBytes)
	case !utf8.ValidString(id):
		return "is not valid UTF-8"
	}
	return ""
}

// entity is a tier or a client, compiled. It is immutable. A Set's map holds it by
// value: of thousands of clients, asked in turn, a search then reads no memory but
// the map's and their plan's. The zero entity stands for none.
type entity struct {
	*plan
	limits []limit.Rule          // of plan.rules; the zero Rule where it is unlimited
	tier   unique.Handle[string] // the tier's name; of a client that of the tier it has, or ""
	*origin
}

// origin is what an entity was compiled from. Entities with one origin are one.
type origin struct {
	body     []byte   // canonical JSON
	heads    []string // of a tier: its rules' counters' names, up to the values
	warnings []string
}

func (e entity) exists() bool { return e.plan != nil }

func (e entity) tierName() string { return e.tier.Value() }
