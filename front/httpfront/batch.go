package httpfront

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/limit"
)

const (
	maxChecks = 1000
	// maxExplained bounds the answer: an explanation names every rule of a tier,
	// of which there may be a thousand.
	maxExplained = 32
)

// batch is the checks of one call, and the answers as they come: written when they do,
// for a verdict lasts no longer, and put into the order of the checks in the end.
type batch struct {
	checks    []limit.Request // without those that are bad input
	indexOf   []int           // of each check
	explain   []bool          // for each check
	explained int             // how many ask for it

	text  []byte
	spans [][2]int // where each answer is in text
}

// forget lets go of what is the client's.
func (b *batch) forget() {
	clear(b.checks)
	*b = batch{checks: b.checks[:0], indexOf: b.indexOf[:0], explain: b.explain[:0], text: b.text[:0], spans: b.spans[:0]}
}

func (s *server) checks(w http.ResponseWriter, r *http.Request) {
	x := s.borrow()
	defer s.giveBack(x)
	err := s.readChecks(x, w, r)
	if err == nil {
		s.ask(r.Context(), &x.batch)
		err = r.Context().Err()
	}
	if err != nil {
		s.problem(err).Write(w)
		return
	}
	x.reply = x.batch.appendAnswers(x.reply[:0])
	s.writeJSON(w, http.StatusOK, x.reply)
}

// readChecks reads {"checks":[…]}. A text that is not JSON is refused whole, a
// check that is wrong for itself.
func (s *server) readChecks(x *exchange, w http.ResponseWriter, r *http.Request) error {
	if err := x.read(w, r, maxChecksBytes); err != nil {
		return err
	}
	seen := false
	err := x.decoder.object("body", func(name []byte) error {
		switch {
		case string(name) != "checks":
			return &limit.InputError{Field: fmt.Sprintf("%.60s", name), Problem: "is not a field here; there is checks"}
		case seen:
			return twice("checks")
		}
		seen = true
		return s.readList(x)
	})
	if err == nil && !seen {
		err = &limit.InputError{Field: "checks", Problem: "is missing; it must be a list of checks"}
	}
	if err == nil {
		err = x.decoder.end()
	}
	return err
}

func (s *server) readList(x *exchange) error {
	list := x.decoder.json
	if list.PeekKind() != '[' {
		_, err := x.decoder.scalar("checks", '[')
		return err
	}
	if _, err := list.ReadToken(); err != nil {
		return syntaxError(err)
	}
	for list.PeekKind() != ']' {
		raw, err := list.ReadValue()
		if err != nil {
			return syntaxError(err)
		}
		if len(x.batch.spans) == maxChecks {
			return &limit.InputError{Field: "checks", Problem: fmt.Sprintf("has more than %d entries; send them in parts", maxChecks)}
		}
		end := int(list.InputOffset())
		x.part.reset(raw, x.decoder.text[end-len(raw):end])
		s.readItem(x)
	}
	if _, err := list.ReadToken(); err != nil {
		return syntaxError(err)
	}
	return nil
}

// readItem takes in the check that x.part has. One that is bad input has its answer at
// once and is never asked.
func (s *server) readItem(x *exchange) {
	b, i := &x.batch, len(x.batch.spans)
	b.spans = append(b.spans, [2]int{})
	req, err := x.part.check("check", checkFields)
	if err == nil && req.explain {
		if b.explained++; b.explained > maxExplained {
			err = &limit.InputError{Field: "explain", Problem: fmt.Sprintf("is asked for more than %d times in one batch", maxExplained)}
		}
	}
	if err != nil {
		s.answered(b, i, nil, err)
		return
	}
	req.IP = s.Identity.Network(req.IP)
	b.checks, b.indexOf, b.explain = append(b.checks, req.Request), append(b.indexOf, i), append(b.explain, req.explain)
}

// ask puts the checks to the Checker at once, unless one is to be explained: then all
// are asked one by one, or it would not be known in which order those of its key are
// decided.
func (s *server) ask(ctx context.Context, b *batch) {
	if b.explained > 0 {
		s.askExplained(ctx, b)
		return
	}
	front.CheckAll(ctx, s.Checker, b.checks, func(i int, v *limit.Verdict, err error) {
		a := reply{}
		if err == nil {
			a.verdict = *v
		}
		s.answered(b, b.indexOf[i], &a, err)
	})
}

func (s *server) askExplained(ctx context.Context, b *batch) {
	var answering sync.Mutex
	front.SideBySide(len(b.checks),
		func(i int) (string, bool) { return b.checks[i].Key, true },
		func(i int) {
			a, err := s.answer(ctx, &asked{b.checks[i], b.explain[i]}, s.Checker.Check)
			answering.Lock()
			defer answering.Unlock()
			s.answered(b, b.indexOf[i], &a, err)
		})
}

// answered writes the answer to a check.
func (s *server) answered(b *batch, i int, a *reply, err error) {
	start := len(b.text)
	if err != nil {
		b.text = append(b.text, `{"error":`...)
		b.text = append(b.text, s.problem(err).JSON()...)
		b.text = append(b.text, '}')
	} else {
		b.text = a.append(b.text, s.Now())
	}
	b.spans[i] = [2]int{start, len(b.text)}
}

func (b *batch) appendAnswers(out []byte) []byte {
	out = append(out, `{"verdicts":[`...)
	for i, at := range b.spans {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, b.text[at[0]:at[1]]...)
	}
	return append(out, "]}"...)
}
