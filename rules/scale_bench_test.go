package rules

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/limit"
)

// BenchmarkMatchScale is the promise of a large cluster: 1,000 rules in 100
// tiers and 10,000 clients with a rule of their own. It reports the ratio to
// the same requests where there are 10 rules in one tier and 10 clients, and to
// the floor: finding the same keys in a plain map, of which the processor has
// several under way at a time ("find"), or one by one, as it has to when more
// work than it can look ahead lies between them ("alone"). Clients come as clients do, a
// few of them often ("zipf"), or all in turn, when hardly any is in the
// processor's caches; with one of 100 overrides ("shared"), each with a limit of
// its own ("own"), or with names of its own as well, in all tiers too ("unlike").
func BenchmarkMatchScale(b *testing.B) {
	small := scaleSet(b, 1, 10, alike)
	sets := map[string]*Set{
		"shared": scaleSet(b, 100, 10_000, alike),
		"own":    scaleSet(b, 100, 10_000, ownLimits),
		"unlike": scaleSet(b, 100, 10_000, ownNames),
	}
	const charges, user, other = "POST /v1/r4/charges", "GET /v1/r5/users/42", "GET /health"
	for _, c := range []struct{ set, draw, route string }{
		{"shared", "one", charges}, {"shared", "ten", charges}, {"shared", "ten", user}, {"shared", "ten", other},
		{"shared", "zipf", charges}, {"shared", "turn", charges},
		{"own", "zipf", charges}, {"own", "turn", charges},
		{"unlike", "zipf", charges}, {"unlike", "turn", charges},
	} {
		b.Run(fmt.Sprintf("%s/%s/%s", c.set, c.draw, strings.NewReplacer(" ", "-", "/", ".").Replace(c.route)), func(b *testing.B) {
			benchScale(b, small, sets[c.set], c.route, scaleKeys[c.draw]())
		})
	}
}

func benchScale(b *testing.B, small, large *Set, route string, keys []string) {
	few := make([]string, len(keys))
	for i := range few {
		few[i] = fmt.Sprintf("cust_%d", i%10)
	}
	plain := map[string]*[8]int{}
	for id := range large.clients {
		plain[id] = new([8]int)
	}
	checkScale(b, small, route, few)
	checkScale(b, large, route, keys)
	var base, took, floor, alone stopwatch
	b.ReportAllocs()
	for range b.N/len(keys) + 1 {
		base.time(few, matching(small, route))
		took.time(keys, matching(large, route))
		floor.time(keys, finding(plain))
		alone.time(keys, findingAlone(plain))
	}
	b.ReportMetric(took.sum()/float64(len(keys)), "ns/match")
	b.ReportMetric(took.sum()/base.sum(), "10rules/ratio")
	b.ReportMetric(floor.sum()/float64(len(keys)), "map-ns/find")
	b.ReportMetric(alone.sum()/float64(len(keys)), "map-ns/alone")
	b.ReportMetric(took.sum()/alone.sum(), "map/ratio")
	b.ReportMetric(0, "ns/op") // of all together: says nothing
}

// BenchmarkMatchOne is the least that a Match can be: one rule without a pattern,
// by client. It reports the ratio to finding the key in a map of 10,000.
func BenchmarkMatchOne(b *testing.B) {
	s := parse(b, "tiers: {default: [{name: all, algorithm: token_bucket, limit: 10, window: 60s}]}")
	plain := map[string]*[8]int{}
	for _, key := range scaleKeys["turn"]() {
		plain[key] = new([8]int)
	}
	keys := scaleKeys["one"]()
	var took, floor stopwatch
	b.ReportAllocs()
	for range b.N/len(keys) + 1 {
		took.time(keys, matching(s, "POST /v1/charges"))
		floor.time(keys, finding(plain))
	}
	b.ReportMetric(took.sum()/float64(len(keys)), "ns/match")
	b.ReportMetric(took.sum()/floor.sum(), "map/ratio")
	b.ReportMetric(0, "ns/op") // of both together: says nothing
}

// scaleKeys draw 10,000 keys.
var scaleKeys = map[string]func() []string{
	"one": func() []string { return drawKeys(func(int) int { return 0 }) },
	"ten": func() []string { return drawKeys(func(i int) int { return i % 10 }) },
	"turn": func() []string { // in no order that memory could know
		order := rand.New(rand.NewPCG(1, 2)).Perm(10_000)
		return drawKeys(func(i int) int { return order[i] })
	},
	"zipf": func() []string {
		z := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 1, 9_999)
		return drawKeys(func(int) int { return int(z.Uint64()) })
	},
}

func drawKeys(client func(i int) int) []string {
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprintf("cust_%d", client(i))
	}
	return keys
}

