package wire

import (
	"fmt"
	"time"

	"github.com/ringlimit/ringlimit/limit"
)

// MaxChecks bounds a CheckBatchRequest.
const MaxChecks = 1000

// MaxBatchBytes bounds it too: a thousand checks of 4 KB fit.
const MaxBatchBytes = 4 << 20

// AppendBatchCheck appends a check to a CheckBatchRequest.
func AppendBatchCheck(b []byte, req *limit.Request) []byte {
	b, at := begin(b, one)
	return end(AppendCheck(b, req), at)
}

// ReadBatch reads a CheckBatchRequest and appends its checks, each for ReadCheck.
// Its error is a *limit.InputError.
func ReadBatch(s string, checks []string) ([]string, error) {
	for len(s) > 0 {
		var f field
		var err error
		if s, err = f.cut(s); err != nil {
			return nil, Malformed("request")
		}
		if f.tag != one|kindBytes {
			continue
		}
		if len(checks) == MaxChecks {
			return nil, &limit.InputError{Field: "checks", Problem: fmt.Sprintf("has more than %d entries; send them in parts", MaxChecks)}
		}
		checks = append(checks, f.bytes)
	}
	return checks, nil
}

// AppendResult appends a verdict to a CheckBatchResponse, and its explanation if
// there is one.
func AppendResult(b []byte, v *limit.Verdict, explanation []byte, now time.Time, numbers *Numbers) []byte {
	b, result := begin(b, one)
	b, at := begin(b, one)
	b = AppendExplanation(AppendVerdict(b, v, now, numbers), explanation)
	return end(end(b, at), result)
}

// AppendResultError appends an error to it.
func AppendResultError(b []byte, e *Error) []byte {
	b, result := begin(b, one)
	b, at := begin(b, two)
	return end(end(appendError(b, e), at), result)
}

// AppendRules completes it: the rules that its verdicts name.
func AppendRules(b []byte, numbers *Numbers) []byte { return numbers.take(b, two) }

// ReadResults reads a CheckBatchResponse.
func ReadResults(s string) ([]Answer, error) {
	var answers []Answer
	var rules Rules
	for len(s) > 0 {
		var f field
		var err error
		if s, err = f.cut(s); err != nil {
			return nil, err
		}
		switch f.tag {
		case one | kindBytes:
			answers = append(answers, Answer{body: f.bytes})
		case two | kindBytes:
			err = rules.learn(f.bytes)
		}
		if err != nil {
			return nil, err
		}
	}
	for i := range answers {
		if err := answers[i].read(&rules); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// read reads a CheckResult.
func (a *Answer) read(rules *Rules) error {
	for s := a.body; len(s) > 0; {
		var f field
		var err error
		if s, err = f.cut(s); err != nil {
			return err
		}
		switch f.tag {
		case one | kindBytes:
			err = readVerdict(f.bytes, &a.Verdict, rules)
		case two | kindBytes:
			a.Err, err = readError(f.bytes)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
