package peerrpc

import (
	"context"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/rules/live"
)

// RulesGiver is what a server gives rules from: a *live.Store. digest is of all
// that the giver has, and so what the asker then includes.
type RulesGiver interface {
	Since(theirs uint64) (entries []live.Entry, digest uint64, ok bool)
	Newer(than []live.Stamp) (entries []live.Entry, digest uint64)
}

// RulesAsker is for whom a pool asks: a *live.Store.
type RulesAsker interface {
	Summary() live.Summary
	Digest() []live.Stamp
}

// Rules implements the peer protocol; see package live for what it is about.
func (s *Server) Rules(stream grpc.BidiStreamingServer[peerpb.RulesAsked, peerpb.RulesGiven]) error {
	if _, err := s.admit(stream); err != nil {
		return err
	}
	if s.cfg.Rules == nil {
		return status.Error(codes.Unimplemented, "this node gives no rules")
	}
	err := s.bounded(stream)
	if isBadLetter(err) {
		s.refusals.tell(stream.Context(), err)
	}
	return err
}

// Bounds on one exchange of rules.
const (
	rulesTime  = time.Minute     // of a server; the asker gives up before
	rulesPause = 3 * time.Second // of the asker, in which nothing comes or goes; to connect, too
)

// bounded ends an exchange that takes too long: to return is the one way to end a
// stream whose peer says nothing. Stop waits for what that leaves.
func (s *Server) bounded(stream grpc.BidiStreamingServer[peerpb.RulesAsked, peerpb.RulesGiven]) error {
	given := make(chan error, 1)
	s.giving.Go(func() { given <- s.giveRules(stream) })
	late := time.NewTimer(rulesTime)
	defer late.Stop()
	select {
	case err := <-given:
		return err
	case <-late.C:
		return status.Errorf(codes.DeadlineExceeded, "rules were not asked for, or not taken, within %v", rulesTime)
	}
}

func (s *Server) giveRules(stream grpc.BidiStreamingServer[peerpb.RulesAsked, peerpb.RulesGiven]) error {
	asked, err := stream.Recv()
	if err != nil {
		return err
	}
	entries, digest, ok := s.cfg.Rules.Since(asked.Digest)
	if !ok {
		if err := stream.Send(&peerpb.RulesGiven{Unknown: true}); err != nil {
			return err
		}
		stamps, err := receiveStamps(stream)
		if err != nil {
			return err
		}
		entries, digest = s.cfg.Rules.Newer(stamps)
	}
	return sendEntries(entries, digest, stream.Send)
}

func receiveStamps(stream grpc.BidiStreamingServer[peerpb.RulesAsked, peerpb.RulesGiven]) ([]live.Stamp, error) {
	var all stamps
	for {
		m, err := stream.Recv()
		switch {
		case err == io.EOF:
			return all.list, nil
		case err != nil:
			return nil, err
		}
		if err := all.add(m); err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
	}
}

// Rules asks a member for the rules that have lacks. Once they are merged, have
// includes what the member has, of this digest. With an error come those entries
// that came before it, which can be merged, too. It gives up when ctx ends, and
// after three seconds in which there is no connection, or nothing comes or goes.
func (p *Pool) Rules(ctx context.Context, m membership.Member, have RulesAsker) (entries []live.Entry, digest uint64, err error) {
	p.mu.Lock()
	if c := p.conns[m.ID]; p.closed || c != nil && m.Boot < c.peer.Boot {
		p.mu.Unlock() // that run is over
		return nil, 0, forward.ErrAbsent
	}
	c := p.to(m)
	p.mu.Unlock()
	ctx, cancel := context.WithCancelCause(hello(ctx, c.cfg, m.ID))
	defer cancel(nil) // a stream that is left early
	pause := time.AfterFunc(rulesPause, func() { cancel(errStalled) })
	defer pause.Stop()
	cc, err := c.line.get(ctx)
	if err != nil {
		return nil, 0, err
	}
	stream, err := peerpb.NewPeerClient(cc).Rules(ctx, grpc.MaxCallRecvMsgSize(maxRulesGiven))
	if err != nil {
		return nil, 0, err
	}
	entries, digest, err = askRules(lively{stream, pause}, have)
	if err != nil && context.Cause(ctx) == errStalled {
		err = errStalled
	}
	return entries, digest, err
}

var errStalled = fmt.Errorf("the member said nothing for %v", rulesPause)

// lively is a stream that notes whenever something comes or goes.
type lively struct {
	grpc.BidiStreamingClient[peerpb.RulesAsked, peerpb.RulesGiven]
	pause *time.Timer
}

func (l lively) Send(m *peerpb.RulesAsked) error {
	l.pause.Reset(rulesPause)
	return l.BidiStreamingClient.Send(m)
}

func (l lively) Recv() (*peerpb.RulesGiven, error) {
	m, err := l.BidiStreamingClient.Recv()
	l.pause.Reset(rulesPause)
	return m, err
}

// askRules sees to it that errors are the other's: that of Recv says why Send
// failed.
func askRules(stream grpc.BidiStreamingClient[peerpb.RulesAsked, peerpb.RulesGiven], have RulesAsker) ([]live.Entry, uint64, error) {
	_ = stream.Send(&peerpb.RulesAsked{Digest: have.Summary().Digest})
	first, err := stream.Recv()
	if err == nil && first.Unknown {
		_ = sendStamps(have.Digest(), stream.Send)
		_ = stream.CloseSend()
		first, err = stream.Recv()
	}
	if err != nil {
		return nil, 0, err
	}
	var all received
	for m := first; ; {
		if err := all.add(m); err != nil {
			return nil, 0, err
		}
		m, err = stream.Recv()
		switch {
		case err == io.EOF:
			return all.entries, first.Digest, nil
		case err != nil:
			return all.entries, 0, err
		}
	}
}
