package main

import (
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/pflag"

	"github.com/ringlimit/ringlimit/front/httpfront"
)

// settings is what one node is told. Each field but identity is a flag
// (--data-dir), an environment variable (RINGLIMIT_DATA_DIR) and a line of the
// settings file (data_dir); see bind for what it means.
type settings struct {
	name, dataDir                   string
	http, grpc, peer, gossip, admin string
	advertise                       string
	join                            []string
	rules, secretFile               string
	adminTokenFile                  string
	memory                          size
	deadline, drainTimeout          time.Duration
	owner                           bool
	fallbackCapacity                int64

	identity httpfront.IdentityConfig // settings file only
}

func defaultSettings() *settings {
	return &settings{
		http:     "127.0.0.1:7700",
		grpc:     "127.0.0.1:7701",
		peer:     "127.0.0.1:7702",
		gossip:   "127.0.0.1:7703",
		admin:    "127.0.0.1:7704",
		memory:   1 << 30,
		deadline: 50 * time.Millisecond,
		owner:    true,

		drainTimeout: 15 * time.Second,
	}
}

// bind makes a flag of each setting. The same flags take what the environment
// and the settings file say, so that every value is read in one way.
func (s *settings) bind(fs *pflag.FlagSet) {
	fs.StringVar(&s.name, "name", s.name, "this node's id, unique in the cluster and the same after a restart (default: the id kept in --data-dir; without one HOSTNAME-GOSSIPPORT)")
	fs.StringVar(&s.dataDir, "data-dir", s.dataDir, "folder of this node for what has to outlive a restart: the rules, and the node's id if --name is absent")
	fs.StringVar(&s.http, "http", s.http, "listen address of the HTTP API")
	fs.StringVar(&s.grpc, "grpc", s.grpc, "listen address of the gRPC API and grpc.health.v1")
	fs.StringVar(&s.peer, "peer", s.peer, "listen address for other nodes' checks")
	fs.StringVar(&s.gossip, "gossip", s.gossip, "listen address of the gossip, TCP and UDP")
	fs.StringVar(&s.admin, "admin", s.admin, "listen address of the admin API and /metrics; off loopback it needs --admin-token-file")
	fs.StringVar(&s.advertise, "advertise", s.advertise, "host that others reach this node by (default: the host of --peer and --gossip)")
	fs.StringSliceVar(&s.join, "join", s.join, "gossip address of a member, host:port; repeat it for more")
	fs.StringVar(&s.rules, "rules", s.rules, "rule file, for a cluster that has no rules yet; without rules every request is allowed")
	fs.StringVar(&s.secretFile, "secret-file", s.secretFile, "file with the cluster's secret, at least 16 bytes; without one all addresses must be loopback")
	fs.StringVar(&s.adminTokenFile, "admin-token-file", s.adminTokenFile, "file with the token that changes of rules need, at least 16 characters; without one --admin must be loopback")
	fs.Var(&s.memory, "memory", "bound on the memory of counters, such as 512MiB")
	fs.DurationVar(&s.deadline, "deadline", s.deadline, "how long a check may take that has to leave this node, or to wait here")
	fs.DurationVar(&s.drainTimeout, "drain-timeout", s.drainTimeout, "how long a stop may take to hand all counters over to other nodes")
	fs.BoolVar(&s.owner, "owner", s.owner, "false: a member that forwards checks and never owns counters")
	fs.Int64Var(&s.fallbackCapacity, "fallback-capacity", s.fallbackCapacity, "checks a second that the whole cluster may admit by on_failure: local (0: the default bound)")
}

// validate finds what is wrong with the settings as a whole. from names where
// each came from, for the error's sake.
func (s *settings) validate(from origins) error {
	var problems []error
	wrong := func(setting, problem string, args ...any) {
		problems = append(problems, from.wrong(setting, problem, args...))
	}
	for _, a := range s.addresses() {
		if err := a.check(); err != nil {
			wrong(a.setting, "%v", err)
		} else if a.setting != "admin" && s.secretFile == "" && !loopback(a.address) {
			wrong(a.setting, "%q can be reached from other machines, which needs a secret (--secret-file); without one listen on 127.0.0.1, [::1] or localhost", a.address)
		}
	}
	if s.secretFile == "" && s.advertise != "" && !loopbackHost(s.advertise) {
		wrong("advertise", "%q can be reached from other machines, which needs a secret (--secret-file)", s.advertise)
	}
	if s.adminTokenFile == "" && !loopback(s.admin) {
		wrong("admin", "%q can be reached from other machines, which could then change the rules; give a token (--admin-token-file), or listen on 127.0.0.1, [::1] or localhost", s.admin)
	}
	for _, member := range s.join {
		if err := (address{"join", member}).check(); err != nil {
			wrong("join", "%v", err)
		}
	}
	if s.memory <= 0 {
		wrong("memory", "must be positive")
	}
	if s.deadline <= 0 {
		wrong("deadline", "must be positive")
	}
	if s.drainTimeout <= 0 {
		wrong("drain-timeout", "must be positive")
	}
	if s.fallbackCapacity < 0 {
		wrong("fallback-capacity", "must not be negative")
	}
	if _, err := httpfront.NewIdentity(s.identity); err != nil {
		problems = append(problems, from.identity(err))
	}
	return errors.Join(problems...)
}

// address is a host:port and the setting that it stands in.
type address struct{ setting, address string }

func (s *settings) addresses() []address {
	return []address{{"http", s.http}, {"grpc", s.grpc}, {"peer", s.peer}, {"gossip", s.gossip}, {"admin", s.admin}}
}

func (a address) check() error {
	_, port, err := net.SplitHostPort(a.address)
	if err != nil {
		return fmt.Errorf("%q is not an address; write it like 127.0.0.1:7700", a.address)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return fmt.Errorf("%q has no port from 0 to 65535", a.address)
	}
	return nil
}

func loopback(hostPort string) bool {
	host, _, err := net.SplitHostPort(hostPort)
	return err != nil || loopbackHost(host) // what is no address has been complained of
}

// loopbackHost does not resolve names: what they mean can change.
func loopbackHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// size is a number of bytes, written as 512MiB or 1GB or 1048576.
type size int64

func (s *size) String() string { return strings.ReplaceAll(humanize.IBytes(uint64(*s)), " ", "") }
func (s *size) Type() string   { return "size" }

func (s *size) Set(text string) error {
	n, err := humanize.ParseBytes(text)
	if err != nil || n > math.MaxInt64 {
		return errors.New("is not a size")
	}
	*s = size(n)
	return nil
}
