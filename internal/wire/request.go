package wire

import (
	"fmt"
	"unicode/utf8"

	"github.com/ringlimit/ringlimit/limit"
)

// Check is a CheckRequest or a RefundRequest as a client states it.
type Check struct {
	limit.Request        // without its IP
	IP            string // not parsed
	Explain       bool
}

// AppendCheck appends the fields of a CheckRequest. The cost of a request is
// written out; an absent one and 1 are the same.
func AppendCheck(b []byte, req *limit.Request) []byte {
	b = AppendRefund(b, req)
	return appendBool(b, seven, req.Peek)
}

// AppendRefund appends the fields of a RefundRequest.
func AppendRefund(b []byte, req *limit.Request) []byte {
	b = appendString(b, one, req.Key)
	b = appendString(b, two, req.Route)
	if req.Cost != 0 {
		b = appendPresent(b, three, uint64(req.Cost))
	}
	b = appendString(b, four, req.Tier)
	if req.IP.IsValid() {
		b = appendString(b, five, req.IP.WithZone("").String())
	}
	for name, value := range req.Attributes {
		var at int
		b, at = begin(b, six)
		b = appendString(b, one, name)
		b = appendString(b, two, value)
		b = end(b, at)
	}
	return b
}

// ReadCheck reads a CheckRequest. Its error is a *limit.InputError.
func ReadCheck(s string, c *Check) error {
	*c = Check{}
	for len(s) > 0 {
		var f field
		var err error
		if s, err = f.cut(s); err != nil {
			return Malformed("request")
		}
		if err = c.field(&f); err != nil {
			return err
		}
	}
	return nil
}

// ReadRefund reads a RefundRequest: a check without the fields that it does not know.
// Its error is a *limit.InputError.
func ReadRefund(s string, c *Check) error {
	err := ReadCheck(s, c)
	c.Peek, c.Explain = false, false
	return err
}

// Malformed says that what is in a field, or the request, is no message.
func Malformed(field string) error {
	return &limit.InputError{Field: field, Problem: errMalformed.Error()}
}

func (c *Check) field(f *field) (err error) {
	switch f.tag {
	case one | kindBytes:
		c.Key, err = text("key", f.bytes)
	case two | kindBytes:
		c.Route, err = text("route", f.bytes)
	case three | kindVarint:
		c.Cost, err = cost(int64(f.number))
	case four | kindBytes:
		c.Tier, err = text("tier", f.bytes)
	case five | kindBytes:
		c.IP, err = text("ip", f.bytes)
	case six | kindBytes:
		err = c.attribute(f.bytes)
	case seven | kindVarint:
		c.Peek = f.number != 0
	case eight | kindVarint:
		c.Explain = f.number != 0
	}
	return err
}

// text holds a string to what protobuf says of strings.
func text(name, s string) (string, error) {
	if !utf8.ValidString(s) {
		return "", &limit.InputError{Field: name, Problem: "is not valid UTF-8"}
	}
	return s, nil
}

// cost is of one that is there: 0 is no default then, but a mistake.
func cost(n int64) (int64, error) {
	if n < 1 || n > limit.MaxCost {
		return 0, &limit.InputError{Field: "cost", Problem: fmt.Sprintf("is %d; it must be an integer from 1 to %d", n, int64(limit.MaxCost))}
	}
	return n, nil
}

// attribute reads an entry of the map. Of two with one name the later one counts,
// as protobuf says.
func (c *Check) attribute(s string) error {
	var name, value string
	for len(s) > 0 {
		var f field
		var err error
		if s, err = f.cut(s); err != nil {
			return Malformed("attributes")
		}
		switch f.tag {
		case one | kindBytes:
			name, err = text("attributes", f.bytes)
		case two | kindBytes:
			value, err = text("attributes."+name, f.bytes)
		}
		if err != nil {
			return err
		}
	}
	return c.set(name, value)
}

func (c *Check) set(name, value string) error {
	if c.Attributes == nil {
		c.Attributes = map[string]string{}
	}
	if c.Attributes[name] = value; len(c.Attributes) > limit.MaxAttributes {
		return &limit.InputError{Field: "attributes", Problem: fmt.Sprintf("has more than %d entries", limit.MaxAttributes)}
	}
	return nil
}
