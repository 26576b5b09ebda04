package scenario

import (
	"fmt"
	"time"
)

func (c *compiler) cut(at string, k *cut) *Cut {
	if len(k.From) == 0 || len(k.To) == 0 {
		c.wrong(at, "needs from and to, lists of node numbers such as [0, 1]")
	}
	c.numbers(at+".from", k.From)
	c.numbers(at+".to", k.To)
	made := &Cut{From: k.From, To: k.To, Both: !k.OneWay}
	if k.Delay == "" && k.Jitter == "" {
		c.losing(at, k, made)
	} else {
		c.delaying(at, k, made)
	}
	return made
}

func (c *compiler) numbers(at string, nodes []int) {
	for i, n := range nodes {
		c.number(fmt.Sprintf("%s[%d]", at, i), n, 0, MaxNodes-1)
	}
}

// losing reads what is lost.
func (c *compiler) losing(at string, k *cut, made *Cut) {
	made.Percent, made.Reject = 100, k.Reject
	if k.Percent != nil {
		made.Percent = c.number(at+".percent", *k.Percent, 1, 100)
	}
	if k.Only != "" {
		made.Only = Traffic(c.word(at+".only", k.Only, string(UDP), string(TCP), string(Gossip), string(Peer)))
	}
}

// longestDelay is far above what any network on this planet needs.
const longestDelay = 2 * time.Second

// delaying reads how slow a link is. The switch knows no kinds of packets, and a
// cut that did both would hide which of the two broke a bound.
func (c *compiler) delaying(at string, k *cut, made *Cut) {
	if !c.slow {
		c.wrong(at+".delay", "needs network: switch, the only one that can delay")
	}
	for _, other := range []struct {
		field string
		set   bool
	}{{"percent", k.Percent != nil}, {"only", k.Only != ""}, {"reject", k.Reject}} {
		if other.set {
			c.wrong(at+"."+other.field, "does not go with delay; write one more cut for what is lost")
		}
	}
	made.Delay = c.span(at+".delay", k.Delay, 0, longestDelay)
	if k.Jitter == "" {
		return
	}
	made.Jitter = c.span(at+".jitter", k.Jitter, 0, longestDelay)
	if made.Jitter > made.Delay {
		c.wrong(at+".jitter", "is %v, more than the delay (%v): nothing arrives before it was sent", made.Jitter, made.Delay)
	}
}
