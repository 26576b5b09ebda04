package forward

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// reply is what a node does when it is asked: it may answer whatever it likes,
// take its time, and the ring may be replaced meanwhile.
type reply struct {
	err      error // nil: it decides
	takes    time.Duration
	replaced bool
	next     rings
}

// rings says who is in a ring, and the way to whom is not known.
type rings struct {
	nodes   []membership.NodeID
	unknown membership.NodeID
}

var everybody = []membership.NodeID{self, other, third, "d"}

func drawRings() *rapid.Generator[rings] {
	return rapid.Custom(func(t *rapid.T) rings {
		return rings{
			rapid.SliceOfNDistinct(rapid.SampledFrom(everybody), 0, 3, rapid.ID).Draw(t, "nodes"),
			rapid.SampledFrom(append(everybody, "")).Draw(t, "unknown"),
		}
	})
}

func drawReply() *rapid.Generator[reply] {
	return rapid.Custom(func(t *rapid.T) reply {
		return reply{
			err: rapid.SampledFrom([]error{
				nil, &transfer.NotMine{}, &transfer.NotMine{Hint: other}, &transfer.NotMine{Hint: third}, &transfer.NotMine{Hint: self},
				&transfer.NotMine{Hint: "e"}, ErrAbsent, ErrAbsent, ErrTimeout, ErrUnreachable, owner.ErrFull, context.DeadlineExceeded,
			}).Draw(t, "answer"),
			takes:    time.Duration(rapid.SampledFrom([]int64{0, 0, 1, 7, 30}).Draw(t, "takes")) * time.Millisecond,
			replaced: rapid.IntRange(0, 3).Draw(t, "replaced") == 0,
			next:     drawRings().Draw(t, "next"),
		}
	})
}

// clumsy is a cluster that keeps to a script. It writes down who was asked, and
// when.
type clumsy struct {
	t      *testing.T
	f      *fixture
	script []reply
	asked  []question
}

type question struct {
	at    int64
	by    *routes
	node  membership.NodeID
	reply reply
}

func newClumsy(t *testing.T, first rings, script []reply) *clumsy {
	w := &clumsy{t: t, script: script}
	w.f = newFixture(t, func(c *Config) {
		c.Local = localFunc(func(_ context.Context, _, _ int64, _ *owner.Call, v *limit.Verdict) (err error) {
			*v, err = w.answer(self)
			return err
		})
	})
	w.publish(first)
	return w
}

func (w *clumsy) publish(r rings) {
	w.f.Publish(ringOf(w.t, r.nodes...), self, func(id membership.NodeID) Peer {
		if id == r.unknown || !slices.Contains(everybody, id) {
			return nil
		}
		return peerFunc(func(context.Context, *owner.Call, int64) (limit.Verdict, error) { return w.answer(id) })
	})
}

// answer goes through the script; behind its end nobody holds the counter.
func (w *clumsy) answer(id membership.NodeID) (limit.Verdict, error) {
	r := reply{err: &transfer.NotMine{}}
	if n := len(w.asked); n < len(w.script) {
		r = w.script[n]
	}
	w.asked = append(w.asked, question{wall(), w.f.routes.Load(), id, r})
	time.Sleep(r.takes)
	if r.replaced {
		w.publish(r.next)
	}
	return limit.Verdict{Allowed: r.err == nil}, r.err
}

// hintOf is the other node that an answer names.
func hintOf(q question) membership.NodeID {
	elsewhere, ok := errors.AsType[*transfer.NotMine](q.reply.err)
	if !ok || elsewhere.Hint == q.node {
		return ""
	}
	return elsewhere.Hint
}

// Whatever the nodes answer: after an answer behind which the check may have been
// counted nobody is asked, nor after the deadline; a look is an owner and at most
// one hint, and looks lie apart unless the ring was replaced; the verdict is the
// owner's if one has decided, else on_failure's.
func TestLawSearch(t *testing.T) {
	rule := withFailure(tokens(t, 10), limit.FailDeny)
	rapid.Check(t, func(rt *rapid.T) {
		first := drawRings().Draw(rt, "ring")
		script := rapid.SliceOfN(drawReply(), 0, 12).Draw(rt, "script")
		name := fmt.Appendf(nil, "counter-%d", rapid.IntRange(0, 9).Draw(rt, "counter"))
		var wrong string
		synctest.Test(t, func(t *testing.T) {
			w, start := newClumsy(t, first, script), wall()
			wrong = w.check(start, w.f.take(t, name, rule, 1))
		})
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

func (w *clumsy) check(start int64, v limit.Verdict) (wrong string) {
	decided, look := membership.NodeID(""), 0 // where the look began
	for i, q := range w.asked {
		switch last := w.asked[max(0, i-1)]; {
		case i == 0:
		case q.at-start >= int64(DefaultDeadline):
			return fmt.Sprintf("%s was asked %v after the start", q.node, time.Duration(q.at-start))
		case look == i-1 && hintOf(last) == q.node && q.at == last.at+int64(last.reply.takes):
		case q.by != w.asked[look].by || q.at >= last.at+int64(last.reply.takes+lookAgain):
			look = i
		default:
			return fmt.Sprintf("%s was asked out of turn, as number %d", q.node, i)
		}
		if q.reply.err == nil {
			decided = q.node
		}
		if err := q.reply.err; i < len(w.asked)-1 && !errors.Is(err, owner.ErrNotHolder) && !errors.Is(err, ErrAbsent) {
			return fmt.Sprintf("%s was asked after another said %v", w.asked[i+1].node, err)
		}
	}
	want := limit.SourceForwarded
	switch decided {
	case "":
		want = limit.SourceFallback
	case self:
		want = limit.SourceOwner
	}
	if v.Source != want || v.Allowed != (decided != "") {
		return fmt.Sprintf("%q decided; the verdict is %+v", decided, v)
	}
	if took := wall() - start; took > int64(DefaultDeadline) && len(w.asked) > 0 && w.asked[len(w.asked)-1].reply.takes == 0 {
		return fmt.Sprintf("it took %v", time.Duration(took))
	}
	return ""
}
