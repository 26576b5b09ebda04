package wire

import (
	"time"

	"github.com/ringlimit/ringlimit/limit"
)

// Bounds on a CheckStreamRequest: its calls, and what a client makes one of them. That
// has up to a key, a route and 32 attributes, each as long as package limit allows; how
// long their names and a tier's are that does not say. A node bounds the whole message.
const (
	MaxCalls     = 512
	MaxCallBytes = 64 << 10
)

// Call is a check or a refund on a stream.
type Call struct {
	ID     uint64
	Refund bool
	Body   string // for ReadCheck or ReadRefund
}

// AppendCall appends a call to a CheckStreamRequest.
func AppendCall(b []byte, id uint64, req *limit.Request, refund bool) []byte {
	b, call := begin(b, one)
	b = appendNumber(b, one, id)
	if refund {
		var at int
		b, at = begin(b, three)
		return end(end(AppendRefund(b, req), at), call)
	}
	b, at := begin(b, two)
	return end(end(AppendCheck(b, req), at), call)
}

// KeepCalls drops calls from what AppendCall has written, by their ids.
func KeepCalls(b []byte, keep func(id uint64) bool) []byte {
	kept, all := b[:0], string(b)
	for len(all) > 0 {
		var f field
		var c Call
		rest, _ := f.cut(all) // our own
		_ = c.read(f.bytes)
		if keep(c.ID) {
			kept = append(kept, all[:len(all)-len(rest)]...)
		}
		all = rest
	}
	return kept
}

// MaxCallSize bounds what AppendCall appends.
func MaxCallSize(req *limit.Request) int {
	n := 128 + len(req.Key) + len(req.Route) + len(req.Tier)
	for name, value := range req.Attributes {
		n += 20 + len(name) + len(value)
	}
	return n
}

// AppendTimeout completes a CheckStreamRequest.
func AppendTimeout(b []byte, d time.Duration) []byte { return appendDuration(b, two, d) }

// ReadCalls reads a CheckStreamRequest and appends its calls. A timeout of 0 is
// none; a negative one is over. Its error is a *limit.InputError.
func ReadCalls(s string, calls []Call) (_ []Call, timeout time.Duration, err error) {
	patience, timed := "", false
	for len(s) > 0 {
		var f field
		if s, err = f.cut(s); err != nil {
			return nil, 0, Malformed("request")
		}
		switch f.tag {
		case one | kindBytes:
			var c Call
			err = c.read(f.bytes)
			calls = append(calls, c)
		case two | kindBytes:
			patience, timed = patience+f.bytes, true
		}
		if err != nil {
			return nil, 0, Malformed("calls")
		}
		if len(calls) > MaxCalls {
			return nil, 0, &limit.InputError{Field: "calls", Problem: "has more than 512 entries; send them in parts"}
		}
	}
	if timeout, err = readDuration(patience); err != nil {
		return nil, 0, Malformed("timeout")
	}
	if timed && timeout == 0 {
		timeout = -1
	}
	return calls, timeout, nil
}

func (c *Call) read(s string) error {
	for len(s) > 0 {
		var f field
		var err error
		if s, err = f.cut(s); err != nil {
			return err
		}
		switch f.tag {
		case one | kindVarint:
			c.ID = f.number
		case two | kindBytes:
			c.add(false, f.bytes)
		case three | kindBytes:
			c.add(true, f.bytes)
		}
	}
	return nil
}

// add reads one of the kinds of a call: a later one replaces another kind, and goes on
// with its own.
func (c *Call) add(refund bool, body string) {
	if c.Refund == refund {
		body = c.Body + body
	}
	c.Refund, c.Body = refund, body
}

// AppendReply appends a verdict to the replies of a CheckStreamResponse.
func AppendReply(b []byte, id uint64, v *limit.Verdict, now time.Time, numbers *Numbers) []byte {
	b, reply := begin(b, one)
	b = appendNumber(b, one, id)
	b, at := begin(b, two)
	return end(end(AppendVerdict(b, v, now, numbers), at), reply)
}

// AppendReplyError appends an error to them.
func AppendReplyError(b []byte, id uint64, e *Error) []byte {
	b, reply := begin(b, one)
	b = appendNumber(b, one, id)
	b, at := begin(b, three)
	return end(end(appendError(b, e), at), reply)
}

// AppendTaken completes a CheckStreamResponse: how many messages were read, and the
// rules that its verdicts name for the first time.
func AppendTaken(b []byte, taken uint64, numbers *Numbers) []byte {
	return numbers.take(appendNumber(b, two, taken), three)
}

// AppendFarewell says that the node is going to stop.
func AppendFarewell(b []byte) []byte { return appendBool(b, four, true) }

// Response is a CheckStreamResponse as a client reads it.
type Response struct {
	Replies  []Reply
	Taken    uint64
	Farewell bool
}

// Reply is the answer to one call: a verdict, or an error.
type Reply struct {
	ID uint64
	Answer
}

// Answer is a verdict, or an error.
type Answer struct {
	Verdict limit.Verdict
	Err     *Error // nil: there is a verdict

	body string
}

// Read reads a CheckStreamResponse. It uses r.Replies again. rules is that of the
// stream.
func (r *Response) Read(s string, rules *Rules) (err error) {
	*r = Response{Replies: r.Replies[:0]}
	for len(s) > 0 && err == nil {
		var f field
		if s, err = f.cut(s); err != nil {
			return err
		}
		switch f.tag {
		case one | kindBytes:
			r.Replies = append(r.Replies, Reply{Answer: Answer{body: f.bytes}})
		case two | kindVarint:
			r.Taken = f.number
		case three | kindBytes:
			err = rules.learn(f.bytes)
		case four | kindVarint:
			r.Farewell = f.number != 0
		}
	}
	for i := range r.Replies { // now that all rules are known
		if reply := &r.Replies[i]; err == nil {
			err = reply.read(rules)
		}
	}
	return err
}

func (r *Reply) read(rules *Rules) error {
	for s := r.body; len(s) > 0; {
		var f field
		var err error
		if s, err = f.cut(s); err != nil {
			return err
		}
		switch f.tag {
		case one | kindVarint:
			r.ID = f.number
		case two | kindBytes:
			err = readVerdict(f.bytes, &r.Verdict, rules)
		case three | kindBytes:
			r.Err, err = readError(f.bytes)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
