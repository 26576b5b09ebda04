package floor

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Each caller gets the answer to its own question, whoever shares the frame.
func TestAnswersReachWhoAsked(t *testing.T) {
	reverse := func(answer, question []byte) []byte {
		for i := range question {
			answer = append(answer, question[len(question)-1-i])
		}
		return answer
	}
	for name, start := range map[string]func(testing.TB, Decide) Asker{"unary": Unary, "tcp": TCP} {
		t.Run(name, func(t *testing.T) {
			ask := start(t, reverse)
			run, err := Measure(32, 2000, func(_, i int) error {
				question := fmt.Appendf(nil, "%d-%0*d", i, i%300, 0)
				got, err := ask([]byte("mine:"), question)
				if want := reverse([]byte("mine:"), question); !bytes.Equal(got, want) {
					return errors.Join(err, fmt.Errorf("got %q, want %q", got, want))
				}
				return err
			})
			if err != nil || run.N != 2000 {
				t.Errorf("%d checks, %v", run.N, err)
			}
		})
	}
}

// A failure is reported, and ends its caller.
func TestMeasureReportsTheFirstError(t *testing.T) {
	wrong, asked := errors.New("wrong"), 0
	_, err := Measure(1, 10, func(_, i int) error {
		asked++
		if i == 3 {
			return wrong
		}
		return nil
	})
	if err != wrong || asked != 4 {
		t.Errorf("%v after %d checks", err, asked)
	}
}
