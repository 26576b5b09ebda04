package main

import (
	"fmt"
	"strings"

	"github.com/ringlimit/ringlimit"
	"github.com/ringlimit/ringlimit/front/adminfront"
	"github.com/ringlimit/ringlimit/rules"
)

// note logs what a PUT or DELETE has changed.
func (e *editor) note(w adminfront.Write, written ringlimit.Written) {
	by := "anyone at " + w.Author.Address
	if w.Author.Token {
		by = "the token's holder at " + w.Author.Address
	}
	name := rules.EntityName{Kind: rules.EntityKind(w.Entity.Kind), Name: w.Entity.Name}
	changes := changed(name, written)
	if len(changes) == 0 {
		e.audit.Info("rules written as they were", "by", by, "entity", name.String(), "etag", written.ETag)
	}
	e.noteAll(by, changes)
}

// changed compares the entity alone: there may be a hundred thousand. One that this
// version could not read is told whole.
func changed(name rules.EntityName, written ringlimit.Written) []rules.Change {
	was, is := only(name, written.Was), only(name, written.Is)
	if _, readable := was.Entity(name); !readable && written.Was != nil {
		return []rules.Change{{Entity: name, From: string(written.Was), To: string(written.Is)}}
	}
	return rules.Diff(was, is)
}

// only is a Set of one entity, or of none.
func only(name rules.EntityName, body []byte) *rules.Set {
	set, _ := new(rules.Set).WithLenient(map[rules.EntityName][]byte{name: body}) // its tier is not there
	return set
}

func (e *editor) noteAll(by string, changes []rules.Change) {
	for _, c := range changes {
		e.audit.Info("rules changed", "by", by, "entity", c.Entity.String(), "rule", c.Rule, "field", c.Field, "from", shorten(c.From), "to", shorten(c.To))
	}
}

// maxLogged bounds each side of a change in the log: a whole tier may be a MiB.
const maxLogged = 4 << 10

func shorten(s string) string {
	if len(s) <= maxLogged {
		return s
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(s[:maxLogged], ""), len(s))
}
