package cluster

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// An answer counts at once, silence only when it lasts.
func TestHealth(t *testing.T) {
	silence := fmt.Errorf("no answer: %w", context.DeadlineExceeded)
	h, draining := health{}, errors.New("503")
	for i, step := range []struct {
		heard error
		ready bool
	}{
		{silence, false}, {nil, true}, {silence, true}, {silence, false}, {silence, false},
		{nil, true}, {silence, true}, {nil, true}, {silence, true}, {draining, false}, {silence, false}, {errDown, false},
	} {
		if h.hear(step.heard); h.ready != step.ready {
			t.Errorf("step %d, %v: ready %v", i, step.heard, h.ready)
		}
	}
}
