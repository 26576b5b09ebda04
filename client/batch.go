package client

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ringlimit/ringlimit/internal/wire"
	"github.com/ringlimit/ringlimit/limit"
)

// Result is the answer to one check of a batch: a verdict, or an error like that of
// Check.
type Result struct {
	Verdict limit.Verdict
	Err     error
}

// CheckBatch asks one node to judge up to 1,000 requests, each by itself. Those of
// one key are charged in their order. The results are in the order of the requests;
// one that is bad input has its error there. An error that CheckBatch returns is
// that of all of them.
func (c *Client) CheckBatch(ctx context.Context, reqs []limit.Request) ([]Result, error) {
	b := newBatch(reqs)
	if err := b.fits(); err != nil {
		return nil, err
	}
	timely, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	answer, err := c.invoke(timely, b.message)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	}
	return b.results, b.read(string(answer))
}

// batch is checks on their way.
type batch struct {
	message wire.Out
	results []Result
	sent    []int // where in results those are that are in the message
}

func newBatch(reqs []limit.Request) *batch {
	b := &batch{results: make([]Result, len(reqs)), sent: make([]int, 0, len(reqs))}
	for i := range reqs {
		if err := validate(&reqs[i]); err != nil {
			b.results[i].Err = err
			continue
		}
		b.message = wire.AppendBatchCheck(b.message, &reqs[i])
		b.sent = append(b.sent, i)
	}
	return b
}

func (b *batch) fits() error {
	problem := ""
	switch {
	case len(b.results) > wire.MaxChecks:
		problem = fmt.Sprintf("has %d entries; at most %d are allowed", len(b.results), wire.MaxChecks)
	case len(b.message) > wire.MaxBatchBytes:
		problem = fmt.Sprintf("is %d bytes long; at most %d are allowed", len(b.message), wire.MaxBatchBytes)
	default:
		return nil
	}
	return &limit.InputError{Field: "checks", Problem: problem + ": send them in parts"}
}

// read takes the node's answer.
func (b *batch) read(message string) error {
	answers, err := wire.ReadResults(message)
	if err == nil && len(answers) != len(b.sent) {
		err = fmt.Errorf("has %d results", len(answers))
	}
	if err != nil {
		return &NodeError{codes.Internal, fmt.Sprintf("what it answers to %d checks %v", len(b.sent), err)}
	}
	for k, i := range b.sent {
		b.results[i] = Result{answers[k].Verdict, errorOf(answers[k].Err)}
	}
	return nil
}

// lookAgain is how often a batch looks for a connection that is about to be.
const lookAgain = time.Millisecond

// connection is one to a node that is up. It waits while some still connect: gRPC
// would wait for one of them, which may be silent. It has to be given back to its line.
func (c *Client) connection(ctx context.Context) (*line, *shared, error) {
	for {
		n := c.pick()
		if n == nil {
			return nil, nil, c.nobody()
		}
		if n.is(up) {
			if cc := n.line.get(); cc != nil {
				return &n.line, cc, nil
			}
		}
		if pause(ctx, lookAgain); ctx.Err() != nil {
			return nil, nil, c.nobody()
		}
	}
}

func (c *Client) invoke(ctx context.Context, ask wire.Out) (answer wire.In, err error) {
	l, cc, err := c.connection(ctx)
	if err != nil {
		return "", err
	}
	defer l.put(cc)
	err = cc.Invoke(ctx, batchMethod, &ask, &answer)
	switch st := status.Convert(err); st.Code() {
	case codes.OK:
		return answer, nil
	case codes.DeadlineExceeded:
		return "", ErrTimeout
	case codes.Unavailable, codes.Canceled: // gRPC does not say whether it was sent
		return "", ErrLost
	default:
		return "", &NodeError{st.Code(), st.Message()}
	}
}
