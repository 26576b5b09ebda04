package ringlimit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/rules/live"
)

// pulling is a puller among members that a test plays.
type pulling struct {
	*puller
	log logged

	mu      sync.Mutex
	members []membership.Member
	asked   map[membership.NodeID]int
	give    map[membership.NodeID]func(context.Context) ([]live.Entry, uint64, error)
}

// play runs f with a puller in a bubble.
func play(t *testing.T, f func(t *testing.T, p *pulling)) {
	synctest.Test(t, func(t *testing.T) {
		p := &pulling{
			members: []membership.Member{{ID: "self"}},
			asked:   map[membership.NodeID]int{}, give: map[membership.NodeID]func(context.Context) ([]live.Entry, uint64, error){},
		}
		n := &Node{self: membership.Member{ID: "self"}, store: live.NewStore("self"), cfg: Config{Logger: p.log.logger()}}
		p.puller = newPuller(n)
		p.ask = func(ctx context.Context, m membership.Member) ([]live.Entry, uint64, error) {
			p.mu.Lock()
			p.asked[m.ID]++
			give := p.give[m.ID]
			p.mu.Unlock()
			return give(ctx)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			p.run(ctx, func() []membership.Member {
				p.mu.Lock()
				defer p.mu.Unlock()
				return p.members
			})
		})
		f(t, p)
		cancel()
		running.Wait()
	})
}

// join adds a member with these rules, or changes what it says.
func (p *pulling) join(id membership.NodeID, s live.Summary, give func(context.Context) ([]live.Entry, uint64, error)) {
	p.mu.Lock()
	members := []membership.Member{{ID: id, Rules: membership.RulesSummary(s)}}
	for _, m := range p.members {
		if m.ID != id {
			members = append(members, m)
		}
	}
	p.members, p.give[id] = members, give
	p.mu.Unlock()
	p.notice()
	synctest.Wait()
}

func (p *pulling) times(id membership.NodeID) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[id]
}

func (p *pulling) isEven() bool {
	even := false
	p.await(context.Background(), func(is progress) bool { even = is.even(); return true })
	return even
}

func from(s *live.Store) func(context.Context) ([]live.Entry, uint64, error) {
	return func(context.Context) ([]live.Entry, uint64, error) {
		entries, digest := s.Newer(nil)
		return entries, digest, nil
	}
}

func hang(ctx context.Context) ([]live.Entry, uint64, error) {
	<-ctx.Done()
	return nil, 0, ctx.Err()
}