// checkScale makes sure that each client has its two limits.
func checkScale(b *testing.B, s *Set, route string, keys []string) {
	for _, key := range keys {
		req := scaleRequest(route)
		req.Key = key
		var m Matches
		if err := s.Match(&req, &m); err != nil || len(m.Winners) != 2 {
			b.Fatal(ruleNames(m.Winners), err)
		}
	}
}

func scaleRequest(route string) limit.Request {
	return limit.Request{Route: route, IP: netip.MustParseAddr("192.0.2.1")}
}

// stopwatch times the same work again and again, in pieces. The least time of
// each piece is the one that other work on the machine has disturbed least.
type stopwatch struct{ least []time.Duration }

const piece = 100 // keys: some 50 µs, less than a time slice

func (w *stopwatch) time(keys []string, work func(keys []string)) {
	i := 0
	for part := range slices.Chunk(keys, piece) {
		start := time.Now()
		work(part)
		took := time.Since(start)
		if i == len(w.least) {
			w.least = append(w.least, took)
		}
		w.least[i] = min(w.least[i], took)
		i++
	}
}

// sum is in nanoseconds.
func (w *stopwatch) sum() (ns float64) {
	for _, d := range w.least {
		ns += float64(d)
	}
	return ns
}

// matching matches a request of each key.
func matching(s *Set, route string) func(keys []string) {
	m, req := new(Matches), scaleRequest(route)
	return func(keys []string) {
		for _, req.Key = range keys {
			_ = s.Match(&req, m)
		}
	}
}

// finding is the floor of matching: each key found once, and what it leads to
// looked at.
func finding(clients map[string]*[8]int) func(keys []string) {
	return func(keys []string) {
		for _, key := range keys {
			clients[key][0]++
		}
	}
}

// findingAlone is finding where each key is known only when the last was found.
func findingAlone(clients map[string]*[8]int) func(keys []string) {
	return func(keys []string) {
		skip := 0
		for i := range keys {
			skip = clients[keys[i+skip]][7] // 0
		}
	}
}

// variety is what tells the entities of a scaleSet apart.
type variety int

const (
	alike     variety = iota // clients of one tier have one body
	ownLimits                // each client has a limit of its own
	ownNames                 // and rules of a name of their own; so do tiers
)

// scaleSet has tiers of ten rules, one of them by address, and clients that have
// a tier and a rule of their own.
func scaleSet(b *testing.B, tiers, clients int, v variety) *Set {
	changes := map[EntityName][]byte{}
	for t := range tiers {
		list := []string{`{"name":"rest","by":["ip"],"algorithm":"token_bucket","limit":10,"window":"60s"}`,
			`{"name":"all","by":["attribute never"],"algorithm":"token_bucket","limit":10,"window":"60s"}`}
		for i := range 10 - len(list) {
			pattern := []string{"POST /v1/r%d/charges", "GET /v1/r%d/users/{id}"}[i%2]
			list = append(list, fmt.Sprintf(`{"name":"r%d%s","by":["ip"],"route_pattern":%q,"algorithm":"token_bucket","limit":10,"window":"60s"}`, i, v.suffix(t), fmt.Sprintf(pattern, i)))
		}
		changes[EntityName{TierEntity, fmt.Sprintf("tier%d", t)}] = []byte(`{"rules":[` + strings.Join(list, ",") + `]}`)
	}
	for c := range clients {
		limit := 1
		if v >= ownLimits {
			limit += c
		}
		body := fmt.Sprintf(`{"tier":"tier%d","rules":[{"name":"own%s","algorithm":"token_bucket","limit":%d,"window":"60s"}]}`, c%tiers, v.suffix(c), limit)
		changes[EntityName{ClientEntity, fmt.Sprintf("cust_%d", c)}] = []byte(body)
	}
	s, err := new(Set).With(changes)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// suffix of the names of the rules of one tier or client.
func (v variety) suffix(n int) string {
	if v < ownNames {
		return ""
	}
	return fmt.Sprintf("_%d", n)
}

// BenchmarkWith changes one of 10,000 clients, each of which has a limit of its
// own. It reports the ratio to a copy of a plain map of them.
func BenchmarkWith(b *testing.B) {
	s := scaleSet(b, 100, 10_000, ownLimits)
	plain := map[string]*[8]int{}
	for id := range s.clients {
		plain[id] = nil
	}
	var took, floor time.Duration
	b.ReportAllocs()
	b.ResetTimer() // the set is not what is measured
	for i := range b.N {
		body := fmt.Appendf(nil, `{"rules":[{"name":"own","algorithm":"token_bucket","limit":%d,"window":"60s"}]}`, i)
		start := time.Now()
		next, err := s.With(map[EntityName][]byte{{ClientEntity, "cust_42"}: body})
		took += time.Since(start)
		if err != nil {
			b.Fatal(err)
		}
		s, start = next, time.Now()
		plain = maps.Clone(plain)
		floor += time.Since(start)
	}
	b.ReportMetric(float64(took)/float64(floor), "clone/ratio")
}
