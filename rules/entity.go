package rules

import (
	"fmt"
	"strings"
	"unicode/utf8"

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

// entity is a tier or a client, compiled. It is immutable: Sets share it, and
// clients with equal bodies do. What a search reads comes first, so that it lies
// close together.
type entity struct {
	tier   string // of a client; may be empty
	dims   []dimensionSet
	levels [2]level // the most specific first
	first  room

	of       EntityName // the tier; of clients only the kind, for they share
	rules    []*rule
	body     []byte // canonical JSON
	warnings []string
}

// room is for an entity's first rule and dimension. Most clients have no more, and
// to choose theirs then reads one piece of memory, not one after the other.
type room struct {
	dims  [1]dimensionSet
	plain [1]*rule
	rules [1]rule
}

// level is the rules of one degree of specificity, by the kind of their pattern.
type level struct {
	dims  [tracks]mask       // of the enforced rules, and of all
	paths *node              // nil: no path patterns
	names map[string][]*rule // by the route's name
	every []*rule            // pattern "*"
	plain []*rule            // no pattern
}

// rule is what the caller's side needs to know to choose it and to charge a
// counter.
type rule struct {
	priority int32
	text     int32 // equal for equal patterns of the entity
	order    int32 // in the file
	dim      uint8 // in entity.dims
	atLevel  uint8 // in entity.levels
	highest  bool  // of its level and dimension
	shadow   bool
	deny     bool // on_missing: deny
	client   bool // of a client, not of a tier

	limit   *limit.Rule // nil: unlimited
	by      []dimension
	prefix  string // of its counters' names, behind the id of a client
	pattern string // as written; empty: none
	name    string
}
