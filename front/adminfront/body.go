package adminfront

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/limit"
)

// maxBody bounds the body of a PUT: as much as a tier or client may have.
const maxBody = 1 << 20

// readBody reads the body of a PUT, all of it or none.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if err := plainJSON(r.Header); err != nil {
		return nil, err
	}
	if r.ContentLength > maxBody {
		w.Header().Set("Connection", "close") // else the server waits for the body before it answers
		return nil, tooLarge()
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return nil, tooLarge()
	}
	if err != nil {
		return nil, &limit.InputError{Field: "body", Problem: "ended before its time"}
	}
	return body, nil
}

func tooLarge() error {
	return front.NewProblem(http.StatusRequestEntityTooLarge, "body", fmt.Sprintf("body: is too large; at most %d bytes are allowed", maxBody))
}

// plainJSON wants application/json in so many words: a page of another site cannot
// send it without asking first, and is told no then.
func plainJSON(h http.Header) error {
	types := h["Content-Type"]
	media, parameters, err := mime.ParseMediaType(h.Get("Content-Type"))
	charset := parameters["charset"]
	switch {
	case len(types) != 1 || err != nil || media != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8"):
		return unsupported("Content-Type", "must be application/json, once, whose charset is utf-8")
	case h.Get("Content-Encoding") != "":
		return unsupported("Content-Encoding", "must be absent; send the body as it is")
	case h.Get("Content-Range") != "":
		return &limit.InputError{Field: "Content-Range", Problem: "must be absent; send the whole body"}
	}
	return nil
}

func unsupported(field, problem string) error {
	return front.NewProblem(http.StatusUnsupportedMediaType, field, field+": "+problem)
}

// condition reads If-Match or If-None-Match. One that is there and empty, as a
// script with an unset variable sends it, would guard nothing; nor would an
// If-None-Match whose tag has lost its quotes in a shell.
func condition(h http.Header, name string) (string, error) {
	lines := h.Values(name)
	value := strings.Trim(strings.Join(lines, ","), " \t,")
	if len(lines) > 0 && value != "*" && !areTags(value) {
		return "", &limit.InputError{Field: name, Problem: "must be * or the ETag of the answer to a GET, quotes included"}
	}
	return value, nil
}

// areTags says whether a header value is a list of entity tags; see RFC 9110,
// section 8.8.3. Their text may hold commas.
func areTags(value string) bool {
	for {
		text, quoted := strings.CutPrefix(strings.TrimPrefix(value, "W/"), `"`)
		text, rest, closed := strings.Cut(text, `"`)
		if !quoted || !closed || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			return false
		}
		rest = strings.TrimLeft(rest, " \t")
		value = strings.TrimLeft(rest, " \t,") // empty elements are allowed
		if rest == "" || value == "" {
			return true
		}
		if rest[0] != ',' {
			return false
		}
	}
}
