package httpfront

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/limit"
)

// Bounds on bodies: a thousand checks of 4 KB fit into the larger one.
const (
	maxCheckBytes  = 64 << 10
	maxChecksBytes = 4 << 20
)

// exchange is the scratch space of one call; calls reuse them.
type exchange struct {
	body    bytes.Buffer
	decoder decoder
	part    decoder // reads one check of many
	batch   batch
	reply   []byte
}

func newExchange() *exchange {
	return &exchange{decoder: newDecoder(), part: newDecoder()}
}

// borrow takes an exchange that giveBack must get again.
func (s *server) borrow() *exchange { return s.scratch.Get().(*exchange) }

// giveBack drops large ones: one batch must not hold memory for ever.
func (s *server) giveBack(x *exchange) {
	if x.body.Cap() > 2*maxCheckBytes || cap(x.reply) > 2*maxCheckBytes || cap(x.batch.text) > 2*maxCheckBytes {
		return
	}
	x.decoder.forget()
	x.part.forget()
	x.batch.forget()
	s.scratch.Put(x)
}

// read takes in the JSON body and readies the decoder.
func (x *exchange) read(w http.ResponseWriter, r *http.Request, bound int64) error {
	if err := saysJSON(r.Header["Content-Type"]); err != nil {
		return err
	}
	if r.ContentLength > bound {
		w.Header().Set("Connection", "close") // else the server waits for the body before it answers
		return tooLarge(bound)
	}
	x.body.Reset()
	_, err := x.body.ReadFrom(http.MaxBytesReader(w, r.Body, bound))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return tooLarge(bound)
	}
	if err != nil {
		return &limit.InputError{Field: "body", Problem: "ended before its time"}
	}
	x.decoder.reset(x.body.Bytes(), x.body.String())
	return nil
}

func tooLarge(bound int64) error {
	return front.NewProblem(http.StatusRequestEntityTooLarge, "body",
		fmt.Sprintf("body: is too large; at most %d bytes are allowed", bound))
}

// saysJSON accepts application/json and application/…+json in UTF-8, which JSON
// always is (RFC 8259, section 8.1). Of two lines, another reader might believe
// the other one.
func saysJSON(lines []string) error {
	problem := ""
	switch media, charset := mediaType(lines); {
	case len(lines) > 1:
		problem = "is there more than once; it must be application/json, once"
	case media != "application/json" && !(strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json")):
		problem = "must be application/json"
	case charset != "" && !strings.EqualFold(charset, "utf-8"):
		problem = fmt.Sprintf("has the charset %.40q; it must be application/json, whose charset is utf-8", charset)
	default:
		return nil
	}
	return &limit.InputError{Field: "Content-Type", Problem: problem}
}

// mediaType reads the first line; empty if there is none that can be read.
func mediaType(lines []string) (media, charset string) {
	if len(lines) == 0 {
		return "", ""
	}
	if lines[0] == "application/json" {
		return lines[0], "" // what nearly everyone sends, without an allocation
	}
	media, parameters, err := mime.ParseMediaType(lines[0])
	if err != nil {
		return "", ""
	}
	return media, parameters["charset"]
}

// syntaxError says where a body stops being JSON.
func syntaxError(err error) error {
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) {
		return &limit.InputError{Field: "body", Problem: "is not complete; it must be one JSON object"}
	}
	field := fieldAt(syntax.JSONPointer)
	problem := fmt.Sprintf("is not JSON at byte %d: %v", syntax.ByteOffset, syntax.Err)
	if right, ok := expected(field); ok {
		problem += "; it must be " + right
	}
	return &limit.InputError{Field: field, Problem: problem}
}

// maxDepth is how deep the fields lie that we know: checks[3].cost.
const maxDepth = 3

// fieldAt writes /checks/3/cost as checks[3].cost. What lies deeper is cut off:
// the pointer is as long as its author likes.
func fieldAt(pointer jsontext.Pointer) string {
	if pointer == "" {
		return "body"
	}
	var b strings.Builder
	depth := 0
	for token := range pointer.Tokens() {
		if depth++; depth > maxDepth {
			break
		}
		switch {
		case token != "" && strings.Trim(token, "0123456789") == "":
			b.WriteString("[" + token + "]")
		case b.Len() > 0:
			b.WriteString("." + token)
		default:
			b.WriteString(token)
		}
	}
	return b.String()
}
