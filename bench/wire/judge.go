// Package wire is what a check costs without ringlimit around it: one of its own
// tables behind bare TCP with the same batching, behind plain unary gRPC, and behind
// a mesh of unary gRPC nodes. There are no rules to match, no ring, no deadlines, no
// copies and no failures; whoever compares has to allow for that.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
)

const partitions = 1024

// Judge decides from memory as an owner does.
type Judge struct {
	table *owner.Table
	rule  *limit.Rule
	clock *limit.Clock
}

// NewJudge is a judge with a token bucket of so many a second for each name.
func NewJudge(perSecond int64) (*Judge, error) {
	rule, err := limit.NewRule(limit.Spec{Algorithm: limit.TokenBucket, Limit: perSecond, Window: time.Second})
	if err != nil {
		return nil, err
	}
	j := &Judge{rule: rule, clock: limit.NewClock()}
	j.table = owner.NewTable(owner.Config{Partitions: partitions, Memory: 4 << 30, Now: j.clock.Now})
	for p := range partitions {
		j.table.SetPhase(p, owner.Holding)
	}
	return j, nil
}

// Now is the judge's clock.
func (j *Judge) Now() int64 { return j.clock.Now() }

// Take takes cost of the name's tokens.
func (j *Judge) Take(now int64, name []byte, cost int64, v *limit.Verdict) error {
	id := owner.Seed(1).ID(name)
	call := owner.Call{ID: id, Partition: int(id.Hi % partitions), Charge: limit.Charge{Counter: name, Rule: j.rule, Cost: cost}}
	return j.table.Decide(now, &call, v)
}

// A record is a name and its cost and rule, as a check between nodes carries them;
// an answer is the verdict's numbers.

// appendRecord appends a question.
func appendRecord(b []byte, rule limit.RuleID, name string) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(rule))
	b = binary.AppendUvarint(b, 1) // the cost
	b = binary.AppendUvarint(b, uint64(len(name)))
	return append(b, name...)
}

var errBad = errors.New("a bad frame")

func cutRecord(b []byte) (name []byte, cost int64, rest []byte, err error) {
	if len(b) < 8 {
		return nil, 0, nil, errBad
	}
	units, n := binary.Uvarint(b[8:])
	if n <= 0 {
		return nil, 0, nil, errBad
	}
	b = b[8+n:]
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, 0, nil, errBad
	}
	return b[n : n+int(size)], int64(units), b[n+int(size):], nil
}

func appendAnswer(b []byte, v *limit.Verdict) []byte {
	flags := byte(0)
	if v.Allowed {
		flags = 1
	}
	b = append(b, flags)
	for _, n := range [...]int64{v.Limit, v.Remaining, int64(v.RetryAfter), int64(v.ResetAfter)} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

func cutAnswer(b []byte) (v limit.Verdict, rest []byte, err error) {
	if len(b) == 0 {
		return v, nil, errBad
	}
	v.Allowed = b[0] == 1
	b = b[1:]
	var numbers [4]int64
	for i := range numbers {
		u, n := binary.Uvarint(b)
		if n <= 0 {
			return v, nil, errBad
		}
		numbers[i], b = int64(u), b[n:]
	}
	v.Limit, v.Remaining, v.RetryAfter, v.ResetAfter = numbers[0], numbers[1], time.Duration(numbers[2]), time.Duration(numbers[3])
	return v, b, nil
}

// answer appends the answers to a frame of records.
func (j *Judge) answer(b, records []byte) ([]byte, error) {
	now := j.Now()
	for len(records) > 0 {
		name, cost, rest, err := cutRecord(records)
		if err != nil {
			return b, err
		}
		records = rest
		var v limit.Verdict
		if err := j.Take(now, name, cost, &v); err != nil {
			return b, fmt.Errorf("the table refused %q: %w", name, err)
		}
		b = appendAnswer(b, &v)
	}
	return b, nil
}
