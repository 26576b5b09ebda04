package httpfront

import (
	"bytes"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/limit"
)

// decoder reads JSON strictly: no field unknown or twice, nothing after the
// object, no value of another kind. It works on tokens, because only there does
// a number still show how it was written: 1e2 and 1.0 are not the plain
// integers that a cost must be.
//
// A malformed text gives up with a *limit.InputError that names the place, and so
// does a wrong value.
type decoder struct {
	json     *jsontext.Decoder
	body     *bytes.Buffer
	text     string // what body has, for strings to be parts of: one allocation for all
	unquoted []byte // the latest name
}

func newDecoder() decoder {
	body := new(bytes.Buffer)
	return decoder{json: jsontext.NewDecoder(body), body: body}
}

// reset starts on another body, which must not change meanwhile. text is the same.
func (d *decoder) reset(body []byte, text string) {
	*d.body, d.text = *bytes.NewBuffer(body), text
	// Names given twice are found here, not by the tokenizer, so that one bad
	// check does not spoil a whole batch.
	d.json.Reset(d.body, jsontext.AllowDuplicateNames(true))
}

// forget lets go of the text.
func (d *decoder) forget() { d.text = "" }

// field is a bit for each field of a check.
type field uint8

const (
	fieldKey field = 1 << iota
	fieldRoute
	fieldCost
	fieldTier
	fieldIP
	fieldAttributes
	fieldPeek
	fieldExplain
)

func fieldOf(name []byte) field {
	switch string(name) {
	case "key":
		return fieldKey
	case "route":
		return fieldRoute
	case "cost":
		return fieldCost
	case "tier":
		return fieldTier
	case "ip":
		return fieldIP
	case "attributes":
		return fieldAttributes
	case "peek":
		return fieldPeek
	case "explain":
		return fieldExplain
	}
	return 0
}

const wholeCost = "a plain integer from 1 to 9007199254740991"

// expected says what a field must be.
func expected(name string) (string, bool) {
	switch fieldOf([]byte(name)) {
	case fieldKey, fieldRoute, fieldTier, fieldIP:
		return "a string", true
	case fieldCost:
		return wholeCost, true
	case fieldPeek, fieldExplain:
		return "true or false", true
	case fieldAttributes:
		return "an object of strings", true
	}
	if name == "checks" {
		return "a list of checks", true
	}
	return "", false
}

// asked is a check as a client states it.
type asked struct {
	limit.Request
	explain bool // say which rules apply, too
}

// check reads an object with the given fields of a check; what it is called in
// an error is up to the caller.
func (d *decoder) check(what string, fields field) (asked, error) {
	var req asked
	var seen field
	err := d.object(what, func(name []byte) error {
		f := fieldOf(name)
		switch {
		case f&fields == 0:
			return unknown(name, fields)
		case f&seen != 0:
			return twice(string(name))
		}
		seen |= f
		return d.value(f, &req)
	})
	if err == nil && seen&fieldKey == 0 {
		err = &limit.InputError{Field: "key", Problem: "is missing; it must name who is limited"}
	}
	return req, err
}

func unknown(name []byte, fields field) error {
	known := "key, route, cost, tier, ip, attributes"
	if fields&fieldPeek != 0 {
		known += ", peek, explain"
	}
	return &limit.InputError{Field: fmt.Sprintf("%.60s", name), Problem: "is not a field here; there are " + known}
}

func twice(name string) error {
	return &limit.InputError{Field: name, Problem: "is there twice; once would be right"}
}

func (d *decoder) value(f field, req *asked) (err error) {
	switch f {
	case fieldKey:
		req.Key, err = d.string("key")
	case fieldRoute:
		req.Route, err = d.string("route")
	case fieldTier:
		req.Tier, err = d.string("tier")
	case fieldCost:
		req.Cost, err = d.cost()
	case fieldIP:
		var text string
		if text, err = d.string("ip"); err == nil {
			req.IP, err = front.ParseIP("ip", text)
		}
	case fieldAttributes:
		req.Attributes, err = d.attributes()
	case fieldPeek:
		req.Peek, err = d.bool("peek")
	case fieldExplain:
		req.explain, err = d.bool("explain")
	}
	return err
}

