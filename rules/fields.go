package rules

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringlimit/ringlimit/limit"
)

const maxNameBytes = 128

// MaxPriority bounds a rule's priority on both sides of 0.
const MaxPriority = 1_000_000

// The spellings of two choices, by what they are compiled to.
var (
	onMissing   = map[bool]string{false: "skip", true: "deny"}
	retryJitter = map[bool]string{true: "full", false: "none"}
)

// ruleFields are the fields of a rule, in the order in which errors list them.
// Each setter reads the value of its field.
var ruleFields = []struct {
	name string
	set  func(*draft, string, *value)
}{
	{"name", (*draft).setName},
	{"route_pattern", (*draft).setPattern},
	{"by", (*draft).setBy},
	{"algorithm", (*draft).setAlgorithm},
	{"limit", (*draft).setLimit},
	{"window", (*draft).setWindow},
	{"timezone", (*draft).setTimezone},
	{"burst", (*draft).setBurst},
	{"delay", (*draft).setDelay},
	{"on_failure", (*draft).setOnFailure},
	{"durability", (*draft).setDurability},
	{"on_missing", (*draft).setOnMissing},
	{"retry_jitter", (*draft).setRetryJitter},
	{"priority", (*draft).setPriority},
	{"unlimited", (*draft).setUnlimited},
	{"shadow", (*draft).setShadow},
}

// windowSeconds may stand for window in JSON, for callers who have a number.
const windowSeconds = "window_s"

func (d *draft) setField(e member) {
	if e.key == windowSeconds && d.json {
		d.setWindowSeconds(e.key, e.value)
		return
	}
	for _, f := range ruleFields {
		if f.name == e.key {
			f.set(d, e.key, e.value)
			return
		}
	}
	d.report(e.at, join(d.path, e.key), "is no field of a rule; these are: %s", fieldNames())
}

