package scenario

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// steps reads a list of steps, each a mapping with one key.
func (c *compiler) steps(path string, all []step) []Step {
	if len(all) == 0 {
		c.wrong(path, "is missing; a scenario does something")
	}
	var steps []Step
	for i := range all {
		at := fmt.Sprintf("%s[%d]", path, i)
		if set := verbs(&all[i]); len(set) != 1 {
			c.wrong(at, "must do one thing, but has %d (%s); begin each with a dash", len(set), strings.Join(set, ", "))
			continue
		}
		s := c.step(at, &all[i])
		s.Line = c.line(at)
		steps = append(steps, s)
	}
	return steps
}

// verbs lists the fields that are set.
func verbs(s *step) (set []string) {
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			set = append(set, v.Type().Field(i).Tag.Get("yaml"))
		}
	}
	return set
}

func (c *compiler) step(at string, s *step) Step {
	switch {
	case s.Load != nil:
		return Step{Load: &Load{
			Steady: c.number(at+".load.steady", s.Load.Steady, 0, maxRate),
			Bursty: c.number(at+".load.bursty", s.Load.Bursty, 0, maxRate),
		}}
	case s.Fill != "":
		return Step{Fill: &Fill{c.span(at+".fill", s.Fill, 0, maxSpan)}}
	case s.Flood != "":
		return Step{Flood: &Fill{c.span(at+".flood", s.Flood, 0, maxSpan)}}
	case s.Random != nil:
		return Step{Random: c.random(at+".random", s.Random)}
	case s.Wait != "":
		return Step{Wait: c.span(at+".wait", s.Wait, 0, maxSpan)}
	case s.Settle != "":
		return Step{Settle: c.span(at+".settle", s.Settle, 0, maxSpan)}
	case s.Resets != "":
		return Step{Resets: Resets(c.word(at+".resets", s.Resets, string(NoteResets), string(CompareResets)))}
	case s.Limit != nil:
		return Step{Limit: c.limit(at+".limit", s.Limit)}
	case s.Repeat != nil:
		return Step{Repeat: &Repeat{
			Times: c.number(at+".repeat.times", s.Repeat.Times, 1, maxTimes),
			Steps: c.steps(at+".repeat.steps", s.Repeat.Steps),
		}}
	case s.Cut != nil:
		return Step{Cut: c.cut(at+".cut", s.Cut)}
	case s.FreshKeys || s.Heal:
		return Step{Fresh: s.FreshKeys, Heal: s.Heal}
	}
	return c.nodeStep(at, s)
}

// nodeStep reads the steps that happen to nodes.
func (c *compiler) nodeStep(at string, s *step) Step {
	switch {
	case s.Attack != nil:
		return Step{Attack: c.attack(at+".attack", s.Attack)}
	case s.Join != nil:
		return Step{Join: c.join(at+".join", s.Join)}
	case s.Kill != "":
		return Step{Signal: &Signal{Kill: true, Who: c.target(at+".kill", s.Kill), Wait: reaping}}
	case s.Terminate != nil:
		return Step{Signal: &Signal{
			Who:  c.target(at+".terminate.nodes", s.Terminate.Nodes),
			Wait: c.optional(at+".terminate.wait", s.Terminate.Wait),
		}}
	case s.Pause != nil:
		return Step{Pause: &Pause{c.target(at+".pause.node", s.Pause.Node), c.span(at+".pause.for", s.Pause.For, 0, maxSpan)}}
	case s.Restart != nil:
		return Step{Restart: &Restart{
			Who:    c.target(at+".restart.nodes", s.Restart.Nodes),
			Kill:   c.word(at+".restart.signal", s.Restart.Signal, "TERM", "KILL") == "KILL",
			Down:   c.optional(at+".restart.down", s.Restart.Down),
			Settle: c.optional(at+".restart.settle", s.Restart.Settle),
		}}
	}
	return Step{Start: c.target(at+".start", s.Start)}
}

func (c *compiler) limit(at string, l *limit) *Limit {
	i := slices.IndexFunc(c.counters, func(k Class) bool { return k.Name == l.Counter })
	switch {
	case i < 0:
		c.wrong(at+".counter", "%q is none of the counters", l.Counter)
	case l.To < 1 || l.To > c.counters[i].Limit:
		c.wrong(at+".to", "must be from 1 to the limit that the counter begins with (%d), by which it is judged; is %d", c.counters[i].Limit, l.To)
	}
	return &Limit{Node: c.target(at+".node", l.Node), Class: l.Counter, To: l.To}
}

// reaping is how long the kernel may take to end a process that was killed.
const reaping = 5 * time.Second

func (c *compiler) join(at string, j *join) *Join {
	clock := time.Duration(0)
	if j.Clock != "" {
		clock = c.span(at+".clock", j.Clock, 0, maxClock)
	}
	if j.Build != "" && !className.MatchString(j.Build) {
		c.wrong(at+".build", "%q is no build tag; write it like planted_ring", j.Build)
	}
	if j.Refused != "" && j.Ready != nil {
		c.wrong(at+".ready", "and refused exclude each other")
	}
	return &Join{
		Count:   c.number(at+".count", j.Count, 1, MaxNodes),
		Ready:   j.Ready == nil && j.Refused == "" || j.Ready != nil && *j.Ready,
		Clock:   clock,
		Alien:   j.Alien,
		Build:   j.Build,
		Refused: j.Refused,
	}
}

// maxConnections is less than the ports that one address has to give.
const maxConnections = 20_000

func (c *compiler) attack(at string, a *attack) *Attack {
	return &Attack{
		Kind:        AttackKind(c.word(at+".kind", a.Kind, string(Garbage), string(SlowHeaders))),
		Who:         c.target(at+".nodes", a.Nodes),
		Connections: c.number(at+".connections", a.Connections, 0, maxConnections),
		For:         c.span(at+".for", a.For, 0, maxSpan),
	}
}

func (c *compiler) random(at string, r *random) *Random {
	kinds := r.Kinds
	for i, k := range kinds {
		c.word(fmt.Sprintf("%s.kinds[%d]", at, i), k, RandomKinds()...)
	}
	if len(kinds) == 0 {
		c.wrong(at+".kinds", "is missing; name at least one of %s", strings.Join(RandomKinds(), ", "))
	}
	return &Random{
		For:   c.span(at+".for", r.For, 0, maxSpan),
		Pause: c.span(at+".pause", r.Pause, 0, maxSpan),
		Kinds: kinds,
	}
}

func (c *compiler) target(at, text string) Target {
	if n, err := strconv.Atoi(text); err == nil {
		c.number(at, n, 0, MaxNodes-1)
		return Target(text)
	}
	words := []string{string(Any), string(All), string(AllButA), string(OwnerOf), string(Standby), string(Pair), string(Newest), string(Down)}
	if text == "" {
		c.wrong(at, "is missing; name a node by its number or as one of %s", strings.Join(words, ", "))
	}
	return Target(c.word(at, text, words...))
}
