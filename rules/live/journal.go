package live

import "github.com/ringlimit/ringlimit/rules"

// journal remembers what a store's digest was before each of its last changes. A
// node that has one of these digests lacks what changed since, and nothing else:
// in a cluster that is at one, a change costs what changed and not the list of
// all that there is.
type journal struct {
	moments []moment
	names   int // in all moments
}

type moment struct {
	digest uint64 // before the change
	names  []rules.EntityName
}

// Bounds on a journal, and so on what a look at it costs.
const (
	maxMoments = 256
	maxChanged = 4096 // names, unless the newest change alone has more
)

func (j *journal) note(digest uint64, names []rules.EntityName) {
	j.moments = append(j.moments, moment{digest, names})
	j.names += len(names)
	for len(j.moments) > maxMoments || j.names > maxChanged && len(j.moments) > 1 {
		j.names -= len(j.moments[0].names)
		j.moments = j.moments[1:]
	}
}

// find is the place of a digest; negative: it is not known (any more).
func (j *journal) find(digest uint64) int {
	for i := len(j.moments) - 1; i >= 0; i-- {
		if j.moments[i].digest == digest {
			return i
		}
	}
	return -1
}

// since names what changed from moment i on.
func (j *journal) since(i int) map[rules.EntityName]struct{} {
	changed := map[rules.EntityName]struct{}{}
	for _, m := range j.moments[i:] {
		for _, name := range m.names {
			changed[name] = struct{}{}
		}
	}
	return changed
}
