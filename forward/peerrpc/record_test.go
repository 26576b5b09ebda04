package peerrpc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

func drawRecord(t *rapid.T) record {
	r := record{
		mode: limit.Mode(rapid.IntRange(0, 2).Draw(t, "mode")),
		rule: limit.RuleID(rapid.Uint64().Draw(t, "rule")),
		cost: rapid.Int64Range(1, limit.MaxCost).Draw(t, "cost"),
		name: rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(t, "name"),
	}
	r.joined, r.shadow = rapid.Bool().Draw(t, "joined"), rapid.Bool().Draw(t, "shadow")
	r.age = time.Duration(max(0, rapid.Int64().Draw(t, "age")))
	if rapid.Bool().Draw(t, "with body") {
		r.body = rapid.SliceOfN(rapid.Byte(), 0, maxBody).Draw(t, "body")
	}
	return r
}

func TestLawRecordsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := rapid.SliceOfN(rapid.Custom(drawRecord), 1, 20).Draw(t, "records")
		var frame []byte
		for i := range records {
			before := len(frame)
			frame = appendRecord(frame, &records[i])
			if len(frame)-before > records[i].maxSize() {
				t.Fatalf("record %d is larger than its bound", i)
			}
		}
		for i, want := range records {
			var got record
			var err error
			if frame, err = cutRecord(frame, &got); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("record %d: %+v, want %+v", i, got, want)
			}
		}
		if len(frame) != 0 {
			t.Fatalf("%d bytes are left over", len(frame))
		}
	})
}

func drawAnswer(t *rapid.T) answer {
	if rapid.Bool().Draw(t, "verdict") {
		number := rapid.Int64Min(0)
		return answer{verdict: limit.Verdict{
			Allowed: rapid.Bool().Draw(t, "allowed"), Reason: limit.Reason(rapid.Byte().Draw(t, "reason")),
			Limit: number.Draw(t, "limit"), Remaining: number.Draw(t, "remaining"),
			RetryAfter: time.Duration(number.Draw(t, "retry")), Delay: time.Duration(number.Draw(t, "delay")),
			ResetAfter: time.Duration(number.Draw(t, "reset")),
		}}
	}
	return answer{err: rapid.SampledFrom([]error{
		errUnknownRule, owner.ErrFull, forward.ErrRejected, owner.ErrLater, forward.ErrOverloaded,
		&transfer.NotMine{Hint: "node-7", Ring: math.MaxUint64}, &transfer.NotMine{},
	}).Draw(t, "error")}
}

func appendAnswer(b []byte, a *answer) []byte {
	var elsewhere *transfer.NotMine
	switch {
	case a.err == nil:
		return appendVerdict(b, &a.verdict)
	case errors.As(a.err, &elsewhere):
		return appendNotMine(b, elsewhere.Hint, elsewhere.Ring)
	default:
		return appendError(b, a.err)
	}
}

// Verdicts and every kind of error arrive as they were sent.
func TestLawAnswersRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		answers := rapid.SliceOfN(rapid.Custom(drawAnswer), 1, 20).Draw(t, "answers")
		var frame []byte
		for i := range answers {
			frame = appendAnswer(frame, &answers[i])
		}
		for i, want := range answers {
			var got answer
			var err error
			if frame, err = cutAnswer(frame, &got); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("answer %d: %+v, want %+v", i, got, want)
			}
		}
		if len(frame) != 0 {
			t.Fatalf("%d bytes are left over", len(frame))
		}
	})
}

// Every error of the table has an outcome of its own, and an error that is not
// in it becomes a rejection.
func TestErrorTable(t *testing.T) {
	seen := map[outcome]bool{admitted: true, denied: true, notMine: true}
	for _, k := range kinds() {
		if seen[k.outcome] {
			t.Errorf("outcome %d is used twice", k.outcome)
		}
		seen[k.outcome] = true
	}
	var a answer
	if _, err := cutAnswer(appendError(nil, errors.New("new")), &a); err != nil || a.err != forward.ErrRejected {
		t.Errorf("%v, %v", a.err, err)
	}
}

func TestOverlongHintIsLeftOut(t *testing.T) {
	var a answer
	frame := appendNotMine(nil, membership.NodeID(bytes.Repeat([]byte("n"), maxHint+1)), 9)
	if _, err := cutAnswer(frame, &a); err != nil || !reflect.DeepEqual(a.err, &transfer.NotMine{Ring: 9}) {
		t.Errorf("%v, %v", a.err, err)
	}
}

// A frame cut short anywhere is an error, and so is one with an absurd length.
func TestFramesCutShort(t *testing.T) {
	ask := appendRecord(nil, &record{rule: 1, cost: 300, name: []byte("name"), body: []byte("{}")})
	for n := range len(ask) {
		if _, err := cutRecord(ask[:n], new(record)); !errors.Is(err, errBadFrame) {
			t.Errorf("record of %d bytes: %v", n, err)
		}
	}
	for _, a := range []answer{{verdict: limit.Verdict{Limit: 300}}, {err: &transfer.NotMine{Hint: "n"}}} {
		reply := appendAnswer(nil, &a)
		for n := range len(reply) {
			if _, err := cutAnswer(reply[:n], new(answer)); !errors.Is(err, errBadFrame) {
				t.Errorf("answer of %d bytes: %v", n, err)
			}
		}
	}
}

