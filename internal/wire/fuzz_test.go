package wire

import (
	"errors"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	ringlimitv1 "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/limit"
)

// What the generated code refuses we refuse, and what it accepts we read as it does,
// unless the cost or the number of attributes is wrong.
func FuzzReadCheck(f *testing.F) {
	req := limit.Request{Key: "k\x00", Route: "GET /", Cost: 3, Tier: "free", Peek: true, Attributes: map[string]string{"a": "b"}}
	f.Add(string(AppendCheck(nil, &req)))
	f.Add("\x0a\x01\xff")              // a key that is not UTF-8
	f.Add("\x0a\x01k\x18\x00")         // cost 0
	f.Add("\x0b\x08\x01\x0c\x0a\x01k") // a group
	f.Add("\x0a\x05k")                 // cut short
	f.Add("\x32\x04\x0a\x00\x12\x00\x32\x00")
	f.Add("\x7b\x00\x00\x7c")              // field 0 in a group
	f.Add("\x32\x06\x0a\x01\xff\x0a\x01a") // two names in one entry
	f.Fuzz(func(t *testing.T, s string) {
		var want ringlimitv1.CheckRequest
		refused := proto.Unmarshal([]byte(s), &want)
		var got Check
		err := ReadCheck(s, &got)
		if bad, ok := errors.AsType[*limit.InputError](err); err != nil && !ok {
			t.Fatalf("%v is no input error", err)
		} else if err != nil && refused == nil && bad.Field != "cost" && bad.Field != "attributes" && bad.Problem != errMalformed.Error() {
			t.Fatalf("we refuse what is good: %v", err)
		}
		if err != nil {
			return
		}
		if refused != nil {
			t.Fatalf("we read what the generated code refuses: %v", refused)
		}
		if got.IP != want.Ip {
			t.Fatalf("read the address %q, want %q", got.IP, want.Ip)
		}
		got.IP = ""
		sameCheck(t, &got, &limit.Request{Key: want.Key, Route: want.Route, Cost: want.GetCost(), Tier: want.Tier, Peek: want.Peek, Attributes: want.Attributes})
		if got.Explain != want.Explain || !utf8.ValidString(got.Key) {
			t.Fatalf("read %+v", got)
		}
	})
}

// Whatever a client sends on a stream, or a node answers, is read or refused.
func FuzzReadStream(f *testing.F) {
	rule := &limit.Rule{Name: "global"}
	v := limit.Combine([]limit.Verdict{{Rule: rule, RetryAfter: time.Second}, {Rule: rule, Allowed: true}})
	var numbers Numbers
	f.Add(string(AppendTaken(AppendReply(nil, 1, &v, time.Time{}, &numbers), 1, &numbers)))
	f.Add(string(AppendTimeout(AppendCall(nil, 1, &limit.Request{Key: "k"}, true), time.Second)))
	f.Add("\x0a\x09\x12\x03\x0a\x01k\x12\x02\x18\x02\x12\x02\x08\x01\x12\x02\x10\x07") // in pieces
	f.Add(string(AppendResult(nil, &v, []byte("[]"), time.Time{}, nil)))
	f.Fuzz(func(t *testing.T, s string) {
		calls, timeout, err := ReadCalls(s, nil)
		if len(calls) > MaxCalls {
			t.Fatalf("%d calls", len(calls))
		}
		var want ringlimitv1.CheckStreamRequest
		if proto.Unmarshal([]byte(s), &want) == nil {
			if err != nil && len(s) < 1000 {
				t.Fatalf("we refuse what is good: %v", err)
			}
			if err == nil {
				sameCalls(t, calls, timeout, &want)
			}
		}
		var r Response
		_ = r.Read(s, new(Rules))
		_, _ = ReadResults(s)
		_, _ = ReadBatch(s, nil)
	})
}

// sameCalls holds what was read of a stream against what the generated code reads.
func sameCalls(t *testing.T, got []Call, timeout time.Duration, want *ringlimitv1.CheckStreamRequest) {
	t.Helper()
	if wait := want.Timeout.AsDuration(); want.Timeout.CheckValid() == nil && wait != timeout && (wait != 0 || timeout != -1) || len(got) != len(want.Calls) {
		t.Fatalf("%d calls within %v, want %v", len(got), timeout, want)
	}
	for i, c := range got {
		w := want.Calls[i]
		var read Check
		switch err := ReadCheck(c.Body, &read); {
		case c.ID != w.Id, c.Refund != (w.GetRefund() != nil):
			t.Fatalf("call %d is %+v, want %v", i, c, w)
		case err != nil:
		case read.Key != w.GetCheck().GetKey()+w.GetRefund().GetKey():
			t.Fatalf("call %d has the key %q, want %v", i, read.Key, w)
		}
	}
}
