package peerrpc

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// A frame that was sent before the owner stood still may wait in a socket for any
// time. When it is read at last, another node has decided long ago.
func TestJudgeRefusesFramesOfAnEarlierEra(t *testing.T) {
	table, rule := holding(testPartitions), tokens(t, 5)
	table.Learn(rule)
	d := &decider{table: table}
	cfg := serverConfig("owner", table)
	cfg.Decider = d
	stream := newJudge(&cfg)
	take := appendRecord(nil, &record{rule: rule.ID(), cost: 1, name: []byte("k")})
	ask := func(j *judge, era uint64) (a answer) {
		frame := asking(take)
		frame.Era = era
		reply, _, err := j.frame(frame, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cutAnswer(reply, &a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := ask(stream, 0); a.verdict.Remaining != 4 {
		t.Fatalf("before it stood still: %+v", a)
	}
	d.Add(1)
	elsewhere, ok := errors.AsType[*transfer.NotMine](ask(stream, 0).err)
	if !ok || elsewhere.Hint != "" || elsewhere.Ring != 7 {
		t.Errorf("of the earlier era: %+v", elsewhere)
	}
	if a := ask(stream, 1); a.verdict.Remaining != 3 {
		t.Errorf("of this era: %+v; the frame before must not have counted", a)
	}
	if a := ask(newJudge(&cfg), 0); a.verdict.Remaining != 2 {
		t.Errorf("on a stream of this era: %+v", a)
	}
}

// An asker learns of the era by the refusal, and asks on the same stream again.
func TestAskersFollowTheEra(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule, d := tokens(t, 5), &decider{table: holding(testPartitions)}
		cfg, n := serverConfig("owner", d.table), newNetwork()
		cfg.Decider = d
		serve(t, cfg, n.listen("x"))
		peer := newPool(t, n.dial).Peer(membership.Member{ID: "owner", Peer: "x"})
		check := func() (limit.Verdict, error) {
			return peer.Check(context.Background(), callOf(rule, "k", 1), within(time.Second))
		}
		for round := range int64(2) {
			if v, err := check(); err != nil || v.Remaining != 4-round {
				t.Fatalf("%+v, %v", v, err)
			}
			d.Add(1)
			if _, err := check(); !errors.Is(err, owner.ErrNotHolder) {
				t.Fatalf("the first of an era: %v", err)
			}
		}
	})
}