func storeWith(t *testing.T, node string, tiers ...string) *live.Store {
	t.Helper()
	s := live.NewStore(node)
	for _, tier := range tiers {
		if _, _, err := s.Put(tierOf(tier), window(1), Precondition{}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestPullIsQuietOnceNothingIsNew(t *testing.T) {
	play(t, func(t *testing.T, p *pulling) {
		a := storeWith(t, "a", "x", "y")
		p.join("none", live.Summary{}, hang)
		if !p.isEven() || p.times("none") != 0 {
			t.Error("a member without rules was asked, or waited for")
		}
		p.join("a", a.Summary(), from(a))
		if p.store.Summary() != a.Summary() || p.times("a") != 1 {
			t.Fatalf("asked %d times; %+v, want %+v", p.times("a"), p.store.Summary(), a.Summary())
		}
		// It stays behind, and what it says may be late, too.
		late := a.Summary()
		if _, _, err := p.store.Put(tierOf("x"), window(2), Precondition{}); err != nil {
			t.Fatal(err)
		}
		p.join("a", late, from(a))
		// Nobody remembers these digests; b had nothing that is news.
		b := storeWith(t, "b", "x")
		p.join("b", b.Summary(), from(b))
		time.Sleep(10 * time.Second)
		if p.times("a") != 1 || p.times("b") != 1 {
			t.Errorf("asked %d and %d times without news", p.times("a"), p.times("b"))
		}
		if _, _, err := b.Put(tierOf("z"), window(3), Precondition{}); err != nil {
			t.Fatal(err)
		}
		p.join("b", b.Summary(), from(b))
		if _, ok := p.store.Get(tierOf("z")); !ok || p.times("b") != 2 {
			t.Errorf("asked %d times, has it: %v", p.times("b"), ok)
		}
	})
}

func TestPullTriesOnEachSecond(t *testing.T) {
	play(t, func(t *testing.T, p *pulling) {
		a := storeWith(t, "a", "x")
		p.join("a", a.Summary(), func(context.Context) ([]live.Entry, uint64, error) { return nil, 0, errors.New("out of reach") })
		for range 50 { // news does not make it ask more often
			p.notice()
			time.Sleep(100 * time.Millisecond)
		}
		if n := p.times("a"); n < 4 || n > 6 || p.log.count("out of reach") != 1 || p.isEven() {
			t.Errorf("asked %d times in 5 s, %d lines; even: %v", n, p.log.count("out of reach"), p.isEven())
		}
		p.join("a", a.Summary(), from(a))
		time.Sleep(2 * time.Second)
		if p.store.Summary() != a.Summary() || !p.isEven() {
			t.Error("it gave up")
		}
	})
}

func TestPullIsNotHeldUpByOneThatHangs(t *testing.T) {
	play(t, func(t *testing.T, p *pulling) {
		a := storeWith(t, "a", "x")
		p.join("hung", live.Summary{Version: 1, Digest: 99}, hang)
		p.join("a", a.Summary(), from(a))
		if p.store.Summary() != a.Summary() || p.isEven() {
			t.Errorf("%+v, want %+v; even: %v, but one has not answered", p.store.Summary(), a.Summary(), p.isEven())
		}
		start := time.Now()
		if has := p.catchUp(t.Context()); !has || time.Since(start) != catchUpRest || p.log.count("have come") != 1 {
			t.Errorf("has rules: %v; waited %v to serve, want %v", has, time.Since(start), catchUpRest)
		}
		time.Sleep(time.Minute)
		if n := p.times("hung"); n < 2 || n > 4 { // for 30 s each time
			t.Errorf("asked %d times in a minute", n)
		}
	})
}

// Where members have rules and none gives them, that is waited for, not for ever.
func TestCatchUpWaitsForTheRules(t *testing.T) {
	play(t, func(t *testing.T, p *pulling) {
		a := storeWith(t, "a", "x")
		p.join("dead", live.Summary{Version: 1, Digest: 99}, hang)
		start := time.Now()
		if has := p.catchUp(t.Context()); has || time.Since(start) != catchUpTime {
			t.Errorf("has rules: %v after %v", has, time.Since(start))
		}
		start = time.Now()
		time.AfterFunc(3*time.Second, func() { p.join("dead", a.Summary(), from(a)); p.join("b", a.Summary(), from(a)) })
		if has := p.catchUp(t.Context()); !has || p.store.Summary() != a.Summary() || time.Since(start) > 4*time.Second {
			t.Errorf("has rules: %v after %v; another member had them after 3 s", has, time.Since(start))
		}
	})
}

// What has come of an attempt that fails is kept.
func TestPullKeepsWhatHasCome(t *testing.T) {
	play(t, func(t *testing.T, p *pulling) {
		a := storeWith(t, "a", "x", "y", "z")
		p.join("a", a.Summary(), func(context.Context) ([]live.Entry, uint64, error) {
			entries, _ := a.Newer(p.store.Digest())
			return entries[:1], 0, errors.New("no more")
		})
		time.Sleep(2*pullRetry + pullRetry/2)
		if p.store.Summary() != a.Summary() {
			t.Errorf("after three attempts of an entry each: %+v, want %+v", p.store.Summary(), a.Summary())
		}
	})
}

func TestPullAsksFewAtOnce(t *testing.T) {
	play(t, func(t *testing.T, p *pulling) {
		for i := range 3 * pullsAtOnce {
			p.join(membership.NodeID(fmt.Sprint("m", i)), live.Summary{Version: 1, Digest: uint64(i + 1)}, hang)
		}
		asked := func() (n int) {
			for i := range 3 * pullsAtOnce {
				n += p.times(membership.NodeID(fmt.Sprint("m", i)))
			}
			return n
		}
		if n := asked(); n != pullsAtOnce {
			t.Errorf("%d asked at once", n)
		}
		time.Sleep(pullTimeout + pullRetry/2)
		if n := asked(); n != 2*pullsAtOnce {
			t.Errorf("%d asked when the first ones had hung, want the others too", n)
		}
		time.Sleep(2 * pullTimeout)
		for i := range 3 * pullsAtOnce {
			if id := membership.NodeID(fmt.Sprint("m", i)); p.times(id) == 0 {
				t.Errorf("%s was never asked: those that hang take all turns", id)
			}
		}
	})
}
