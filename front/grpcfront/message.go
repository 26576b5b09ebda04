package grpcfront

import (
	"context"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/internal/wire"
	"github.com/ringlimit/ringlimit/limit"
)

// asked is one message of a client's, with room for its checks. Its calls and requests
// are made of the text of the message, which lives as long as they do: until the last
// of them is answered.
type asked struct {
	stream *stream
	calls  []wire.Call
	due    time.Time // when the callers have given up; zero: nobody knows
	left   int       // calls without a reply; replies counts them

	checks  []limit.Request
	callOf  []int // of each check
	refunds int
	answer  func(i int, v *limit.Verdict, err error) // a.answered, bound once
}

// messages keeps the room of those that are answered.
type messages struct{ pool sync.Pool }

func (p *messages) borrow(s *stream) *asked {
	a, _ := p.pool.Get().(*asked)
	if a == nil {
		a = &asked{}
		a.answer = a.answered
	}
	a.stream = s
	return a
}

// giveBack is for whoever knows that nobody reads the message any more.
func (p *messages) giveBack(a *asked) {
	clear(a.calls)
	clear(a.checks)
	a.calls, a.checks, a.callOf = a.calls[:0], a.checks[:0], a.callOf[:0]
	a.stream, a.due, a.left, a.refunds = nil, time.Time{}, 0, 0
	p.pool.Put(a)
}

// read takes the message apart. It is bad input as a whole, or not at all.
func (a *asked) read(text string) error {
	calls, timeout, err := wire.ReadCalls(text, a.calls[:0])
	if err != nil {
		return err
	}
	a.calls, a.left = calls, len(calls)
	for i := range calls {
		if calls[i].Refund {
			a.refunds++
		}
	}
	if timeout != 0 {
		a.due = a.stream.server.cfg.Now().Add(timeout)
	}
	return nil
}

func (a *asked) overdue() bool {
	return !a.due.IsZero() && a.stream.server.cfg.Now().After(a.due)
}

// check has the checks of the message judged, on a worker's goroutine. Where there are
// refunds, other workers have the message, too: then its room is left to the garbage
// collector.
func (a *asked) check() {
	s := a.stream
	a.prepare()
	if len(a.checks) > 0 {
		front.CheckAll(s.ctx, a.checker(), a.checks, a.answer)
	}
	s.replies.settle(a)
	if a.refunds == 0 {
		s.server.messages.giveBack(a)
	}
}

// prepare lists the checks. Those that are not to be asked are answered: calls that are
// overdue are charged to nobody.
func (a *asked) prepare() {
	overdue := a.overdue()
	for i := range a.calls {
		if a.calls[i].Refund {
			continue
		}
		var c wire.Check
		err := context.DeadlineExceeded
		if !overdue {
			err = a.stream.readCheck(a.calls[i].Body, &c)
		}
		if err != nil {
			a.reply(i, nil, err)
			continue
		}
		a.checks, a.callOf = append(a.checks, c.Request), append(a.callOf, i)
	}
}

func (a *asked) answered(i int, v *limit.Verdict, err error) { a.reply(a.callOf[i], v, err) }

// reply answers a call. It does not wait for the client to read: whoever judges the
// checks has others to judge.
func (a *asked) reply(call int, v *limit.Verdict, err error) {
	if err != nil {
		a.stream.replies.addError(a, call, (*wire.Error)(a.stream.server.failure(err)))
		return
	}
	a.stream.replies.add(a, call, v)
}

// refund has one of the refunds of the message given, on a worker's goroutine.
func (a *asked) refund(call int) {
	v, err := a.giveRefund(a.calls[call].Body)
	a.reply(call, &v, err)
	a.stream.replies.settle(a)
}

func (a *asked) giveRefund(body string) (v limit.Verdict, err error) {
	var c wire.Check
	if a.overdue() {
		return v, context.DeadlineExceeded
	}
	if err = a.stream.server.readRefund(body, &c); err == nil {
		v, err = a.stream.server.giveRefund(a.stream.ctx, &c)
	}
	return v, err
}

// checker is whom the message is put to. One that judges the checks one by one may come
// to some of them when they are overdue.
func (a *asked) checker() front.Checker {
	c := a.stream.server.cfg.Checker
	if _, all := c.(front.BatchChecker); all || a.due.IsZero() {
		return c
	}
	return timely{c, a}
}

// timely is a Checker that judges nothing overdue.
type timely struct {
	front.Checker
	message *asked
}

func (t timely) Check(ctx context.Context, req limit.Request) (limit.Verdict, error) {
	if t.message.overdue() {
		return limit.Verdict{}, context.DeadlineExceeded
	}
	return t.Checker.Check(ctx, req)
}
