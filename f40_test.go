package ringlimit

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/rules"
)

// F40: nginx PR#1583. A key over the bound is refused by each door of the node, and
// never "not limited"; one at the bound is counted.
func TestF40KeyOverTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, newMemory().config(t, 0, parseRules(t, `tiers: {default: [{name: all, algorithm: fixed_window, limit: 5, window: 1h}]}`)))
		longest := strings.Repeat("k", limit.MaxKeyBytes)
		tooLong := Request{Key: longest + "k"}
		refused := func(door string, allowed bool, err error) {
			t.Helper()
			if bad, ok := errors.AsType[*limit.InputError](err); !ok || bad.Field != "key" || !strings.Contains(err.Error(), "is 513 bytes long; at most 512") || allowed {
				t.Errorf("%s: allowed %v, %v", door, allowed, err)
			}
		}
		v, err := n.Check(t.Context(), tooLong)
		refused("Check", v.Allowed, err)
		v, err = n.Check(t.Context(), Request{Key: tooLong.Key, Peek: true})
		refused("Peek", v.Allowed, err)
		v, err = n.Refund(t.Context(), tooLong)
		refused("Refund", v.Allowed, err)
		at, err := n.Locate(t.Context(), tooLong)
		refused("Locate", at.Verdict.Allowed, err)
		_, err = n.ExplainJSON(tooLong)
		refused("ExplainJSON", false, err)

		_, err = n.PutClient(tooLong.Key, []byte(`{"rules":[]}`), Precondition{})
		if _, ok := errors.AsType[*rules.Error](err); !ok || !strings.Contains(err.Error(), "is 513 bytes long; at most 512") {
			t.Errorf("PutClient: %v", err)
		}
		served := n.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the middleware lets it pass") }))
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-API-Key", tooLong.Key)
		w := httptest.NewRecorder()
		if served.ServeHTTP(w, r); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "is 513 bytes long; at most 512") {
			t.Errorf("Middleware: %d %s", w.Code, w.Body)
		}

		if v, err := n.Check(t.Context(), Request{Key: longest}); err != nil || !v.Allowed || v.Remaining != 4 {
			t.Errorf("a key of %d bytes: %+v, %v", len(longest), v, err)
		}
		stop(t, n)
	})
}
