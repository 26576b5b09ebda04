package gossip

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// errSelf is why an address of our own is no success: memberlist joins it
// without complaint, and with it nobody.
var errSelf = errors.New("this is the node itself")

// errSilent is what an address has got until it answers or fails.
var errSilent = errors.New("no answer yet")

// seed is one entry of Config.Join.
type seed struct {
	text string
	host string
	port uint16 // 0: the one we have ourselves
}

func parseSeeds(join []string) ([]seed, error) {
	var seeds []seed
	for _, text := range join {
		s, err := parseSeed(text)
		if err != nil {
			return nil, fmt.Errorf("gossip: join: %q: %w", text, err)
		}
		seeds = append(seeds, s)
	}
	return seeds, nil
}

func parseSeed(text string) (seed, error) {
	if _, err := netip.ParseAddr(text); err == nil || !strings.Contains(text, ":") {
		if text == "" || strings.ContainsAny(text, "/ ") {
			return seed{}, errors.New("want host:port or a DNS name")
		}
		return seed{text: text, host: text}, nil
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil || host == "" || strings.ContainsAny(host, "/ ") {
		return seed{}, errors.New("want host:port or a DNS name")
	}
	p, err := strconv.ParseUint(port, 10, 16)
	if err != nil || p == 0 {
		return seed{}, errors.New("the port is not from 1 to 65535")
	}
	return seed{text, host, uint16(p)}, nil
}

// JoinError says what came of each address that Join tried.
type JoinError struct {
	Tried map[string]error
	Cause error // why Join gave up
}

func (e *JoinError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "gossip: join: no member answered (%v)", e.Cause)
	for _, addr := range slices.Sorted(maps.Keys(e.Tried)) {
		fmt.Fprintf(&b, "; %s: %v", addr, e.Tried[addr])
	}
	b.WriteString(": want gossip addresses of members with the same cluster name and secret")
	return b.String()
}

func (e *JoinError) Unwrap() error { return e.Cause }

// Join tries Config.Join until another member answers or ctx ends, and from
// then on keeps trying those that are not members, whether it succeeded or not.
// Without addresses there is nothing to do. Reaching ourselves is no answer. It
// fails at once when the cluster's ring placement is another (ErrPlacement);
// other errors are a *JoinError with the cause of each address.
func (g *Gossip) Join(ctx context.Context) error {
	if g.ctx.Err() != nil || g.gone() {
		return ErrClosed
	}
	g.joining.Store(true)
	if len(g.seeds) == 0 {
		return nil
	}
	tried := map[string]error{}
	for {
		g.round(ctx, g.seedTargets(ctx, tried), tried)
		if !g.roster.alone() {
			return nil
		}
		if err := g.delegate.refusal(); err != nil {
			return fmt.Errorf("gossip: join: %w", err)
		}
		select {
		case <-time.After(retryJoin):
		case <-ctx.Done():
			return &JoinError{tried, ctx.Err()}
		case <-g.ctx.Done():
			return &JoinError{tried, ErrClosed}
		}
	}
}

// rejoin reaches for seeds and lost members that are not in the view. It alone
// heals a partition that memberlist has given up on.
func (g *Gossip) rejoin() {
	for {
		select {
		case <-time.After(rejoinEvery + rand.N(rejoinEvery)):
		case <-g.ctx.Done():
			return
		}
		if g.gone() {
			return
		}
		tried := map[string]error{}
		targets := g.roster.missing(time.Now())
		if g.joining.Load() {
			targets = append(targets, g.seedTargets(g.ctx, tried)...)
		}
		g.round(g.ctx, targets, tried)
		for addr, err := range tried {
			g.cfg.Logger.Debug("could not rejoin", "address", addr, "error", err)
		}
	}
}

// gone says whether we left. It does not wait for ops, which are held as long
// as memberlist takes to spread some news.
func (g *Gossip) gone() bool { return g.left.Load() }

// seedTargets resolves the seeds to addresses where no member is known. What
// cannot be one is noted in tried.
func (g *Gossip) seedTargets(ctx context.Context, tried map[string]error) []netip.AddrPort {
	var targets []netip.AddrPort
	for _, s := range g.seeds {
		ips, err := resolve(ctx, g.cfg.Lookup, s.host)
		if err != nil {
			tried[s.text] = err
			continue
		}
		if _, err := netip.ParseAddr(s.host); err != nil {
			delete(tried, s.text) // an earlier look-up may have failed
		}
		port := s.port
		if port == 0 {
			port = g.addr.Port()
		}
		for _, ip := range ips {
			targets = append(targets, netip.AddrPortFrom(ip, port))
		}
	}
	return targets
}

// round dials a random few of the targets at once and is content with one that
// answers, for it brings the others. It returns early when ctx ends; Close waits
// for what still dials.
func (g *Gossip) round(ctx context.Context, targets []netip.AddrPort, tried map[string]error) {
	targets = g.worthwhile(targets, tried)
	type result struct {
		addr netip.AddrPort
		err  error
	}
	results, pending := make(chan result, len(targets)), 0
	for _, addr := range targets {
		if tried[addr.String()] == nil {
			tried[addr.String()] = errSilent
		}
		if g.spawn(func() { results <- result{addr, g.contact(addr)} }) {
			pending++
		}
	}
	for range pending {
		select {
		case r := <-results:
			if r.err == nil {
				delete(tried, r.addr.String())
				return
			}
			tried[r.addr.String()] = r.err
		case <-ctx.Done():
			return
		}
	}
}

// worthwhile drops ourselves and the members there are, and draws a few.
func (g *Gossip) worthwhile(targets []netip.AddrPort, tried map[string]error) []netip.AddrPort {
	var some []netip.AddrPort
	for _, addr := range targets {
		switch {
		case addr == g.addr:
			tried[addr.String()] = errSelf
		case !g.roster.reached(addr) && !slices.Contains(some, addr):
			some = append(some, addr)
		}
	}
	rand.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	return some[:min(len(some), dialsAtOnce)]
}

// contact exchanges lists with one address. memberlist takes at most
// TCPTimeout for it, and knows no context.
func (g *Gossip) contact(addr netip.AddrPort) error {
	_, err := g.list.Join([]string{addr.String()})
	if err == nil && g.roster.alone() {
		return errSelf // under an address that we do not know as ours
	}
	if err == nil {
		return nil
	}
	if first := errors.Unwrap(err); first != nil {
		err = first // of a list with one entry
	}
	return errors.New(strings.TrimPrefix(err.Error(), fmt.Sprintf("failed to join %s: ", addr)))
}
