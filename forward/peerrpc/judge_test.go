package peerrpc

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// asking is a frame of these records.
func asking(records []byte) *peerpb.Frame { return &peerpb.Frame{Id: 1, Records: records} }

// ask frames the records, has them judged and reads the answers.
func ask(t *testing.T, cfg ServerConfig, records ...record) []answer {
	t.Helper()
	var frame []byte
	for i := range records {
		frame = appendRecord(frame, &records[i])
	}
	j := newJudge(&cfg)
	reply, _, err := j.frame(asking(frame), nil)
	if err != nil {
		t.Fatal(err)
	}
	answers := make([]answer, len(records))
	for i := range answers {
		if reply, err = cutAnswer(reply, &answers[i]); err != nil {
			t.Fatal(err)
		}
	}
	return answers
}

// One frame: each record is answered in its place, whatever its neighbours are.
func TestJudgeAnswersInOrder(t *testing.T) {
	table, rule := holding(testPartitions), tokens(t, 5)
	table.Learn(rule)
	elsewhere := owner.Seed(1).ID([]byte("elsewhere"))
	table.SetPhase(partitionOf(elsewhere.Hi), owner.None)
	take := func(name string, cost int64) record { return record{rule: rule.ID(), cost: cost, name: []byte(name)} }
	unknown := take("k", 1)
	unknown.rule++
	got := ask(t, serverConfig("owner", table),
		take("k", 3), unknown, take("elsewhere", 1), take("k", 3), take("k", 0), take("", 1),
		record{mode: 3, rule: rule.ID(), cost: 1, name: []byte("k")}, take("k", 2))
	for i, want := range []struct {
		allowed   bool
		remaining int64
		err       error
	}{
		{allowed: true, remaining: 2}, {err: errUnknownRule}, {err: owner.ErrNotHolder}, {remaining: 2},
		{err: forward.ErrRejected}, {err: forward.ErrRejected}, {err: forward.ErrRejected}, {allowed: true},
	} {
		a := got[i]
		if a.verdict.Allowed != want.allowed || a.verdict.Remaining != want.remaining || !errors.Is(a.err, want.err) {
			t.Errorf("answer %d: %+v, want %+v", i, a, want)
		}
	}
	var n *transfer.NotMine
	if !errors.As(got[2].err, &n) || n.Hint != "other" || n.Ring != 7 {
		t.Errorf("not mine: %v", got[2].err)
	}
}

