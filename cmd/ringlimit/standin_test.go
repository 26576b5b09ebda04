package main

import (
	"errors"
	"net/http"
	"testing"

	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/limit"
)

// Before there is a node, each check of a batch is told so.
func TestBatchWhileJoining(t *testing.T) {
	var told []int
	(&standIn{}).CheckAll(t.Context(), make([]limit.Request, 3), func(i int, _ *limit.Verdict, err error) {
		if p, ok := errors.AsType[*front.Problem](err); !ok || p.Status != http.StatusServiceUnavailable {
			t.Errorf("check %d: %v", i, err)
		}
		told = append(told, i)
	})
	if len(told) != 3 {
		t.Errorf("told of %v", told)
	}
}