// Lengths are bounded even if the bytes are there.
func TestTooLongFields(t *testing.T) {
	for what, r := range map[string]record{
		"name": {cost: 1, name: make([]byte, maxName+1)},
		"body": {cost: 1, name: []byte("k"), body: make([]byte, maxBody+1)},
	} {
		if _, err := cutRecord(appendRecord(nil, &r), new(record)); !errors.Is(err, errBadFrame) {
			t.Errorf("%s: %v", what, err)
		}
	}
	hint := binary.AppendUvarint([]byte{byte(notMine)}, maxHint+1)
	if _, err := cutAnswer(append(hint, make([]byte, maxHint+9)...), new(answer)); !errors.Is(err, errBadFrame) {
		t.Errorf("hint: %v", err)
	}
}

func TestAbsurdLengths(t *testing.T) {
	head := append([]byte{0}, make([]byte, 8)...)
	for _, n := range []uint64{maxName + 1, math.MaxInt64, math.MaxUint64} {
		frame := binary.AppendUvarint(append(bytes.Clone(head), 1), n)
		if _, err := cutRecord(append(frame, "name"...), new(record)); !errors.Is(err, errBadFrame) {
			t.Errorf("a name of %d bytes: %v", n, err)
		}
		if _, err := cutAnswer(binary.AppendUvarint([]byte{byte(notMine)}, n), new(answer)); !errors.Is(err, errBadFrame) {
			t.Errorf("a hint of %d bytes: %v", n, err)
		}
		if n > math.MaxInt64 {
			if _, err := cutAnswer(binary.AppendUvarint([]byte{byte(admitted), 0}, n), new(answer)); !errors.Is(err, errBadFrame) {
				t.Errorf("a limit of %d: %v", n, err)
			}
		}
	}
	tooLong := bytes.Repeat([]byte{0xff}, 11)
	if _, err := cutRecord(append(head, tooLong...), new(record)); !errors.Is(err, errBadFrame) {
		t.Errorf("a number that does not end: %v", err)
	}
}

// A cost that does not fit stays one that is refused.
func TestHugeCostIsInvalid(t *testing.T) {
	frame := binary.AppendUvarint(append([]byte{0}, make([]byte, 8)...), math.MaxUint64)
	frame = append(frame, 1, 'k')
	var r record
	if _, err := cutRecord(frame, &r); err != nil || r.valid() {
		t.Errorf("%+v, %v", r, err)
	}
}

// wary is a decider that is never asked for an odd group.
type wary struct{ Decider }

func (w wary) DecideFrame(now, deadline int64, calls []owner.Call, results []owner.Result, late owner.Late, frame uint64) {
	for i := 0; i < len(calls); {
		end := owner.GroupEnd(calls, i)
		for k := i + 1; k < end; k++ {
			if a, b := &calls[i], &calls[k]; end-i > limit.MaxLimits || a.ID == b.ID && a.Rule.ID() != b.Rule.ID() || b.Mode != limit.Take {
				panic(fmt.Sprintf("a group of %d, with %+v and %+v", end-i, a, b))
			}
		}
		i = end
	}
	w.Decider.DecideFrame(now, deadline, calls, results, late, frame)
}

func FuzzJudge(f *testing.F) {
	f.Add([]byte{})
	f.Add(appendRecord(nil, &record{rule: 1, cost: 1, name: []byte("k")}))
	rule, err := limit.NewRule(limit.Spec{Algorithm: limit.TokenBucket, Limit: 3, Window: time.Minute})
	if err != nil {
		f.Fatal(err)
	}
	good := appendRecord(nil, &record{rule: rule.ID(), cost: 2, name: []byte("k"), body: rule.Encode()})
	f.Add(append(good, good...))
	f.Add(appendRecord(nil, &record{mode: 3, rule: 9, cost: 1, name: []byte("k"), body: []byte(`{"limit":1e9}`)}))
	other, err := limit.NewRule(limit.Spec{Algorithm: limit.FixedWindow, Limit: 5, Window: time.Minute})
	if err != nil {
		f.Fatal(err)
	}
	twice := record{rule: other.ID(), cost: 2, name: []byte("k"), body: other.Encode(), joined: true} // one counter, two rules
	f.Add(appendRecord(slices.Clone(good), &twice))
	f.Add(appendRecord(appendRecord(slices.Clone(good), &record{rule: rule.ID(), cost: 2, name: []byte("k"), joined: true}), &twice))
	twice.body = nil
	f.Add(append(good, bytes.Repeat(appendRecord(nil, &twice), limit.MaxLimits)...))
	cfg := serverConfig("owner", holding(testPartitions))
	cfg.Decider = wary{cfg.Decider}
	f.Fuzz(func(t *testing.T, frame []byte) {
		j := newJudge(&cfg)
		reply, _, err := j.frame(asking(frame), nil)
		if err != nil {
			return
		}
		for range j.places { // as many answers as checks
			if reply, err = cutAnswer(reply, new(answer)); err != nil {
				t.Fatal(err)
			}
		}
		if len(reply) > 0 {
			t.Fatalf("%d bytes are left over", len(reply))
		}
	})
}

func FuzzAnswers(f *testing.F) {
	f.Add(appendVerdict(nil, &limit.Verdict{Allowed: true, Limit: 9}), uint8(1))
	f.Add(appendNotMine(nil, "node", 3), uint8(1))
	f.Add([]byte{byte(full), byte(rejected)}, uint8(2))
	f.Fuzz(func(t *testing.T, reply []byte, n uint8) {
		b := newBatcher(wall, func(time.Duration) {})
		frame := b.frames.get()
		ws := make([]*waiter, n)
		for i := range ws {
			ws[i] = b.waiters.Get(0)
			frame.add(&record{}, seatOf(ws[i]))
		}
		left, _ := b.handOut(frame, reply)
		for _, w := range ws { // whatever the bytes, nobody is left waiting but for what is put off
			if _, ok := has(w); !ok {
				left--
			}
		}
		if left != 0 {
			t.Fatalf("%d callers too few got no answer", left)
		}
	})
}