func fieldNames() string {
	var names []string
	for _, f := range ruleFields {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}

func (d *draft) setName(field string, n *value) {
	name, ok := d.text(n, join(d.path, field), "charges")
	if problem := nameProblem(name); ok && problem != "" {
		d.refuse(field, "%s", problem)
	}
	d.name = name
}

// nameProblem checks the name of a rule or a tier. Names stand in quoted
// strings of HTTP fields (RFC 9651), which are ASCII.
func nameProblem(name string) string {
	unprintable := func(c rune) bool { return c < ' ' || c > '~' }
	switch {
	case name == "":
		return "is empty; give a name, such as free"
	case len(name) > maxNameBytes:
		return fmt.Sprintf("is %d bytes long; at most %d are allowed", len(name), maxNameBytes)
	case strings.ContainsFunc(name, unprintable):
		return fmt.Sprintf("is %q; names are of printable ASCII characters, because they stand in HTTP headers", name)
	}
	return ""
}

// setPattern only takes the text: a pattern is checked against those of the
// whole tier.
func (d *draft) setPattern(field string, n *value) {
	text, ok := d.text(n, join(d.path, field), `"GET /v1/users/{id}"`)
	if d.pattern = text; ok && text == "" {
		d.refuse(field, "is empty; leave it out, or %s", patternSyntax)
	}
}

func (d *draft) setBy(field string, n *value) {
	items, ok := d.items(n, join(d.path, field), "[client] or [ip, attribute region]")
	if ok && (len(items) == 0 || len(items) > MaxDimensions) {
		d.refuse(field, "has %d entries; give 1 to %d, or leave it out for [client]", len(items), MaxDimensions)
		return
	}
	d.by = nil
	for i, item := range items {
		d.addDimension(item, fmt.Sprintf("%s[%d]", join(d.path, field), i))
	}
	if slices.Equal(d.by, byClientOnly) {
		d.by = byClientOnly
	}
}

func (d *draft) addDimension(n *value, path string) {
	text, ok := d.text(n, path, "client")
	if !ok {
		return
	}
	dim, problem := parseDimension(text)
	if problem == "" && slices.Contains(d.by, dim) {
		problem = "stands twice; leave one of them"
	}
	if problem != "" {
		d.report(n.at, path, "%.64q %s", text, problem)
	}
	d.by = append(d.by, dim)
}

func (d *draft) setAlgorithm(field string, n *value) {
	if text, ok := d.text(n, join(d.path, field), "token_bucket"); ok {
		a, err := limit.ParseAlgorithm(text)
		d.spec.Algorithm = a
		d.refuseSpec(err)
	}
}

func (d *draft) setLimit(field string, n *value) {
	d.spec.Limit, _ = d.integer(n, join(d.path, field))
}

func (d *draft) setWindow(field string, n *value) {
	d.window = n.text
	if n.kind != integer {
		var ok bool
		if d.window, ok = d.text(n, join(d.path, field), "60s"); !ok {
			return
		}
	}
	d.readWindow(field)
}

func (d *draft) setWindowSeconds(field string, n *value) {
	const most = int64(limit.MaxWindow / time.Second)
	seconds, ok := d.integer(n, join(d.path, field))
	switch {
	case !ok:
	case seconds < 1 || seconds > most:
		d.refuse(field, "is %d; it must be a whole number from 1 to %d, 100 years; window takes shorter ones, like 500ms", seconds, most)
	default:
		d.window = fmt.Sprintf("%ds", seconds)
		d.readWindow(field)
	}
}

func (d *draft) readWindow(field string) {
	var problem string
	if d.spec.Window, d.spec.Calendar, problem = parseWindow(d.window); problem != "" {
		d.refuse(field, "is %.64q; it %s", d.window, problem)
	}
}

func (d *draft) setTimezone(field string, n *value) {
	text, ok := d.text(n, join(d.path, field), "Europe/Berlin")
	if d.spec.Timezone = text; ok && text == "" {
		d.refuse(field, "is empty; leave it out for UTC, or name a zone such as Europe/Berlin")
	}
}

func (d *draft) setBurst(field string, n *value) {
	d.spec.Burst, _ = d.integer(n, join(d.path, field))
}

func (d *draft) setDelay(field string, n *value) {
	delay, _ := d.boolean(n, join(d.path, field))
	d.spec.Police = !delay
}

func (d *draft) setOnFailure(field string, n *value) {
	if text, ok := d.text(n, join(d.path, field), "local"); ok {
		f, err := limit.ParseOnFailure(text)
		d.onFailure = f
		d.refuseSpec(err)
	}
}

func (d *draft) setDurability(field string, n *value) {
	if text, ok := d.text(n, join(d.path, field), "auto"); ok {
		durability, err := limit.ParseDurability(text)
		d.spec.Durability = durability
		d.refuseSpec(err)
	}
}

func (d *draft) setPriority(field string, n *value) {
	priority, _ := d.integer(n, join(d.path, field))
	if priority < -MaxPriority || priority > MaxPriority {
		d.refuse(field, "is %d; it must be an integer from -%d to %d", priority, MaxPriority, MaxPriority)
	}
	d.priority = int32(priority)
}

func (d *draft) setUnlimited(field string, n *value) {
	d.unlimited, _ = d.boolean(n, join(d.path, field))
}

func (d *draft) setShadow(field string, n *value) {
	d.shadow, _ = d.boolean(n, join(d.path, field))
}

func (d *draft) setOnMissing(field string, n *value) { d.deny = d.choose(field, n, onMissing) }

func (d *draft) setRetryJitter(field string, n *value) { d.jitter = d.choose(field, n, retryJitter) }

func (d *draft) choose(field string, n *value, spellings map[bool]string) bool {
	text, ok := d.text(n, join(d.path, field), spellings[true])
	if ok && text != spellings[true] && text != spellings[false] {
		d.refuse(field, "is %.64q; it must be %s or %s", text, spellings[false], spellings[true])
	}
	return text == spellings[true]
}
