package adminfront

import (
	"errors"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ringlimit/ringlimit/front"
)

// Refusal is a problem with more to it than its detail.
type Refusal struct {
	*front.Problem
	// Errors are all that is wrong with a body.
	Errors []FieldError `json:"errors,omitempty"`
	// Clients are in the tier that was to be deleted.
	Clients []string `json:"clients,omitempty"`

	authenticate string // WWW-Authenticate; empty: none
}

// FieldError is one thing that is wrong with a body.
type FieldError struct {
	Field  string `json:"field"`  // its path, such as rules[0].limit; empty: the whole body
	Detail string `json:"detail"` // what is wrong, and what would be right
	Line   int    `json:"line"`   // of the body, from 1
	Column int    `json:"column"` // in characters, from 1
}

// Unwrap makes the problem known to front.ProblemOf.
func (r *Refusal) Unwrap() error { return r.Problem }

// refuse answers with an error.
func refuse(w http.ResponseWriter, err error) {
	r, ok := errors.AsType[*Refusal](err)
	if !ok {
		r = &Refusal{Problem: front.ProblemOf(err)}
	}
	h := w.Header()
	if r.authenticate != "" {
		h.Set("WWW-Authenticate", r.authenticate)
	}
	if r.Status == http.StatusUnsupportedMediaType {
		h.Set("Accept", "application/json")
	}
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(r.Status)
	body, _ := json.Marshal(r, jsontext.AllowInvalidUTF8(true)) // texts that the client sent
	w.Write(body)
}

func notAllowed(w http.ResponseWriter, methods string) {
	w.Header().Set("Allow", methods)
	refuse(w, front.NewProblem(http.StatusMethodNotAllowed, "", "this path takes "+methods))
}