// object reads an object; member reads the value of the name it is given.
func (d *decoder) object(what string, member func(name []byte) error) error {
	if kind := d.json.PeekKind(); kind != '{' {
		raw, err := d.json.ReadValue()
		if err != nil {
			return syntaxError(err)
		}
		return &limit.InputError{Field: what, Problem: fmt.Sprintf("is %s; it must be a JSON object", shown(raw))}
	}
	if _, err := d.json.ReadToken(); err != nil {
		return syntaxError(err)
	}
	for d.json.PeekKind() != '}' {
		name, err := d.json.ReadValue()
		if err != nil {
			return syntaxError(err)
		}
		if d.unquoted, err = jsontext.AppendUnquote(d.unquoted[:0], name); err != nil {
			return syntaxError(err)
		}
		if err := member(d.unquoted); err != nil {
			return err
		}
	}
	if _, err := d.json.ReadToken(); err != nil {
		return syntaxError(err)
	}
	return nil
}

// end makes sure that nothing follows.
func (d *decoder) end() error {
	if _, err := d.json.ReadToken(); err != io.EOF {
		return &limit.InputError{Field: "body", Problem: "goes on after the JSON object; nothing may follow it"}
	}
	return nil
}

func (d *decoder) string(name string) (string, error) {
	raw, err := d.scalar(name, '"')
	if err != nil {
		return "", err
	}
	if bytes.IndexByte(raw, '\\') < 0 { // it says what it is: the tokenizer has seen to UTF-8
		end := int(d.json.InputOffset())
		return d.text[end-len(raw)+1 : end-1], nil
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return "", &limit.InputError{Field: name, Problem: "is not valid UTF-8"}
	}
	return string(text), nil
}

func (d *decoder) bool(name string) (bool, error) {
	kind := jsontext.KindTrue
	if d.json.PeekKind() == jsontext.KindFalse {
		kind = jsontext.KindFalse
	}
	_, err := d.scalar(name, kind)
	return err == nil && kind == jsontext.KindTrue, err
}

func (d *decoder) cost() (int64, error) {
	raw, err := d.scalar("cost", '0')
	if err != nil {
		return 0, err
	}
	cost, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || cost < 1 || cost > limit.MaxCost {
		return 0, &limit.InputError{Field: "cost", Problem: fmt.Sprintf("is %.40s; it must be %s", raw, wholeCost)}
	}
	return cost, nil
}

func (d *decoder) attributes() (map[string]string, error) {
	attributes := make(map[string]string)
	return attributes, d.object("attributes", func(name []byte) error {
		key := string(name)
		path := "attributes." + key
		if _, there := attributes[key]; there {
			return twice(path)
		}
		value, err := d.string(path)
		attributes[key] = value
		return err
	})
}

// scalar reads a value of the given kind, as it is written.
func (d *decoder) scalar(name string, kind jsontext.Kind) (jsontext.Value, error) {
	got := d.json.PeekKind()
	raw, err := d.json.ReadValue()
	switch {
	case err != nil:
		return nil, syntaxError(err)
	case got != kind:
		right, ok := expected(name)
		if !ok {
			right = "a string"
		}
		return nil, &limit.InputError{Field: name, Problem: fmt.Sprintf("is %s; it must be %s", shown(raw), right)}
	}
	return raw, nil
}

// shown is a wrong value as an error quotes it: short.
func shown(raw jsontext.Value) string {
	switch kind := raw.Kind(); {
	case kind == jsontext.KindBeginObject:
		return "an object"
	case kind == jsontext.KindBeginArray:
		return "a list"
	case len(raw) > 40:
		return "a " + kind.String()
	}
	return string(raw)
}
