package judge

import (
	"fmt"
	"time"

	"github.com/ringlimit/ringlimit/chaos/history"
	"github.com/ringlimit/ringlimit/chaos/scenario"
)

// sums is what the keys of one class came to.
type sums struct {
	keys, over      int64 // keys that were asked for; those above A
	extra, total    int64 // above A, by owners: of the worst key, of all keys
	beyond          int64 // above what its events excuse, of the worst key; see excuses
	fallback, spare int64 // admitted by on_failure: of the worst key; what it might be
	below, short    int64 // refused below the limit: keys, and by how much the worst
}

// admissions judges each class by its worst key.
func (c *Case) admissions(t *tally, e *excuses) []Line {
	all := map[*scenario.Class]*sums{}
	for key := range t.accounts {
		class := c.Keys.Class(key)
		if all[class] == nil {
			all[class] = &sums{}
		}
		c.addUp(all[class], class, t.accounts[key], e)
	}
	var lines []Line
	classes := c.Keys.Classes()
	for i := range classes {
		if s := all[&classes[i]]; s != nil {
			lines = append(lines, c.classLines(&classes[i], s)...)
		}
	}
	return lines
}

func (c *Case) addUp(s *sums, class *scenario.Class, a *account, e *excuses) {
	from, to := c.wall(a.first), c.wall(a.last)
	s.keys++
	if extra := a.owner - Admits(class, from, to); extra > 0 {
		s.over++
		s.total += extra
		s.extra = max(s.extra, extra)
		s.beyond = max(s.beyond, extra-e.of(class, a.first, a.last))
	}
	s.fallback = max(s.fallback, a.fallback)
	s.spare = max(s.spare, class.Limit*(int64(to.Sub(from)/class.Window)+1))
	if short := c.short(class, a); short > 0 {
		s.below++
		s.short = max(s.short, short)
	}
}

func (c *Case) wall(at int64) time.Time { return c.History.Began().Add(time.Duration(at)) }

// short is by how much a key was refused below its limit. What nobody knows the
// fate of may have been charged. A bucket's deficit is rounded up to a whole
// token, and a counter that another window weighs upon is not judged.
func (c *Case) short(class *scenario.Class, a *account) int64 {
	if !a.refused {
		return 0
	}
	tolerated := int64(0)
	switch class.Algorithm {
	case "token_bucket", "leaky_bucket":
		tolerated = 1
	case "sliding_window_counter":
		if windows(class, c.wall(a.first), c.wall(a.last)) > 1 {
			return 0
		}
	}
	return Capacity(class) - a.owner - a.unknown - tolerated
}

func (c *Case) classLines(class *scenario.Class, s *sums) []Line {
	var lines []Line
	promised := c.Bounds.Extra.Of(class.Limit) + int64(c.Bounds.Slack)*class.Slack()
	name := fmt.Sprintf("%s: extra admissions by owners, a key", class.Name)
	note := fmt.Sprintf("%d keys, %d above the limit of %d, by %d in all", s.keys, s.over, class.Limit, s.total)
	switch {
	case c.Bounds.Extra.Unbounded:
		lines = append(lines, figure(name, s.extra, note))
	case c.Bounds.Extra.ByEvents:
		lines = append(lines, figure(name, s.extra, note),
			bound(fmt.Sprintf("%s: … beyond what happened in its life", class.Name), 0, s.beyond, "U for each kill and pause, the limit for each cut"))
	default:
		lines = append(lines, bound(name, promised, s.extra, "%s", note))
	}
	name = fmt.Sprintf("%s: admissions by on_failure: %s, a key", class.Name, class.OnFailure)
	switch class.OnFailure {
	case "deny":
		lines = append(lines, bound(name, 0, s.fallback, ""))
	case "local":
		lines = append(lines, bound(name, s.spare, s.fallback, ""))
	default:
		lines = append(lines, figure(name, s.fallback, ""))
	}
	return append(lines, bound(fmt.Sprintf("%s: refused below the limit, a key", class.Name), 0, s.short, "%d keys", s.below))
}

// thawed judges what a paused process charged when it woke. A charge that nobody
// was told of shows as a key that was refused early. What was asked while no
// process was stopped may have been charged and its answer lost, as ever; what is
// missing beyond that was asked during a pause, and charged after it.
func (c *Case) thawed(t *tally, events []history.Event) Line {
	missing, keys, total := c.untold(t), int64(0), int64(0)
	stops := pauses(events)
	for r := range c.History.Records() {
		if missing[r.Key] > 0 && !r.ByOwner() && !stops.at(r.Call) {
			missing[r.Key] -= int64(r.Cost)
		}
	}
	for _, m := range missing {
		if m > 0 {
			keys++
			total += m
		}
	}
	return bound("charged by a process that woke, without an answer", 0, total, "%d keys", keys)
}

// untold is, for each key that was used up, what was charged beyond what owners
// were seen to admit.
func (c *Case) untold(t *tally) map[uint32]int64 {
	missing := map[uint32]int64{}
	for key, a := range t.accounts {
		class := c.Keys.Class(key)
		if class.Algorithm == "token_bucket" || class.Algorithm == "leaky_bucket" {
			continue // what comes back meanwhile blurs it
		}
		if m := Capacity(class) - a.owner; a.refused && m > 0 {
			missing[key] = m
		}
	}
	return missing
}
