package wait

import (
	"context"
	"errors"
	"testing"
)

// A waiter that its caller has left is nobody else's before the frame lets go.
func TestHandOff(t *testing.T) {
	var p Pool[error]
	w, late := p.Get(1), errors.New("too late")
	if !w.state.CompareAndSwap(waiting, left) {
		t.Fatal("a new waiter does not wait")
	}
	p.Finish(w, &late)
	if w.state.Load() != waiting || w.answer != nil {
		t.Error("the answer to one who left stays with the waiter")
	}
	if _, ok := p.Poll(w); ok {
		t.Error("and would be the next one's")
	}
}

func TestAwait(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, ctx := range map[string]context.Context{"for ever": context.Background(), "for a while": t.Context(), "no more": gone} {
		var p Pool[int]
		w, answer := p.Get(1), 7
		if _, ok := p.Poll(w); ok {
			t.Errorf("%s: an answer before there is one", name)
		}
		p.Finish(w, &answer)
		if a, err := p.Await(ctx, w); a != 7 || err != nil {
			t.Errorf("%s: %v, %v", name, a, err)
		}
	}
	var p Pool[int]
	if a, err := p.Await(gone, p.Get(1)); a != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", a, err)
	}
}
