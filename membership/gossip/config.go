package gossip

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"

	"github.com/hashicorp/memberlist"

	"github.com/ringlimit/ringlimit/membership"
)

// Config is what Start needs.
type Config struct {
	// Self is what this node tells of itself. ID, Boot, Owner, Peer, HTTP and
	// Ring are filled in; a State of 0 becomes Joining; Seq and Rules may stay 0.
	// Boot must be larger than that of any earlier run under this ID (the start
	// time in nanoseconds is). Start fills Gossip in.
	Self membership.Member
	// Bind is the host:port that is listened on, TCP and UDP. Port 0 takes a
	// free one, the same for both. It may be empty when Transport is set.
	Bind string
	// Advertise is the host:port that others reach this node by; port 0 means
	// the one listened on. It may be empty when Bind is one address and not
	// all ("0.0.0.0").
	Advertise string
	// Join lists members to join by: host:port, or a host or DNS name alone,
	// which gets our own port. A name may stand for many addresses, also ours.
	Join []string
	// Key encrypts all gossip: 32 bytes, the same on all nodes. Nil leaves it
	// in plain text, open to anyone who can send a packet.
	Key []byte
	// Cluster is a label of at most 255 bytes; those with another never mix.
	Cluster string
	// Transport replaces real sockets; nil: real sockets.
	Transport memberlist.Transport
	// Lookup resolves DNS names; nil: the system's resolver.
	Lookup func(ctx context.Context, host string) ([]string, error)
	// Logger gets what goes wrong; nil: nobody does.
	Logger *slog.Logger
}

// check fills defaults in and refuses what memberlist would panic on, or
// silently take for something else.
func (c *Config) check() error {
	if c.Lookup == nil {
		c.Lookup = net.DefaultResolver.LookupHost
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Self.State == 0 {
		c.Self.State = membership.Joining
	}
	if c.Self.Boot == 0 {
		return fmt.Errorf("gossip: self: boot: 0, want the start time in nanoseconds")
	}
	if _, err := encodeMeta(c.Self); err != nil {
		return fmt.Errorf("gossip: self: %w", err)
	}
	if len(c.Key) != 0 && len(c.Key) != 32 {
		return fmt.Errorf("gossip: key: %d bytes, want 32 or none", len(c.Key))
	}
	if len(c.Cluster) > memberlist.LabelMaxSize {
		return fmt.Errorf("gossip: cluster: %d bytes, want at most %d", len(c.Cluster), memberlist.LabelMaxSize)
	}
	return nil
}

// settings turns c into memberlist's.
func (c *Config) settings() (*memberlist.Config, error) {
	mc := memberlist.DefaultLANConfig()
	tune(mc)
	mc.Name = nodeName(c.Self)
	mc.Label = c.Cluster
	mc.SecretKey = c.Key
	mc.Transport = c.Transport
	mc.Logger = newLogger(c.Logger)
	if c.Transport != nil && c.Bind == "" && c.Advertise == "" {
		return mc, nil
	}
	bind, err := c.address("bind", c.Bind)
	if err != nil {
		return nil, err
	}
	mc.BindAddr, mc.BindPort = bind.Addr().String(), int(bind.Port())
	if c.Advertise == "" {
		if bind.Addr().IsUnspecified() {
			return nil, fmt.Errorf("gossip: advertise: %s listens on every address: say by which one (host:port) the others reach this node", c.Bind)
		}
		return mc, nil
	}
	return mc, c.advertise(mc)
}

func (c *Config) advertise(mc *memberlist.Config) error {
	adv, err := c.address("advertise", c.Advertise)
	if err != nil {
		return err
	}
	if adv.Addr().IsUnspecified() {
		return fmt.Errorf("gossip: advertise: %s is no address that others can reach", c.Advertise)
	}
	mc.AdvertiseAddr, mc.AdvertisePort = adv.Addr().String(), int(adv.Port())
	if adv.Port() == 0 {
		mc.AdvertisePort = mc.BindPort // memberlist fills it in when that is 0 too
	}
	return nil
}

// address reads host:port. memberlist takes IP addresses only, and listens on
// all of them when it cannot read the one it is given.
func (c *Config) address(field, s string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("gossip: %s: %q: want host:port", field, s)
	}
	p, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("gossip: %s: %q: the port is not from 0 to 65535", field, s)
	}
	if host == "" {
		host = "0.0.0.0"
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*lookupTimeout)
	defer cancel()
	ips, err := resolve(ctx, c.Lookup, host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("gossip: %s: %w", field, err)
	}
	return netip.AddrPortFrom(ips[0], uint16(p)), nil
}

// resolve finds the addresses of an IP or a name, IPv4 first.
func resolve(ctx context.Context, lookup func(context.Context, string) ([]string, error), host string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip.Unmap()}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found, err := lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	var v4, v6 []netip.Addr
	for _, s := range found {
		ip, err := netip.ParseAddr(s)
		switch {
		case err != nil:
		case ip.Unmap().Is4():
			v4 = append(v4, ip.Unmap())
		default:
			v6 = append(v6, ip)
		}
	}
	if len(v4)+len(v6) == 0 {
		return nil, fmt.Errorf("%s has no address", host)
	}
	return append(v4, v6...), nil
}

// nodeName is unique per boot. Under one name per node, memberlist would lock a
// node that returns at another address out for a minute, and not tell anyone of
// one that restarts at the same.
func nodeName(m membership.Member) string { return string(m.ID) + "/" + m.Boot.String() }
