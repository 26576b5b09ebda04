package membership

import (
	"cmp"
	"slices"
)

// View is the members as one node sees them: sorted by ID, one entry an ID.
// A View is immutable.
type View struct {
	Members []Member
}

// NewView sorts members and keeps, of those that share an ID, the latest boot.
func NewView(members []Member) View {
	sorted := slices.Clone(members)
	slices.SortFunc(sorted, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(b.Boot, a.Boot))
	})
	return View{slices.CompactFunc(sorted, func(a, b Member) bool { return a.ID == b.ID })}
}

// Find returns the member with this ID.
func (v View) Find(id NodeID) (Member, bool) {
	i, ok := slices.BinarySearchFunc(v.Members, id, func(m Member, id NodeID) int { return cmp.Compare(m.ID, id) })
	if !ok {
		return Member{}, false
	}
	return v.Members[i], true
}

// Owners lists the IDs that belong into the ring, sorted.
func (v View) Owners() []NodeID {
	var ids []NodeID
	for _, m := range v.Members {
		if m.Owns() {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// Superseded says whether a later boot runs under m's ID. The process that m
// describes then must not act as that node any more: to everyone, the later one
// is the node.
func (v View) Superseded(m Member) bool {
	other, ok := v.Find(m.ID)
	return ok && other.Boot > m.Boot
}
