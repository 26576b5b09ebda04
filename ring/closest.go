package ring

import "github.com/buraksezer/consistent"

// closest is planted.ClosestStandby: the library's own idea of a standby, which
// is the member whose name's hash comes next.
func closest(circle *consistent.Consistent, standby []int32) {
	for part := range standby {
		if two, err := circle.GetClosestNForPartition(part, 2); err == nil {
			standby[part] = two[1].(*member).index
		}
	}
}
