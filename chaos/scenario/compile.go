package scenario

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/goccy/go-yaml/ast"
)

// Bounds on a scenario: a run is bounded in count and time by them.
const (
	MaxNodes = 16
	maxKeys  = 2_000_000
	maxRate  = 50_000 // checks a second
	maxTimes = 1_000
	maxSteps = 10_000           // repetitions included
	maxSpan  = 30 * time.Minute // of one step
	maxClock = 100 * 24 * time.Hour
	maxRule  = 100 * 365 * 24 * time.Hour

	minMemory = 16 << 20 // no Go program with doors lives in less
)

const defaultPatience = 2 * time.Second

// compiler turns a file into a Scenario and collects what is wrong with it.
type compiler struct {
	name     string
	root     ast.Node
	slow     bool // the network can delay
	problems []error
	counters []Class // for steps that name one
}

// wrong reports a problem at a path such as $.steps[3].join.
func (c *compiler) wrong(path, problem string, args ...any) {
	p := find(c.root, path).GetToken().Position
	field := strings.TrimPrefix(strings.TrimPrefix(path, "$"), ".")
	c.problems = append(c.problems, fmt.Errorf("%s:%d:%d: %s: %s", c.name, p.Line, p.Column, field, fmt.Sprintf(problem, args...)))
}

func (c *compiler) line(path string) int { return find(c.root, path).GetToken().Position.Line }

func (c *compiler) scenario(f *file) *Scenario {
	c.slow = Net(f.Network) == Switched
	s := &Scenario{
		About:  f.About,
		Nodes:  c.number("$.nodes", f.Nodes, 1, MaxNodes),
		Needs:  max(f.Needs, 1),
		Start:  Start(c.word("$.start", f.Start, string(OneByOne), string(Together), string(BySteps))),
		Net:    Net(c.word("$.network", f.Network, string(Loopback), string(Namespaces), string(Switched))),
		Serve:  c.serve(f.Serve),
		Files:  c.number("$.files", f.Files, 0, 1<<20),
		Memory: c.size("$.cgroup_memory", f.Memory, minMemory),
		Client: Client{
			Patience: c.span("$.patience", f.Patience, defaultPatience, time.Minute),
			Hot:      c.number("$.hot", f.Hot, 0, 100),
		},
		Bounds: c.bounds(&f.Bounds),
	}
	if f.About == "" {
		c.wrong("$.about", "is missing; say in a sentence what happens")
	}
	if s.Needs > s.Nodes {
		c.wrong("$.needs", "is %d, more than nodes (%d)", s.Needs, s.Nodes)
	}
	s.Counts = c.classes(f.Counters)
	c.counters = s.Counts
	s.Steps = c.steps("$.steps", f.Steps)
	if n := Count(s.Steps); n > maxSteps {
		c.wrong("$.steps", "are %d with all repetitions; at most %d are allowed", n, maxSteps)
	}
	if s.Net == Loopback && cuts(s.Steps) {
		c.wrong("$.network", "must be namespaces or switch: on loopback nothing can be cut")
	}
	return s
}

// reserved are the flags that the harness sets itself.
var reserved = [...]string{"name", "rules", "secret-file", "http", "grpc", "admin", "peer", "gossip", "join", "config"}

func (c *compiler) serve(flags []string) []string {
	for i, f := range flags {
		path := fmt.Sprintf("$.serve[%d]", i)
		name, _, ok := strings.Cut(strings.TrimPrefix(f, "--"), "=")
		switch {
		case !ok || !strings.HasPrefix(f, "--"):
			c.wrong(path, "is %q; write it like --deadline=200ms", f)
		case slices.Contains(reserved[:], name):
			c.wrong(path, "--%s is the harness's to set", name)
		}
	}
	return flags
}

func cuts(steps []Step) bool {
	return slices.ContainsFunc(steps, func(s Step) bool {
		return s.Cut != nil || s.Heal || s.Random != nil && slices.Contains(s.Random.Kinds, "cut") || s.Repeat != nil && cuts(s.Repeat.Steps)
	})
}

func (c *compiler) classes(counters []counter) []Class {
	if len(counters) == 0 {
		c.wrong("$.counters", "is missing; name at least one rule and its number of keys")
	}
	if !slices.ContainsFunc(counters, func(k counter) bool { return !k.Once }) {
		c.wrong("$.counters", "need one that is not for once: there is no other load")
	}
	var all []Class
	for i := range counters {
		path := fmt.Sprintf("$.counters[%d]", i)
		class := c.class(path, &counters[i])
		if slices.ContainsFunc(all, func(o Class) bool { return o.Name == class.Name }) {
			c.wrong(path+".name", "%s is there twice", class.Name)
		}
		all = append(all, class)
	}
	return all
}

