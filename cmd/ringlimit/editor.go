package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"

	"github.com/ringlimit/ringlimit"
	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/front/adminfront"
	"github.com/ringlimit/ringlimit/rules"
)

// editor reads and changes the rules of a node for the admin door and the rule
// file. Every change leaves a line in the log for each field: who, what, from, to.
type editor struct {
	*standIn
	log   *slog.Logger
	audit *slog.Logger // of changes

	// changing is held from a change until its lines are written: two changes at once
	// would else be told in an order in which they were not made.
	changing sync.Mutex
}

// All is adminfront.Rules'. The tag is read first: rules that are newer than their
// tag are only sent once too often.
func (e *editor) All() (adminfront.Document, error) {
	n, err := e.get()
	if err != nil {
		return adminfront.Document{}, err
	}
	tag := n.RulesETag()
	return adminfront.Document{ETag: tag, Body: n.Rules().LimitsJSON()}, nil
}

// Get is adminfront.Rules'.
func (e *editor) Get(of adminfront.Entity) (adminfront.Document, error) {
	n, err := e.get()
	if err != nil {
		return adminfront.Document{}, err
	}
	if doc, ok := document(n, of); ok {
		return doc, nil
	}
	return adminfront.Document{}, notFound(of)
}

func notFound(of adminfront.Entity) error {
	problem := "there is no such tier; /v1/limits lists all"
	if of.Kind == adminfront.Client {
		problem = "the client has no entry; its tier's rules apply"
	}
	return front.NewProblem(http.StatusNotFound, string(of.Kind), problem)
}

// Put is adminfront.Rules'.
func (e *editor) Put(w adminfront.Write, body []byte) (now adminfront.Document, created bool, err error) {
	n, err := e.get()
	if err != nil {
		return now, false, err
	}
	e.changing.Lock()
	defer e.changing.Unlock()
	written, err := put(n, w, body)
	if err != nil {
		return now, false, e.refused(n, w.Entity, err)
	}
	e.note(w, written)
	return adminfront.Document{Body: written.Is, ETag: written.ETag}, written.Was == nil, nil
}

// Delete is adminfront.Rules'.
func (e *editor) Delete(w adminfront.Write) error {
	n, err := e.get()
	if err != nil {
		return err
	}
	e.changing.Lock()
	defer e.changing.Unlock()
	written, err := remove(n, w)
	if err != nil {
		return e.refused(n, w.Entity, err)
	}
	e.note(w, written)
	return nil
}

// apply puts what a rule file has in force.
func (e *editor) apply(set *rules.Set, by string) error {
	n, err := e.get()
	if err != nil {
		return err
	}
	e.changing.Lock()
	defer e.changing.Unlock()
	changes, err := n.ApplyRules(set)
	if err != nil {
		return err
	}
	if len(changes) == 0 {
		e.log.Info("the rules are in force already", "by", by)
	}
	e.noteAll(by, changes)
	return nil
}

func document(n *ringlimit.Node, of adminfront.Entity) (adminfront.Document, bool) {
	read := n.Limits
	if of.Kind == adminfront.Client {
		read = n.Client
	}
	body, etag, ok := read(of.Name)
	return adminfront.Document{Body: body, ETag: etag}, ok
}

func put(n *ringlimit.Node, w adminfront.Write, body []byte) (ringlimit.Written, error) {
	p := ringlimit.Precondition{IfMatch: w.IfMatch, IfNoneMatch: w.IfNoneMatch}
	if w.Entity.Kind == adminfront.Client {
		return n.PutClient(w.Entity.Name, body, p)
	}
	return n.PutLimits(w.Entity.Name, body, p)
}

func remove(n *ringlimit.Node, w adminfront.Write) (ringlimit.Written, error) {
	p := ringlimit.Precondition{IfMatch: w.IfMatch, IfNoneMatch: w.IfNoneMatch}
	if w.Entity.Kind == adminfront.Client {
		return n.DeleteClient(w.Entity.Name, p)
	}
	return n.DeleteLimits(w.Entity.Name, p)
}

// refused says why a change was not made, as the admin door tells it.
func (e *editor) refused(n *ringlimit.Node, of adminfront.Entity, err error) error {
	bad, isBad := errors.AsType[*rules.Error](err)
	switch {
	case errors.Is(err, ringlimit.ErrInUse): // before the others: it has what the rules say with it
		return inUse(n.Rules(), of.Name)
	case isBad:
		return badRules(bad)
	case errors.Is(err, ringlimit.ErrPrecondition):
		return front.NewProblem(http.StatusPreconditionFailed, "", err.Error())
	case errors.Is(err, ringlimit.ErrNotFound):
		return notFound(of)
	case errors.Is(err, ringlimit.ErrFull):
		return front.NewProblem(http.StatusInsufficientStorage, "", err.Error())
	case errors.Is(err, ringlimit.ErrNoRules):
		return front.NewProblem(http.StatusServiceUnavailable, "", "the rules of the cluster have not come to this node yet; ask another node")
	case errors.Is(err, ringlimit.ErrLeft):
		return front.NewProblem(http.StatusServiceUnavailable, "", "the node is leaving its cluster; ask another node")
	}
	e.log.Error("a change of rules could not be kept, and was not made", "entity", string(of.Kind)+"/"+of.Name, "error", err)
	return front.NewProblem(http.StatusInternalServerError, "", "the change could not be kept on disk, and was not made; the node's log says why")
}

func badRules(bad *rules.Error) error {
	first := bad.Problems[0]
	r := &adminfront.Refusal{Problem: front.NewProblem(http.StatusBadRequest, first.Field, fieldLine(first.Field, first.Text))}
	for _, p := range bad.Problems {
		r.Errors = append(r.Errors, adminfront.FieldError{Field: p.Field, Detail: p.Text, Line: p.Line, Column: p.Column})
	}
	return r
}

func fieldLine(field, text string) string {
	if field == "" {
		return text
	}
	return field + ": " + text
}

// maxNamed bounds how many clients an answer names.
const maxNamed = 100

// inUse names the clients that have the tier.
func inUse(set *rules.Set, tier string) error {
	r := &adminfront.Refusal{Clients: []string{}}
	n := 0
	for name, body := range set.Entities() {
		var entry struct{ Tier string }
		if name.Kind != rules.ClientEntity || json.Unmarshal(body, &entry) != nil || entry.Tier != tier {
			continue
		}
		if n++; n <= maxNamed {
			r.Clients = append(r.Clients, name.Name)
		}
	}
	r.Problem = front.NewProblem(http.StatusConflict, "tier", fmt.Sprintf("%s in this tier; give them another one first", count(n, "client")))
	return r
}
