package client

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/ringlimit/ringlimit/internal/wire"
	"github.com/ringlimit/ringlimit/limit"
)

// Config is what a Client needs to know. Only Addresses is required.
type Config struct {
	// Addresses are those of the nodes' gRPC doors, as gRPC takes them: host:port,
	// dns:///name:port, unix:/path. Some nodes of a cluster are enough: any of them
	// answers for all. A name that stands for several nodes is taken for one.
	Addresses []string
	// Timeout bounds a call whose context does not end sooner. Default 1 s: nodes
	// answer within their own deadline, 50 ms by default.
	Timeout time.Duration
	// DialOptions are added to the client's own: credentials (default: none, as in
	// plain text), stats handlers, a dialer.
	DialOptions []grpc.DialOption
	// RetryReserve is how many retries of Wait may be under way at once, or in vain,
	// beyond the 10 a second and one for five calls that always may: about as many
	// as callers wait together. A retry that is admitted does not count. Beyond it
	// Wait returns the denial. Default 256; negative: Wait does not ask again.
	RetryReserve int
	// Logger is told when a node cannot be reached, once for the same reason.
	// Default: nowhere.
	Logger *slog.Logger
}

const defaultTimeout = time.Second

func (c Config) withDefaults() (Config, error) {
	if len(c.Addresses) == 0 {
		return c, errors.New("client: Addresses: is empty; it must have the address of a node, such as 127.0.0.1:7701")
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.Timeout < 0 {
		return c, errors.New("client: Timeout: is negative; it must be a duration such as 1s")
	}
	if c.RetryReserve == 0 {
		c.RetryReserve = defaultReserve
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// Client asks the nodes of a cluster. It is safe for concurrent use, and the more
// callers share one, the cheaper each call is. Close it.
type Client struct {
	cfg   Config
	began time.Time // of its clock
	nodes []*node
	ctx   context.Context // ends with Close
	stop  context.CancelFunc
	wg    sync.WaitGroup

	retries *budget // of Wait

	latest atomic.Pointer[node] // that was picked
	picks  atomic.Uint64
}

// New makes a client and starts to connect to all nodes. It does not wait: calls do,
// within their time, while no node could be reached yet.
func New(cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, began: time.Now(), retries: newBudget(cfg.RetryReserve)}
	c.ctx, c.stop = context.WithCancel(context.Background())
	for _, address := range cfg.Addresses {
		c.nodes = append(c.nodes, newNode(address, &c.cfg, c.now, c.release))
	}
	for _, n := range c.nodes {
		c.wg.Go(func() { n.run(c.ctx) })
		c.wg.Go(func() { n.expire(c.ctx) })
	}
	return c, nil
}

// Close fails the calls under way and waits until every goroutine has ended.
func (c *Client) Close() {
	c.stop()
	c.wg.Wait()
}

// now is the client's clock, in nanoseconds.
func (c *Client) now() int64 { return int64(time.Since(c.began)) }

// Check asks a node to judge req, and to charge it unless req.Peek is set. It is
// sent once. See the package's errors; a denial is none.
func (c *Client) Check(ctx context.Context, req limit.Request) (limit.Verdict, error) {
	return c.call(ctx, &req, false)
}

// Refund gives req.Cost back, of what an earlier Check took. It is sent once. One that
// may have arrived without an answer is a *limit.RefundError: do not send it again, for
// what has it would get it twice. Any other error means that it was not given back.
func (c *Client) Refund(ctx context.Context, req limit.Request) (limit.Verdict, error) {
	return c.call(ctx, &req, true)
}

func (c *Client) call(ctx context.Context, req *limit.Request, refund bool) (limit.Verdict, error) {
	if err := validate(req); err != nil {
		return limit.Verdict{}, err
	}
	if err := ctx.Err(); err != nil {
		return limit.Verdict{}, err
	}
	deadline := c.deadline(ctx)
	// A node that goes gives back what it has not sent; others may do so too.
	for range len(c.nodes) + 1 {
		n := c.pick()
		if n == nil {
			break
		}
		a := n.ask(ctx, req, refund, deadline)
		switch {
		case a.err == errNotSent:
			continue
		case refund:
			a.err = refundError(a.err)
		}
		return a.verdict, a.err
	}
	return limit.Verdict{}, c.nobody()
}

// release sends those who wait for other nodes to the one that is up.
func (c *Client) release() {
	for _, n := range c.nodes {
		n.release()
	}
}

// nobody is why there is no node to ask.
func (c *Client) nobody() error {
	if c.ctx.Err() != nil {
		return ErrClosed
	}
	return ErrUnavailable
}

// validate refuses here what a node would refuse, so that it costs nobody a way.
func validate(req *limit.Request) error {
	if err := req.Validate(); err != nil {
		return err
	}
	if wire.MaxCallSize(req) > wire.MaxCallBytes {
		return &limit.InputError{Field: "attributes", Problem: "and tier are over 64 KiB together; make them shorter"}
	}
	return nil
}

// deadline is when a call is given up, by the client's clock.
func (c *Client) deadline(ctx context.Context) int64 {
	deadline := c.now() + int64(c.cfg.Timeout)
	if d, ok := ctx.Deadline(); ok {
		deadline = min(deadline, int64(d.Sub(c.began)))
	}
	return deadline
}

// Callers keep together: what they ask together shares its messages, on the way to
// the node and from there to the owners. Spread evenly over three nodes, the same
// calls would take three times the messages.
const (
	crowd = 256  // calls that a node may owe before others are asked, too
	turn  = 1024 // calls after which another node has its turn
)

// pick is the node that was picked last, while it has a crowd that is neither gone
// nor too large, and for one turn. Then another one is chosen.
func (c *Client) pick() *node {
	if n := c.latest.Load(); n != nil && c.picks.Add(1)%turn != 0 && n.gathers() {
		return n
	}
	n := c.choose()
	c.latest.Store(n)
	return n
}

func (n *node) gathers() bool {
	owed := n.load.Load()
	return 0 < owed && owed < crowd && n.is(up)
}

// choose takes the node of two random ones that owes fewer answers: nodes that are
// slow get less, and no node is chosen by all clients at once. If neither is
// connected it is any that is, or else that is being connected; nil: none.
func (c *Client) choose() *node {
	n := len(c.nodes)
	i := rand.IntN(n)
	one, other := c.nodes[i], c.nodes[i]
	if n > 1 {
		other = c.nodes[(i+1+rand.IntN(n-1))%n]
	}
	switch oneUp, otherUp := one.is(up), other.is(up); {
	case oneUp && (!otherUp || one.load.Load() <= other.load.Load()):
		return one
	case otherUp:
		return other
	}
	for _, want := range [...]link{up, connecting} {
		for k := range n {
			if candidate := c.nodes[(i+k)%n]; candidate.is(want) {
				return candidate
			}
		}
	}
	return nil
}
