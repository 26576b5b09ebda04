package adminfront

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/ringlimit/ringlimit/front"
)

// Rules is the cluster's rules, as one node reads and changes them. An error is a
// *Refusal, or told as front.ProblemOf does.
type Rules interface {
	// All is the answer to GET /v1/limits.
	All() (Document, error)
	// Get is a tier or a client; one that does not exist is a problem 404.
	Get(Entity) (Document, error)
	// Put writes the body and returns what is then in force. created says that
	// there was nothing before.
	Put(w Write, body []byte) (now Document, created bool, err error)
	Delete(Write) error
}

// Kind is what an entity is.
type Kind string

const (
	Tier   Kind = "tier"
	Client Kind = "client"
)

// Entity is what is read and written as one: a tier or a client.
type Entity struct {
	Kind Kind
	Name string // of a client any text: it is the key of its requests
}

// Document is JSON and its entity tag, quotes included.
type Document struct {
	Body []byte
	ETag string
}

// Write is a change that somebody who may make it asks for.
type Write struct {
	Entity      Entity
	IfMatch     string // header values, see RFC 9110, section 13.1; empty: absent
	IfNoneMatch string
	Author      Author
}

// Author is who changes rules, as far as can be known.
type Author struct {
	Address string // host:port of the connection
	Token   bool   // has shown the token; false: none is needed here
}

const (
	limitsPath  = "/v1/limits"
	clientsPath = "/v1/clients/"
)

// entityOf takes the entity out of a path, whose segments are unescaped already.
func entityOf(path string) (Entity, bool) {
	if tier, ok := strings.CutPrefix(path, limitsPath+"/"); ok {
		return Entity{Tier, tier}, true
	}
	id, ok := strings.CutPrefix(path, clientsPath)
	return Entity{Client, id}, ok
}

func (d *door) limits(w http.ResponseWriter, r *http.Request) {
	all, err := d.Rules.All()
	if err != nil {
		refuse(w, err)
		return
	}
	serveDocument(w, r, all)
}

func (d *door) entity(w http.ResponseWriter, r *http.Request, e Entity) {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		d.show(w, r, e)
	case http.MethodPut:
		d.put(w, r, e)
	case http.MethodDelete:
		d.delete(w, r, e)
	default:
		notAllowed(w, "GET, HEAD, PUT, DELETE")
	}
}

func (d *door) show(w http.ResponseWriter, r *http.Request, e Entity) {
	doc, err := d.Rules.Get(e)
	if err != nil {
		refuse(w, err)
		return
	}
	serveDocument(w, r, doc)
}

// serveDocument leaves the conditions of the request to net/http: 304, 412.
func serveDocument(w http.ResponseWriter, r *http.Request, doc Document) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-cache") // ask again, with If-None-Match
	h.Set("ETag", doc.ETag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(doc.Body))
}

func (d *door) put(w http.ResponseWriter, r *http.Request, e Entity) {
	write, err := d.write(r, e)
	var body []byte
	if err == nil {
		body, err = readBody(w, r)
	}
	var now Document
	var created bool
	if err == nil {
		now, created, err = d.Rules.Put(write, body)
	}
	if err != nil {
		d.refuseWrite(w, r, e, err)
		return
	}
	h := w.Header()
	h.Set("ETag", now.ETag)
	// The body is not what was sent but what is now in force at this path; only
	// with this line is the tag that of the body (RFC 9110, section 8.7).
	h.Set("Content-Location", r.URL.EscapedPath())
	h.Set("Content-Type", "application/json")
	if created {
		w.WriteHeader(http.StatusCreated)
	}
	w.Write(now.Body)
}

func (d *door) delete(w http.ResponseWriter, r *http.Request, e Entity) {
	write, err := d.write(r, e)
	if err == nil {
		err = d.Rules.Delete(write)
	}
	if err != nil {
		d.refuseWrite(w, r, e, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// write is what is asked for, by somebody who may.
func (d *door) write(r *http.Request, e Entity) (Write, error) {
	author, err := d.guard.write(r)
	if err != nil {
		return Write{}, err
	}
	match, err := condition(r.Header, "If-Match")
	if err != nil {
		return Write{}, err
	}
	noneMatch, err := condition(r.Header, "If-None-Match")
	return Write{Entity: e, IfMatch: match, IfNoneMatch: noneMatch, Author: author}, err
}

// refuseWrite notes who tried what they may not; of what they sent, a bounded part.
func (d *door) refuseWrite(w http.ResponseWriter, r *http.Request, e Entity, err error) {
	if p := front.ProblemOf(err); p.Status == http.StatusUnauthorized || p.Status == http.StatusForbidden {
		d.Logger.Warn("a change of rules was refused", "address", r.RemoteAddr, "method", fmt.Sprintf("%.16s", r.Method), "entity", fmt.Sprintf("%s/%.256s", e.Kind, e.Name), "why", p.Detail)
	}
	refuse(w, err)
}
