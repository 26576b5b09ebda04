package ring

import "testing"

// Points of one hash have an order, whoever else is there: else the standby of a
// partition could be another than who owns it afterwards.
func TestPointsOfOneHashHaveAnOrder(t *testing.T) {
	sorted := []point{{6, 9}, {7, 0}, {7, 1}, {7, 2}, {8, 0}}
	for i, a := range sorted {
		for j, b := range sorted {
			if got := a.compare(b); got < 0 != (i < j) || got > 0 != (i > j) {
				t.Errorf("%v compared with %v is %d", a, b, got)
			}
		}
	}
}
