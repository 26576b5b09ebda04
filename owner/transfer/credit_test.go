package transfer

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/ringlimit/ringlimit/owner"
)

// A reply goes as soon as, and not before, no more than its slack would be lost,
// and every reply goes once. The model keeps each counter's total, what each
// batch carried and the best that has arrived.
func TestLawCredit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var k credit
		charged, safe := map[owner.ID]int64{}, map[owner.ID]int64{}
		type reply struct {
			id   owner.ID
			need int64
		}
		waiting := map[Reply]reply{}
		replies := 0
		carried := map[uint64]map[owner.ID]int64{}
		pay := func(paid []Reply) {
			for _, n := range paid {
				if r, ok := waiting[n]; !ok || safe[r.id] < r.need {
					t.Fatalf("reply %v goes: %+v, known %v, %d safe", n, r, ok, safe[r.id])
				}
				delete(waiting, n)
			}
			for n, r := range waiting {
				if safe[r.id] >= r.need {
					t.Fatalf("reply %v is due and does not go", n)
				}
			}
		}
		for step := range int64(rapid.IntRange(1, 80).Draw(t, "steps")) {
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				id := owner.ID{Lo: rapid.Uint64Range(1, 3).Draw(t, "counter")}
				cost, slack := rapid.Int64Range(1, 3).Draw(t, "cost"), rapid.Int64Range(0, 4).Draw(t, "slack")
				charged[id] += cost
				replies++
				owed := k.charge(id, cost, slack, replies)
				if lost := charged[id] - safe[id]; owed != lost {
					t.Fatalf("%d would be lost, it says %d", lost, owed)
				}
				if owed > slack {
					waiting[replies] = reply{id, charged[id] - slack}
				}
			case 2:
				if len(k.dirty) > 0 {
					b := k.batch(rapid.IntRange(1, 3).Draw(t, "most"), step)
					if n := rapid.IntRange(1, len(b.ids)).Draw(t, "fit"); n < len(b.ids) {
						k.cut(b.number, n)
						b.ids = b.ids[:n]
					}
					carried[b.number] = map[owner.ID]int64{}
					for _, id := range b.ids {
						carried[b.number][id] = charged[id]
					}
				}
			case 3:
				number := rapid.Uint64Range(0, k.number+1).Draw(t, "acknowledged")
				for id, n := range carried[number] {
					safe[id] = max(safe[id], n)
				}
				delete(carried, number)
				pay(k.acked(number))
			}
		}
		for len(k.dirty) > 0 {
			b := k.batch(2, 99)
			for _, id := range b.ids {
				safe[id] = charged[id]
			}
			pay(k.acked(b.number))
		}
		late := func(at int64) bool { return at <= 98 }
		for b := k.late(late, 100); b != nil; b = k.late(late, 100) {
			for id, n := range carried[b.number] {
				safe[id] = max(safe[id], n)
			}
			pay(k.acked(b.number))
		}
		if len(waiting) > 0 || len(k.debts) > 0 {
			t.Fatalf("all has arrived; %d wait, %d owe", len(waiting), len(k.debts))
		}
	})
}

func TestForgivenRepliesGo(t *testing.T) {
	var k credit
	k.charge(owner.ID{Lo: 1}, 1, 0, "first")
	if paid := k.forgive(); len(paid) != 1 || paid[0] != Reply("first") {
		t.Errorf("%v may go, not the first", paid)
	}
	if paid := k.forgive(); len(paid) != 0 {
		t.Errorf("%v may go twice", paid)
	}
}
