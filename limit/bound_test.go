package limit

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// admission is a request that was let in, when it was for the counter.
type admission struct{ at, cost, delay int64 }

// Over no stretch of time does an algorithm admit more than it promises, though
// the clock steps back now and then. The sums here know nothing of the model.
func TestNeverMoreThanPromised(t *testing.T) {
	everyAlgorithm(t, func(t *rapid.T, x *subject) {
		var admitted []admission
		for range rapid.IntRange(1, 60).Draw(t, "asks") {
			switch rapid.IntRange(0, 9).Draw(t, "clock") {
			case 0:
				x.back(t)
			case 1, 2, 3, 4:
				x.pass(t)
			}
			at := x.model.clock(x.now)
			cost := x.cost(t)
			if v := x.take(t, cost); v.Allowed {
				admitted = append(admitted, admission{at, cost, int64(v.Delay)})
			}
		}
		x.checkBound(t, admitted)
	})
}

func (x *subject) checkBound(t *rapid.T, admitted []admission) {
	switch x.rule.Algorithm {
	case FixedWindow:
		checkWindows(t, x.rule.Spec, admitted)
	case SlidingWindowLog:
		checkSliding(t, x.rule.Spec, admitted)
	case SlidingWindowCounter:
		checkEstimate(t, x.rule.Spec, admitted)
	default:
		checkRate(t, x.rule, admitted)
		if x.rule.Algorithm == LeakyBucket && !x.rule.Police {
			checkDepartures(t, x.rule.Spec, admitted)
		}
	}
}

// checkRate: at most capacity + rate·T in any stretch of length T.
func checkRate(t *rapid.T, r *Rule, admitted []admission) {
	for i := range admitted {
		sum := new(big.Rat)
		for _, a := range admitted[i:] {
			sum.Add(sum, integer(a.cost))
			came := times(integer(a.at-admitted[i].at), ratio(r.Limit, int64(r.Window)))
			if bound := came.Add(came, integer(r.Capacity())); sum.Cmp(bound) > 0 {
				t.Fatalf("%v admitted from %d to %d; at most %v were promised", sum, admitted[i].at, a.at, bound)
			}
		}
	}
}

// checkDepartures: one after the other, as the rate has it and no later than
// that; a nanosecond goes to rounding.
func checkDepartures(t *rapid.T, s Spec, admitted []admission) {
	for i := 1; i < len(admitted); i++ {
		last, next := admitted[i-1], admitted[i]
		serves := times(integer(last.cost), ratio(int64(s.Window), s.Limit))
		free := new(big.Rat).Add(integer(last.at+last.delay), serves)
		early := minus(free, integer(next.at+next.delay))
		if early.Cmp(integer(1)) > 0 {
			t.Fatalf("leaves %v ns before its turn", early)
		}
		if next.delay > 0 && early.Cmp(integer(-1)) <= 0 {
			t.Fatalf("waits for longer than its turn: %v ns", early)
		}
	}
}

// checkWindows: at most limit in each aligned window.
func checkWindows(t *rapid.T, s Spec, admitted []admission) {
	label, sums := labels(s), map[string]int64{}
	for _, a := range admitted {
		if sums[label(a.at)] += a.cost; sums[label(a.at)] > s.Limit {
			t.Fatalf("%d admitted in window %s", sums[label(a.at)], label(a.at))
		}
	}
}

// checkSliding: at most limit in any window, whatever its alignment.
func checkSliding(t *rapid.T, s Spec, admitted []admission) {
	for i := range admitted {
		sum := int64(0)
		for _, a := range admitted[i:] {
			if a.at-admitted[i].at >= int64(s.Window) {
				break
			}
			if sum += a.cost; sum > s.Limit {
				t.Fatalf("%d admitted from %d to %d", sum, admitted[i].at, a.at)
			}
		}
	}
}

// checkEstimate: p·(W−e) + c·W <= limit·W after each admission.
func checkEstimate(t *rapid.T, s Spec, admitted []admission) {
	w := big.NewInt(int64(s.Window))
	counts := map[int64]int64{}
	for _, a := range admitted {
		n, e := a.at/int64(s.Window), a.at%int64(s.Window)
		counts[n] += a.cost
		sum := new(big.Int).Mul(big.NewInt(counts[n-1]), new(big.Int).Sub(w, big.NewInt(e)))
		sum.Add(sum, new(big.Int).Mul(big.NewInt(counts[n]), w))
		if sum.Cmp(new(big.Int).Mul(big.NewInt(s.Limit), w)) > 0 {
			t.Fatalf("at %d the estimate is above the limit: p %d, c %d", a.at, counts[n-1], counts[n])
		}
	}
}
