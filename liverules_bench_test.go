package ringlimit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/rules"
)

// BenchmarkChange is one client's rules changed at one of two nodes, over loopback,
// until they are in force at the other: among 10,000 clients that each have a rule
// of their own. ratio is over the same among 10.
func BenchmarkChange(b *testing.B) {
	few, many := changing(b, "few", 10), changing(b, "many", 10_000)
	for i := 0; b.Loop(); i++ {
		few.change(b, i)
		many.change(b, i)
	}
	m, f := many.median(), few.median()
	b.ReportMetric(m.Seconds()*1e3, "ms/change")
	b.ReportMetric(slices.Max(many.took).Seconds()*1e3, "ms/slowest")
	b.ReportMetric(m.Seconds()/f.Seconds(), "ratio")
}

// changes are those made at one of two nodes.
type changes struct {
	at, other *Node
	took      []time.Duration
}

func changing(b *testing.B, name string, clients int) *changes {
	b.Helper()
	var own []string
	for i := range clients {
		own = append(own, fmt.Sprintf(`"cust_%d":{"rules":[{"name":"own_%d","algorithm":"token_bucket","limit":%d,"window":"1h"}]}`, i, i, 100+i))
	}
	set, err := rules.Parse("rules.json", []byte(`{"tiers":{"default":[]},"clients":{`+strings.Join(own, ",")+`}}`))
	if err != nil {
		b.Fatal(err)
	}
	c := &changes{}
	cfg := Config{Name: name + "-0", Rules: set, Peer: "127.0.0.1:0", Gossip: "127.0.0.1:0", Cluster: name}
	for i, n := range []**Node{&c.at, &c.other} {
		if i > 0 {
			cfg.Name, cfg.Join = name+"-1", []string{c.at.GossipAddr()}
		}
		if *n, err = Start(context.Background(), cfg); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = (*n).Leave(context.Background()) })
	}
	return c
}

func (c *changes) change(b *testing.B, i int) {
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	began := time.Now()
	if _, err := c.at.PutClient("cust_7", fmt.Appendf(nil, `{"rules":[{"name":"own_7","algorithm":"token_bucket","limit":%d,"window":"1h"}]}`, 200_000+i), Precondition{}); err != nil {
		b.Fatal(err)
	}
	for ; c.other.RulesSummary() != c.at.RulesSummary(); <-look.C {
		if time.Since(began) > time.Minute {
			b.Fatal("the other node does not get it")
		}
	}
	c.took = append(c.took, time.Since(began))
}

func (c *changes) median() time.Duration {
	slices.Sort(c.took)
	return c.took[len(c.took)/2]
}
