package grpcfront

import (
	"context"
	"fmt"
	"sync"

	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/internal/wire"
	"github.com/ringlimit/ringlimit/limit"
)

// maxExplained bounds the answer to a batch: an explanation names every rule of a
// tier, of which there may be a thousand.
const maxExplained = 32

// batch is the checks of one CheckBatch, and the results as they come: written when
// they do, for a verdict lasts no longer, and put into the order of the checks in the
// end.
type batch struct {
	server    *Server
	checks    []limit.Request // without those that are bad input
	indexOf   []int           // of each check
	explain   []bool          // for each check; nil: for none
	explained int             // how many ask for it

	rules wire.Numbers
	out   []byte
	spans [][2]int // where each result is in out
}

func (s *Server) checkBatch(ctx context.Context, ask string) (wire.Out, error) {
	bodies, err := wire.ReadBatch(ask, nil)
	if err != nil {
		return nil, err
	}
	b := &batch{
		server: s, out: make([]byte, 0, len(bodies)*verdictBytes), spans: make([][2]int, len(bodies)),
		checks: make([]limit.Request, 0, len(bodies)), indexOf: make([]int, 0, len(bodies)),
	}
	for i, body := range bodies {
		b.read(i, body, len(bodies))
	}
	b.ask(ctx)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return b.results(), nil
}

// read takes in one of n checks. One that is bad input has its result at once and is
// never asked.
func (b *batch) read(i int, body string, n int) {
	var c wire.Check
	err := b.server.readCheck(body, &c)
	if err == nil && c.Explain {
		if b.explained++; b.explained > maxExplained {
			err = &limit.InputError{Field: "explain", Problem: fmt.Sprintf("is asked for more than %d times in one batch", maxExplained)}
		}
	}
	if err != nil {
		b.result(i, nil, nil, err)
		return
	}
	if c.Explain && b.explain == nil {
		b.explain = make([]bool, n)
	}
	if c.Explain {
		b.explain[len(b.checks)] = true
	}
	b.checks, b.indexOf = append(b.checks, c.Request), append(b.indexOf, i)
}

// ask puts the checks to the Checker at once, unless one is to be explained: then all
// are asked one by one, or it would not be known in which order those of its key are
// decided.
func (b *batch) ask(ctx context.Context) {
	if b.explain != nil {
		b.askExplained(ctx)
		return
	}
	front.CheckAll(ctx, b.server.cfg.Checker, b.checks, func(i int, v *limit.Verdict, err error) {
		b.result(b.indexOf[i], v, nil, err)
	})
}

func (b *batch) askExplained(ctx context.Context) {
	var answering sync.Mutex
	front.SideBySide(len(b.checks),
		func(i int) (string, bool) { return b.checks[i].Key, true },
		func(i int) {
			v, explanation, err := b.server.answer(ctx, &wire.Check{Request: b.checks[i], Explain: b.explain[i]})
			answering.Lock()
			defer answering.Unlock()
			b.result(b.indexOf[i], &v, explanation, err)
		})
}

func (b *batch) result(i int, v *limit.Verdict, explanation []byte, err error) {
	start := len(b.out)
	if err != nil {
		b.out = wire.AppendResultError(b.out, (*wire.Error)(b.server.failure(err)))
	} else {
		b.out = wire.AppendResult(b.out, v, explanation, b.server.cfg.Now(), &b.rules)
	}
	b.spans[i] = [2]int{start, len(b.out)}
}

func (b *batch) results() wire.Out {
	const ruleBytes = 256
	out := make([]byte, 0, len(b.out)+ruleBytes)
	for _, r := range b.spans {
		out = append(out, b.out[r[0]:r[1]]...)
	}
	return wire.AppendRules(out, &b.rules)
}
