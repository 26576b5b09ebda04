package client

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever happens, what was spent and not given back is within the bound. And what
// the budget refuses would have been over it.
func TestBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reserve := rapid.IntRange(-1, 20).Draw(t, "reserve")
		b := newBudget(reserve)
		var now int64
		var spent int                                      // and not given back
		credit, most := float64(reserve), float64(reserve) // in retries: the model
		earned := 0.0
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				d := rapid.Int64Range(0, int64(300*time.Millisecond)).Draw(t, "time")
				now += d
				credit = min(most, credit+float64(d)/1e8)
				earned += float64(d) / 1e8
			case 1:
				b.earn(now)
				credit = min(most, credit+0.2)
				earned += 0.2
			case 2, 3:
				affordable := credit - 1
				got := b.spend(now)
				if got != (affordable >= 0) && (affordable > 1e-6 || affordable < -1e-6) {
					t.Fatalf("of %v retries one more: %v", credit, got)
				}
				if got {
					spent++
					credit--
				}
				if got && float64(spent) > most+earned+1e-6 {
					t.Fatalf("%d retries of %v", spent, most+earned)
				}
			case 4:
				if spent > 0 {
					b.giveBack()
					spent--
					credit = min(most, credit+1)
				}
			}
		}
	})
}