// A frame with a fault anywhere counts nothing.
func TestBadFrameCountsNothing(t *testing.T) {
	table, rule := holding(testPartitions), tokens(t, 5)
	table.Learn(rule)
	cfg := serverConfig("owner", table)
	good := appendRecord(nil, &record{rule: rule.ID(), cost: 1, name: []byte("k")})
	var crowd []byte
	for range maxRecords + 1 {
		crowd = append(crowd, good...)
	}
	for what, frame := range map[string][]byte{
		"cut short": append(good, good[:len(good)-1]...), "empty": nil, "too many": crowd, "flags": {0xff, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 'k'},
	} {
		j := newJudge(&cfg)
		if _, _, err := j.frame(asking(frame), nil); !errors.Is(err, errBadFrame) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n := table.Stats().Counters; n != 0 {
		t.Errorf("%d counters", n)
	}
}

func TestJudgeLearnsRules(t *testing.T) {
	table, rule := holding(testPartitions), tokens(t, 5)
	body := rule.Encode()
	for what, c := range map[string]record{
		"not JSON":        {rule: rule.ID(), body: []byte("{")},
		"not a rule":      {rule: rule.ID(), body: limit.Spec{}.Encode()},
		"another rule":    {rule: rule.ID(), body: tokens(t, 6).Encode()},
		"another rule id": {rule: rule.ID() + 1, body: body},
		"an empty body":   {rule: rule.ID(), body: []byte{}},
	} {
		c.cost, c.name = 1, []byte("k")
		if a := ask(t, serverConfig("owner", table), c)[0]; a.err != forward.ErrRejected {
			t.Errorf("%s: %+v", what, a)
		}
	}
	if table.Rule(rule.ID()) != nil {
		t.Fatal("a rejected rule was learned")
	}
	a := ask(t, serverConfig("owner", table), record{rule: rule.ID(), cost: 1, name: []byte("k"), body: body})[0]
	if !a.verdict.Allowed || a.err != nil || table.Rule(rule.ID()) == nil {
		t.Errorf("%+v", a)
	}
}

// Rules are learned with the counters that need them: not for another node's
// counters, nor from a frame that is none.
func TestJudgeLearnsNoMoreThanItNeeds(t *testing.T) {
	table, rule := owner.NewTable(owner.Config{Partitions: testPartitions, Now: wall}), tokens(t, 5)
	r := record{rule: rule.ID(), cost: 1, name: []byte("k"), body: rule.Encode()}
	if a := ask(t, serverConfig("owner", table), r)[0]; !errors.Is(a.err, owner.ErrNotHolder) || table.Rule(rule.ID()) != nil {
		t.Errorf("another node's counter: %+v, learned %v", a, table.Rule(rule.ID()))
	}
	table = holding(testPartitions)
	cfg := serverConfig("owner", table)
	j := newJudge(&cfg)
	if _, _, err := j.frame(asking(append(appendRecord(nil, &r), 0xff)), nil); !errors.Is(err, errBadFrame) || table.Rule(rule.ID()) != nil {
		t.Errorf("a bad frame: %v, learned %v", err, table.Rule(rule.ID()))
	}
}

// A stream brings so many rules a second; the same one in a frame counts once.
func TestRulesOfAStreamAreBounded(t *testing.T) {
	now := wall()
	cfg := serverConfig("owner", holding(testPartitions))
	cfg.Now = func() int64 { return now }
	j := newJudge(&cfg)
	bring := func(from, n int64) (judged int) {
		var frame []byte
		for i := range n {
			rule := tokens(t, from+i/2)
			frame = appendRecord(frame, &record{rule: rule.ID(), cost: 1, name: []byte("k"), body: rule.Encode()})
		}
		reply, _, err := j.frame(asking(frame), nil)
		if err != nil {
			t.Fatal(err)
		}
		for len(reply) > 0 {
			var a answer
			if reply, err = cutAnswer(reply, &a); err != nil {
				t.Fatal(err)
			}
			if a.err == nil {
				judged++
			} else if a.err != forward.ErrRejected {
				t.Error(a.err)
			}
		}
		return judged
	}
	if a, b := bring(1_000, maxRecords), bring(2_000, 2); a != 2*maxBodies || b != 0 {
		t.Errorf("%d and %d were judged", a, b)
	}
	now += int64(time.Second)
	if n := bring(3_000, 2); n != 2 {
		t.Errorf("a second later %d were judged", n)
	}
}

// longestHint makes the largest answers.
func longestHint(int) (membership.NodeID, uint64) {
	return membership.NodeID(strings.Repeat("n", maxHint)), math.MaxUint64
}

// manyRecords is a full frame of checks.
func manyRecords(rule *limit.Rule) (frame []byte) {
	for range maxRecords {
		frame = appendRecord(frame, &record{rule: rule.ID(), cost: 1, name: []byte("k")})
	}
	return frame
}

// The largest reply fits what the asker accepts.
func TestLargestReply(t *testing.T) {
	table, rule := owner.NewTable(owner.Config{Partitions: testPartitions, Now: wall}), tokens(t, 5)
	table.Learn(rule)
	cfg := serverConfig("owner", table)
	cfg.Decider = hinting(table, longestHint)
	frame := manyRecords(rule)
	j := newJudge(&cfg)
	reply, _, err := j.frame(asking(frame), nil)
	if size := proto.Size(&peerpb.Frame{Id: math.MaxUint64, Records: reply}); err != nil || size > maxReply || len(frame) > frameBytes {
		t.Errorf("%d bytes, %v; the asker takes %d", size, err, maxReply)
	}
}

func TestJudgeModes(t *testing.T) {
	table, rule := holding(testPartitions), tokens(t, 5)
	table.Learn(rule)
	r := record{rule: rule.ID(), cost: 2, name: []byte("k")}
	peek, refund := r, r
	peek.mode, refund.mode = limit.Peek, limit.Refund
	got := ask(t, serverConfig("owner", table), r, peek, refund, peek)
	for i, remaining := range []int64{3, 3, 5, 5} {
		if a := got[i]; !a.verdict.Allowed || a.verdict.Remaining != remaining {
			t.Errorf("answer %d: %+v, want %d left", i, a, remaining)
		}
	}
}

// After the first frame a judge needs no memory but for what the table needs.
func TestJudgeDoesNotAllocate(t *testing.T) {
	table, rule := holding(testPartitions), tokens(t, 1e9)
	table.Learn(rule)
	cfg := serverConfig("owner", table)
	var frame, reply []byte
	for range 64 {
		frame = appendRecord(frame, &record{rule: rule.ID(), cost: 1, name: []byte("k")})
	}
	j := newJudge(&cfg)
	n := testing.AllocsPerRun(100, func() {
		var err error
		if reply, _, err = j.frame(asking(frame), reply[:0]); err != nil {
			t.Error(err)
		}
	})
	if n >= 1 {
		t.Errorf("%v allocations a frame", n)
	}
}
