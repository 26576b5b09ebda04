package limit

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestCombine(t *testing.T) {
	rule, trial := mustRule(t, Spec{Algorithm: FixedWindow, Limit: 5, Window: time.Hour}), mustRule(t, Spec{Algorithm: FixedWindow, Limit: 5, Window: time.Hour})
	trial.Shadow = true
	yes := func(left, of int64) Verdict { return Verdict{Allowed: true, Rule: rule, Limit: of, Remaining: left} }
	no := func(wait time.Duration) Verdict { return Verdict{Rule: rule, Limit: 5, RetryAfter: wait} }
	never := Verdict{Rule: rule, Limit: 5, Remaining: 5, Reason: CostExceedsLimit}
	unasked := Verdict{Rule: rule, Limit: 5, Reason: Unavailable, Source: SourceFallback}
	shadow := Verdict{Rule: trial, Limit: 5, RetryAfter: 2 * time.Hour}
	queued := Verdict{Allowed: true, Rule: rule, Limit: 9, Remaining: 8, Delay: time.Second}
	patient := yes(0, 5)
	patient.ResetAfter = time.Hour
	delayed := yes(1, 5)
	delayed.Delay = time.Second
	tests := map[string]struct {
		limits []Verdict
		want   Verdict
	}{
		"the least share, not the least number": {[]Verdict{yes(4, 5), yes(50, 100)}, yes(50, 100)},
		"shares whose products have 106 bits":   {[]Verdict{yes(1<<52, MaxCost), yes(1<<12, MaxCost)}, yes(1<<12, MaxCost)},
		"the first of equals":                   {[]Verdict{yes(1, 5), yes(20, 100)}, yes(1, 5)},
		"of equals the later one back":          {[]Verdict{yes(0, 5), patient}, patient},
		"the longest wait":                      {[]Verdict{no(time.Second), yes(0, 5), no(time.Minute), no(2)}, no(time.Minute)},
		"a refusal over anything admitted":      {[]Verdict{yes(0, 5), no(1)}, no(1)},
		"for good is longest":                   {[]Verdict{no(time.Hour), never, no(2 * time.Hour)}, never},
		"nobody knows is shortest":              {[]Verdict{unasked, no(1)}, no(1)},
		"a shadow does not refuse":              {[]Verdict{shadow, yes(4, 5)}, yes(4, 5)},
		"nor bind":                              {[]Verdict{shadow, no(1)}, no(1)},
		"nor show":                              {[]Verdict{shadow}, Verdict{Allowed: true}},
		"the latest turn":                       {[]Verdict{yes(1, 5), queued}, delayed},
		"no turn for the refused":               {[]Verdict{queued, no(1)}, no(1)},
		"a limit of nothing that admits":        {[]Verdict{yes(1, 5), yes(0, 0)}, yes(0, 0)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := Combine(test.limits)
			if len(got.Limits()) != len(test.limits) || &got.Limits()[0] != &test.limits[0] {
				t.Errorf("lists %d limits of %d", len(got.Limits()), len(test.limits))
			}
			got.limits = nil
			if got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

// Who binds has no limit beside it that refuses longer, or of which less is left,
// for any figures.
func TestCombineBinds(t *testing.T) {
	plain, trial := mustRule(t, Spec{Algorithm: FixedWindow, Limit: 5, Window: time.Hour}), mustRule(t, Spec{Algorithm: FixedWindow, Limit: 5, Window: time.Hour})
	trial.Shadow = true
	one := rapid.Custom(func(t *rapid.T) Verdict {
		v := Verdict{
			Allowed: rapid.IntRange(0, 3).Draw(t, "refused") > 0,
			Rule:    rapid.SampledFrom([]*Rule{plain, plain, trial}).Draw(t, "rule"),
			Limit:   rapid.Int64Range(1, MaxCost).Draw(t, "limit"),
		}
		v.Remaining = rapid.Int64Range(0, v.Limit).Draw(t, "remaining")
		if !v.Allowed {
			v.RetryAfter = time.Duration(rapid.Int64Range(1, 5).Draw(t, "wait"))
		}
		return v
	})
	rapid.Check(t, func(t *rapid.T) {
		limits := rapid.SliceOfN(one, 1, 5).Draw(t, "limits")
		got := Combine(limits)
		enforced, refused := 0, false
		for _, l := range limits {
			if l.Rule.Shadow {
				continue
			}
			enforced++
			refused = refused || !l.Allowed
			switch {
			case !l.Allowed && l.RetryAfter > got.RetryAfter:
				t.Errorf("%+v waits longer", l)
			case got.Allowed && big.NewRat(l.Remaining, l.Limit).Cmp(big.NewRat(got.Remaining, got.Limit)) < 0:
				t.Errorf("%+v leaves less", l)
			}
		}
		if got.Allowed == refused || (got.Rule == nil) != (enforced == 0) || got.Rule == trial {
			t.Errorf("%+v", got)
		}
	})
}
