package wire

import (
	"testing"
	"time"
	"unsafe"

	"google.golang.org/protobuf/proto"

	ringlimitv1 "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/limit"
)

// bytesOf writes a field with a length.
func bytesOf(tag uint64, s string) string { return string(appendString(nil, tag, s)) }

// Of a message in pieces the pieces belong together, as protobuf has it.
func TestPiecesOfAMessage(t *testing.T) {
	key, cost := bytesOf(one, "k"), "\x18\x02"
	second, nanos := "\x08\x01", "\x10\x07"
	s := bytesOf(one, bytesOf(two, key)+bytesOf(two, cost)+"\x08\x05") + bytesOf(two, second) + bytesOf(two, nanos)
	var want ringlimitv1.CheckStreamRequest
	if err := proto.Unmarshal([]byte(s), &want); err != nil {
		t.Fatal(err)
	}
	calls, timeout, err := ReadCalls(s, nil)
	if err != nil || len(calls) != 1 || timeout != want.Timeout.AsDuration() {
		t.Fatalf("%v, %v, %v; want %v", calls, timeout, err, &want)
	}
	var c Check
	if err := ReadCheck(calls[0].Body, &c); err != nil || c.Key != "k" || c.Cost != 2 {
		t.Errorf("%+v, %v; want %v", c, err, &want)
	}
	// The later of two kinds replaces the earlier one.
	calls, _, err = ReadCalls(bytesOf(one, bytesOf(two, key)+bytesOf(three, cost)), nil)
	if err != nil || !calls[0].Refund || calls[0].Body != cost {
		t.Errorf("%v, %v", calls, err)
	}
}

// What the generated code refuses.
func TestRefusedAsGenerated(t *testing.T) {
	for name, s := range map[string]string{
		"a name that is not UTF-8, and another": bytesOf(six, bytesOf(one, "\xff")+bytesOf(one, "a")),
		"so with values":                        bytesOf(six, bytesOf(two, "\xff")+bytesOf(two, "a")),
		"field 0 in a group":                    "\x7b\x00\x00\x7c",
	} {
		if err := proto.Unmarshal([]byte(s), new(ringlimitv1.CheckRequest)); err == nil {
			t.Fatalf("%s: it is read", name)
		}
		if err := ReadCheck(s, new(Check)); err == nil {
			t.Errorf("%s: we read it", name)
		}
	}
}

// A timeout that is over is none that is absent.
func TestTimeoutThatIsOver(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"":                                     0,
		bytesOf(two, "\x10\x01"):               1,
		"\x12\x00":                             -1,
		string(AppendTimeout(nil, -time.Hour)): -time.Hour,
	} {
		if _, got, err := ReadCalls(s, nil); got != want || err != nil {
			t.Errorf("%q: %v, %v; want %v", s, got, err, want)
		}
	}
}

// A node that nests limits in limits does not exhaust the client's stack: there are
// none, and they are not read.
func TestNestedLimits(t *testing.T) {
	inner := bytesOf(vRule, "inner")
	for range 1000 {
		inner = bytesOf(vLimits, inner)
	}
	limits := bytesOf(vLimits, bytesOf(vRule, "one")+inner) + bytesOf(vLimits, bytesOf(vRule, "two")+inner)
	answers, err := ReadResults(bytesOf(one, bytesOf(one, limits)))
	if err != nil || len(answers) != 1 || len(answers[0].Verdict.Limits()) != 2 {
		t.Fatal(answers, err)
	}
	for _, v := range answers[0].Verdict.Limits() {
		if v.Rule == nil || v.Rule.Name == "inner" || v.Limits() != nil {
			t.Errorf("%+v", v)
		}
	}
}

// A rule outlives the message that told it, and must not keep it.
func TestRulesKeepNoMessage(t *testing.T) {
	var numbers Numbers
	v := limit.Verdict{Rule: &limit.Rule{Name: "global"}}
	s := string(AppendTaken(AppendReply(nil, 1, &v, time.Time{}, &numbers), 1, &numbers))
	var rules Rules
	if err := new(Response).Read(s, &rules); err != nil {
		t.Fatal(err)
	}
	if name := rules.known[1].Name; name != "global" || within(name, s) {
		t.Errorf("the rule %q is part of its message", name)
	}
}

// within says whether part shares the memory of s.
func within(part, s string) bool {
	at, from := uintptr(unsafe.Pointer(unsafe.StringData(part))), uintptr(unsafe.Pointer(unsafe.StringData(s)))
	return from <= at && at < from+uintptr(len(s))
}