var className = regexp.MustCompile(`^[a-z][a-z0-9_]{0,30}$`)

func (c *compiler) class(path string, k *counter) Class {
	if !className.MatchString(k.Name) {
		c.wrong(path+".name", "%q is not a name; write it like log_100", k.Name)
	}
	if k.Limit < 1 || k.Limit > 1e9 {
		c.wrong(path+".limit", "must be from 1 to 1000000000, is %d", k.Limit)
	}
	if k.Burst < 0 || k.Burst > 1e9 {
		c.wrong(path+".burst", "must be from 0 to 1000000000, is %d", k.Burst)
	}
	return Class{
		Name:       k.Name,
		Algorithm:  c.word(path+".algorithm", k.Algorithm, "sliding_window_log", "sliding_window_counter", "fixed_window", "token_bucket", "leaky_bucket"),
		Limit:      k.Limit,
		Window:     c.span(path+".window", k.Window, 0, maxRule),
		Burst:      k.Burst,
		OnFailure:  c.word(path+".on_failure", k.OnFailure, "local", "allow", "deny"),
		Durability: c.word(path+".durability", k.Durability, "auto", "sync", "none"),
		Keys:       c.number(path+".keys", k.Keys, 1, maxKeys),
		Once:       k.Once,
	}
}

func (c *compiler) bounds(b *bounds) Bounds {
	return Bounds{
		Extra:      c.extra(b.Extra),
		Slack:      c.number("$.bounds.slack", b.Slack, 0, maxTimes),
		Unanswered: c.share("$.bounds.unanswered", b.Unanswered),
		Homeless:   c.share("$.bounds.homeless", b.Homeless),
		Dark:       c.optional("$.bounds.dark", b.Dark),
		Exit:       c.optional("$.bounds.exit", b.Exit),
		Resets:     c.optional("$.bounds.resets", b.Resets),
		Ready:      c.optional("$.bounds.ready", b.Ready),
		Thawed:     b.Thawed,
		Growth:     c.share("$.bounds.growth", b.Growth),
	}
}

// number reports what is out of bounds.
func (c *compiler) number(path string, n, low, high int) int {
	if n < low || n > high {
		c.wrong(path, "must be from %d to %d, is %d", low, high, n)
	}
	return n
}

// size is a number of bytes; empty means 0.
func (c *compiler) size(path, text string, low int64) int64 {
	if text == "" {
		return 0
	}
	n, err := humanize.ParseBytes(text)
	if err != nil || n < uint64(low) || n > math.MaxInt64 {
		c.wrong(path, "is %q; it must be a size from %s, such as 128MiB", text, humanize.IBytes(uint64(low)))
	}
	return int64(n)
}

// word is one of the choices; empty means the first.
func (c *compiler) word(path, text string, choices ...string) string {
	if text == "" {
		return choices[0]
	}
	if !slices.Contains(choices, text) {
		c.wrong(path, "is %q; it must be one of %s", text, strings.Join(choices, ", "))
	}
	return text
}

// span is a duration; empty means the default, and 0 as the default that there
// is none.
func (c *compiler) span(path, text string, preset, longest time.Duration) time.Duration {
	if text == "" && preset > 0 {
		return preset
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > longest {
		c.wrong(path, "is %q; it must be a duration up to %v, such as 3s", text, longest)
	}
	return d
}

func (c *compiler) optional(path, text string) time.Duration {
	if text == "" {
		return 0
	}
	return c.span(path, text, 0, maxSpan)
}

// extra is a share, or by_events.
func (c *compiler) extra(text string) Share {
	if text == "by_events" {
		return Share{ByEvents: true}
	}
	return c.share("$.bounds.extra", text)
}

// share reads "any", "3" and "1%". Nothing means 0: what is not promised away
// is promised.
func (c *compiler) share(path, text string) Share {
	if text == "any" {
		return Share{Unbounded: true}
	}
	number, percent := strings.CutSuffix(text, "%")
	if text == "" {
		number = "0"
	}
	n, err := strconv.ParseFloat(number, 64)
	switch {
	case err != nil || n < 0 || n > 1e9 || !percent && n != float64(int64(n)):
		c.wrong(path, "is %q; it must be a count, a percentage such as 1%%, or any", text)
	case percent:
		return Share{Percent: n}
	}
	return Share{Count: int64(n)}
}
