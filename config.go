package ringlimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/front/httpfront"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/membership/gossip"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/rules"
)

// Config is what a [Node] needs to know. The zero value of a field is its
// default; only Name is required.
type Config struct {
	// Name is this node's id: unique in the cluster and the same after a
	// restart, since the ring is computed from names. 1 to 64 bytes of
	// printable ASCII without spaces or slashes.
	Name string
	// Rules is what a cluster without rules begins to enforce. One that has rules,
	// because other nodes or the data directory bring them, keeps those; see
	// Node.ApplyRules. Without any rules every request is allowed.
	Rules *rules.Set
	// Identity tells Middleware who is asking. Default: header X-API-Key, else
	// the client's address.
	Identity *httpfront.Identity

	// Peer is where the node listens for other nodes' checks: host:port, TCP.
	// Default 127.0.0.1:7702. Port 0 takes a free one.
	Peer string
	// Gossip is where the node listens for gossip: host:port, TCP and UDP.
	// Default 127.0.0.1:7703. Port 0 takes a free one.
	Gossip string
	// Advertise is the host that others reach this node by. Default: the host
	// of Peer and of Gossip, which must then not be a wildcard.
	Advertise string
	// HTTP is this node's HTTP address as members are told; the node itself
	// opens no HTTP door.
	HTTP string

	// Join lists gossip addresses (host:port, or DNS names with a port) of
	// members. Empty: the node begins a cluster of its own.
	Join []string
	// JoinTimeout is how long Start waits for an answer from Join before it
	// serves alone, and goes on trying. Default 10 s.
	JoinTimeout time.Duration
	// Cluster keeps apart clusters that share a network. Default "ringlimit".
	Cluster string
	// Secret encrypts the gossip, guards the peer port and seeds the hash of
	// the counters; the same on every node, at least 16 bytes. Without one the
	// node trusts whoever reaches its ports: for loopback and tests only.
	Secret []byte
	// Forwarder makes a member that never owns counters, for gateways that come
	// and go: each of them that owned some would move counters twice.
	Forwarder bool

	// DataDir is a directory of this node alone that keeps the rules over a restart
	// of all nodes. It is made if it is not there. Default: none; the rules are lost
	// when all nodes are.
	DataDir string
	// Memory bounds the counters, in bytes. Default 1 GiB. When it is used up
	// new counters follow their rule's on_failure; existing ones are not
	// affected, so a sliding_window_log that exists may still grow to its limit,
	// 16 bytes an admission.
	Memory int64
	// Deadline bounds a check that cannot be decided here at once: that leaves
	// this node, or waits for its counter or for a copy. The caller's own context
	// bounds it too. Default 50 ms. A longer one makes callers wait longer for
	// a dead owner, a shorter one answers by on_failure more often.
	Deadline time.Duration
	// FallbackCapacity is how many checks a second the whole cluster may admit
	// by on_failure: local, each node its share. Default: see forward.Config.
	FallbackCapacity int64

	// Registerer takes the node's metrics until Leave. Default: none.
	Registerer prometheus.Registerer
	// Logger takes structured logs. Default: none.
	Logger *slog.Logger

	// What tests replace to run whole clusters in memory and virtual time.
	listen     func(network, address string) (net.Listener, error)
	dial       func(ctx context.Context, address string) (net.Conn, error)
	tuneGossip func(*gossip.Config)
	boot       membership.BootID
}

// withDefaults fills in what is zero and says what is wrong, all at once.
func (c Config) withDefaults() (Config, error) {
	setDefault(&c.Peer, "127.0.0.1:7702")
	setDefault(&c.Gossip, "127.0.0.1:7703")
	setDefault(&c.Cluster, "ringlimit")
	setDefault(&c.JoinTimeout, 10*time.Second)
	setDefault(&c.Memory, owner.DefaultMemory)
	setDefault(&c.Deadline, forward.DefaultDeadline)
	setDefault(&c.Rules, new(rules.Set))
	setDefault(&c.Logger, slog.New(slog.DiscardHandler))
	setDefault(&c.boot, newBootID())
	if c.listen == nil {
		c.listen = net.Listen
	}
	return c, errors.Join(
		validName(c.Name),
		atLeast("memory", c.Memory, 1),
		atLeast("deadline", int64(c.Deadline), 1),
		atLeast("join timeout", int64(c.JoinTimeout), 1),
		atLeast("fallback-capacity", c.FallbackCapacity, 0),
		c.validAddress("peer", c.Peer),
		c.validAddress("gossip", c.Gossip),
	)
}

// ConfigError says which field of a Config is wrong and what would be right, or
// why what it asks for could not be had.
type ConfigError struct {
	Field string // as the ringlimit command names it: "name", "peer", …
	Err   error
}

func (e *ConfigError) Error() string { return e.Field + ": " + e.Err.Error() }

func (e *ConfigError) Unwrap() error { return e.Err }

func wrong(field, format string, args ...any) error {
	return &ConfigError{field, fmt.Errorf(format, args...)}
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

const maxName = 64

func validName(name string) error {
	if name == "" || len(name) > maxName {
		return wrong("name", "must have 1 to %d bytes, has %d", maxName, len(name))
	}
	for _, c := range []byte(name) {
		if c <= ' ' || c > '~' || c == '/' {
			return wrong("name", "%q holds %q; it may hold printable ASCII without spaces and slashes", name, c)
		}
	}
	return nil
}

func atLeast(field string, n, least int64) error {
	if n < least {
		return wrong(field, "is %d; must be at least %d", n, least)
	}
	return nil
}

// validAddress refuses a listen address that others could not be told.
func (c Config) validAddress(field, address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return wrong(field, "%q is not host:port: %w", address, err)
	}
	if ip := net.ParseIP(host); c.Advertise == "" && (host == "" || ip != nil && ip.IsUnspecified()) {
		return wrong(field, "%q listens on every address; set advertise to the one that others reach", address)
	}
	return nil
}

// advertised is how others reach what this node has bound to.
func (c Config) advertised(bound net.Addr) string {
	_, port, err := net.SplitHostPort(bound.String())
	if err != nil || c.Advertise == "" {
		return bound.String()
	}
	return net.JoinHostPort(c.Advertise, port)
}

// self is the node's own record, before it serves.
func (c Config) self(boot membership.BootID, peer string, placement uint64) membership.Member {
	return membership.Member{
		ID:    membership.NodeID(c.Name),
		Boot:  boot,
		State: membership.Joining,
		Seq:   1,
		Owner: !c.Forwarder,
		Peer:  peer,
		HTTP:  c.HTTP,
		Ring:  placement,
	}
}
