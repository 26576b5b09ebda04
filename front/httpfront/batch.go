package httpfront

import (
	"bytes"
	"fmt"
	"net/http"

	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/limit"
)

const (
	maxChecks = 1000
	// maxExplained bounds the answer: an explanation names every rule of a tier,
	// of which there may be a thousand.
	maxExplained = 32
)

// item is one check of a batch and its answer. An item that is bad input has
// its error from the start and is never asked.
type item struct {
	req asked
	err error
	reply
}

func (s *server) checks(w http.ResponseWriter, r *http.Request) {
	x := s.borrow()
	defer s.giveBack(x)
	items, err := s.readChecks(x, w, r)
	if err == nil {
		s.ask(r, items)
		err = r.Context().Err()
	}
	if err != nil {
		s.problem(err).Write(w)
		return
	}
	x.reply = s.appendAnswers(x.reply[:0], items)
	writeJSON(w, http.StatusOK, x.reply)
}

// readChecks reads {"checks":[…]}. A text that is not JSON is refused whole, a
// check that is wrong for itself.
func (s *server) readChecks(x *exchange, w http.ResponseWriter, r *http.Request) ([]item, error) {
	if err := x.read(w, r, maxChecksBytes); err != nil {
		return nil, err
	}
	var items []item
	seen := false
	err := x.decoder.object("body", func(name []byte) error {
		switch {
		case string(name) != "checks":
			return &limit.InputError{Field: fmt.Sprintf("%.60s", name), Problem: "is not a field here; there is checks"}
		case seen:
			return twice("checks")
		}
		seen = true
		var err error
		items, err = s.readList(x)
		return err
	})
	if err == nil && !seen {
		err = &limit.InputError{Field: "checks", Problem: "is missing; it must be a list of checks"}
	}
	if err == nil {
		err = x.decoder.end()
	}
	return items, err
}

func (s *server) readList(x *exchange) ([]item, error) {
	list := x.decoder.json
	if list.PeekKind() != '[' {
		_, err := x.decoder.scalar("checks", '[')
		return nil, err
	}
	if _, err := list.ReadToken(); err != nil {
		return nil, syntaxError(err)
	}
	var items []item
	explained := 0
	for list.PeekKind() != ']' {
		raw, err := list.ReadValue()
		if err != nil {
			return nil, syntaxError(err)
		}
		if len(items) == maxChecks {
			return nil, &limit.InputError{Field: "checks", Problem: fmt.Sprintf("has more than %d entries; send them in parts", maxChecks)}
		}
		x.item.reset(bytes.NewBuffer(raw))
		req, err := x.item.check("check", checkFields)
		req.IP = s.Identity.Network(req.IP)
		if err == nil && req.explain {
			if explained++; explained > maxExplained {
				err = &limit.InputError{Field: "explain", Problem: fmt.Sprintf("is asked for more than %d times in one batch", maxExplained)}
			}
		}
		items = append(items, item{req: req, err: err})
	}
	if _, err := list.ReadToken(); err != nil {
		return nil, syntaxError(err)
	}
	return items, nil
}

// ask has the checks of one key decided in their order and those of different
// keys side by side.
func (s *server) ask(r *http.Request, items []item) {
	front.SideBySide(len(items),
		func(i int) (string, bool) { return items[i].req.Key, items[i].err == nil },
		func(i int) {
			it := &items[i]
			it.reply, it.err = s.answer(r.Context(), &it.req, s.Checker.Check)
		})
}

func (s *server) appendAnswers(b []byte, items []item) []byte {
	now := s.Now()
	b = append(b, `{"verdicts":[`...)
	for i := range items {
		if i > 0 {
			b = append(b, ',')
		}
		if err := items[i].err; err != nil {
			b = append(b, `{"error":`...)
			b = append(b, s.problem(err).JSON()...)
			b = append(b, '}')
		} else {
			b = items[i].append(b, now)
		}
	}
	return append(b, "]}"...)
}
