package driver

import (
	"log/slog"
	"slices"

	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/ring"
)

// rings remembers the last rings made: the core asks again for one that it had a
// moment ago, when a node flaps and for standbys.
type rings struct {
	params ring.Params
	log    *slog.Logger
	made   []*ring.Ring // the latest first
}

const ringsKept = 8

// of is the ring of these members.
func (k *rings) of(ids []membership.NodeID) *ring.Ring {
	i := slices.IndexFunc(k.made, func(r *ring.Ring) bool { return slices.Equal(r.Nodes(), ids) })
	if i < 0 {
		return k.add(ids)
	}
	r := k.made[i]
	copy(k.made[1:i+1], k.made[:i])
	k.made[0] = r
	return r
}

// add makes a ring. Names that cannot form one were never admitted as members;
// should it happen, the ring before is the best there is.
func (k *rings) add(ids []membership.NodeID) *ring.Ring {
	r, err := ring.New(k.params, ids)
	if err != nil {
		k.log.Error("the members cannot form a ring; keeping the one before", "error", err)
		if len(k.made) > 0 {
			return k.made[0]
		}
		r, _ = ring.New(k.params, nil)
	}
	k.made = slices.Insert(k.made, 0, r)
	k.made = k.made[:min(len(k.made), ringsKept)]
	return r
}
