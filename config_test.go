package ringlimit

import (
	"context"
	"net"
	"strings"
	"testing"
)

func TestAdvertise(t *testing.T) {
	n, err := Start(context.Background(), Config{Name: "n", Peer: "0.0.0.0:0", Gossip: "0.0.0.0:0", Advertise: "127.0.0.2"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = n.Leave(context.Background()) }()
	for _, at := range []string{n.PeerAddr(), n.GossipAddr(), n.Members()[0].Peer} {
		if host, _, _ := net.SplitHostPort(at); host != "127.0.0.2" {
			t.Errorf("others are told %s", at)
		}
	}
}

func TestStartSaysWhatIsWrong(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	good := func() Config { return Config{Name: "n", Peer: "127.0.0.1:0", Gossip: "127.0.0.1:0"} }
	for _, c := range []struct {
		name  string
		spoil func(*Config)
		want  string
	}{
		{"no name", func(c *Config) { c.Name = "" }, "name: must have 1 to 64 bytes"},
		{"name with a slash", func(c *Config) { c.Name = "a/b" }, "name: "},
		{"short secret", func(c *Config) { c.Secret = []byte("short") }, "secret: is 5 bytes long; at least 16"},
		{"negative memory", func(c *Config) { c.Memory = -1 }, "memory: is -1; must be at least 1"},
		{"negative deadline", func(c *Config) { c.Deadline = -1 }, "deadline: is -1; must be at least 1"},
		{"address without port", func(c *Config) { c.Peer = "127.0.0.1" }, `peer: "127.0.0.1" is not host:port`},
		{"wildcard without advertise", func(c *Config) { c.Peer = ":0" }, "peer: "},
		{"peer port in use", func(c *Config) { c.Peer = taken.Addr().String() }, "peer: listen tcp " + taken.Addr().String()},
		{"gossip port in use", func(c *Config) { c.Gossip = taken.Addr().String() }, "gossip: listen tcp " + taken.Addr().String()},
		{"join without port", func(c *Config) { c.Join = []string{"host:port"} }, "join: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := good()
			c.spoil(&cfg)
			n, err := Start(context.Background(), cfg)
			if err == nil {
				_ = n.Leave(context.Background())
				t.Fatal("started")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q does not say %q", err, c.want)
			}
		})
	}
}
