package sim

import (
	"github.com/ringlimit/ringlimit/owner"
)

// split is a time in which the cluster is in several pieces, and what may come
// of it: which partitions got another holder.
type split struct {
	lasts int64
	until int64 // all have heard of each other again
	moved map[int]bool
}

// part begins a split.
func (o *oracle) part(lasts int64) {
	o.splits = append(o.splits, &split{lasts: lasts, until: o.w.now + lasts + longest, moved: map[int]bool{}})
}

// apart says that there may be several pieces.
func (o *oracle) apart() bool {
	for _, s := range o.splits {
		if o.w.now <= s.until {
			return true
		}
	}
	return false
}

// began takes note that a node holds a partition from now on. In a split, that
// may be a second holder, who admits all over again for as long as it lasts.
func (o *oracle) began(p int) {
	for _, s := range o.splits {
		if o.w.now > s.until || s.moved[p] {
			continue
		}
		s.moved[p] = true
		for _, k := range o.of(p) {
			l := o.limit(k)
			k.excused += l + l*(s.lasts+longest)/int64(k.old.Window) + 1
		}
	}
}

// loses takes note that a process is about to crash or to stand still, and of
// what that may cost: a little of what it decides for, if another has a copy,
// and else all of it. A copy costs nothing, but when it is needed just now.
func (o *oracle) loses(n *node) {
	for p := range o.w.cfg.Partitions {
		part := n.core.Partition(p)
		switch {
		case part.Phase == owner.Holding, n.frozen(p) && !o.held(p, n):
			o.excuse(p, part.Seeded && o.guards(o.w.node(part.Standby), p) && !o.apart())
		case part.Copied && !o.held(p, n):
			o.excuse(p, false)
		}
	}
}

// guards says that a node runs and has a copy, or what was a copy when it was
// made a part of something better.
func (o *oracle) guards(n *node, p int) bool {
	part := n.core.Partition(p)
	return n.running() && (part.Copied || part.Phase != owner.None)
}

// excuse lets the keys of a partition be over-admitted once.
func (o *oracle) excuse(p int, guarded bool) {
	if !guarded {
		o.lost++
	}
	for _, k := range o.of(p) {
		if guarded && k.slack >= 0 {
			k.excused += k.slack
		} else {
			k.excused += o.limit(k)
		}
	}
}

// limit is the key's limit, or the larger of two when the rules have changed.
func (o *oracle) limit(k *key) int64 {
	if o.changed {
		return max(k.old.Limit, k.new.Limit)
	}
	return k.old.Limit
}

// of lists the keys of a partition.
func (o *oracle) of(p int) (keys []*key) {
	for _, k := range o.keys {
		if k.partition == p {
			keys = append(keys, k)
		}
	}
	return keys
}

// held says that a node besides this one decides for a partition.
func (o *oracle) held(p int, but *node) bool {
	for _, n := range o.w.nodes {
		if n != but && n.decides(p) {
			return true
		}
	}
	return false
}

// decides says that a node would decide now. One that stands still does not.
func (n *node) decides(p int) bool {
	return n.running() && n.table.Phase(p) == owner.Holding && n.clock() <= n.core.DecideUntil()
}

// frozen says that the node has counters that it decided with once, and nobody
// has told it that they are not needed.
func (n *node) frozen(p int) bool {
	return n.table.Phase(p) == owner.Released || n.table.Phase(p) == owner.Acquiring && n.own[p]
}
