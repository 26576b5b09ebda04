package layers

// module is the path of this repository's module.
const module = "github.com/ringlimit/ringlimit"

// root is what the table calls the package at the top of the repository.
const root = "."

// A layer says what one package, or all packages below one folder, may import
// of ours, and why no more.
type layer struct {
	imports []string // folders; a trailing /... covers what lies below
	why     string
}

// layers is the order of the packages. A folder that is missing here is an
// error: whoever adds a package decides where it stands.
var layers = map[string]layer{
	"limit": {nil,
		"the nouns and the algorithms: everything else speaks in their terms"},
	"membership": {nil,
		"the cluster's nouns: a view must not know how it was gossiped"},
	"membership/gossip": {[]string{"membership", "membership/gossip/memnet"},
		"spreads members; what a ring or a counter is must not matter to it"},
	"membership/gossip/memnet": {nil,
		"a network in memory: it carries packets and knows no members"},
	"rules": {[]string{"limit"},
		"a rule file is read the same with or without a cluster"},
	"rules/live": {[]string{"rules"},
		"how rules change and converge; who carries them between nodes does not matter to it"},
	"ring": {[]string{"internal/planted", "limit", "membership"},
		"a pure function of members: no sockets, no counters"},
	"owner": {[]string{"internal/planted", "limit"},
		"decides for counters; to it a partition is an int, so that no ring can overrule its phases"},
	"owner/transfer": {[]string{"internal/planted", "limit", "membership", "owner", "ring"},
		"a state machine without goroutines, clock or network, so that a seed replays it"},
	"owner/driver": {[]string{"limit", "membership", "owner", "owner/transfer", "ring"},
		"locks, timers and waiting checks around the core; it sends through what it is given"},
	"api/ringlimit/v1": {nil,
		"generated: what clients in every language speak"},
	"client": {[]string{"internal/wait", "internal/wire", "limit"},
		"programs that ask a cluster get nothing of what one is made of"},
	"internal/wait": {nil,
		"where callers wait; what for does not matter to it"},
	"internal/wire": {[]string{"limit"},
		"what the public messages look like on the wire; it opens no stream"},
	"chaos/sim": {[]string{"limit", "membership", "owner", "owner/transfer", "ring"},
		"the real core in virtual time: whatever needs a socket cannot be simulated"},
	"chaos": {[]string{"chaos/judge", "chaos/play", "chaos/process", "chaos/report", "chaos/scenario"},
		"the top of the harness: arguments in, verdict out"},
	"chaos/play": {[]string{"chaos/attack", "chaos/cgroup", "chaos/cluster", "chaos/history", "chaos/judge", "chaos/keyspace", "chaos/load", "chaos/netns", "chaos/process", "chaos/scenario"},
		"the only place where faults, load and judge meet"},
	"chaos/attack": {nil,
		"what strangers do to a port, whoever listens on it"},
	"chaos/cgroup": {nil,
		"bounds the memory of whatever runs"},
	"chaos/cluster": {[]string{"chaos/attack", "chaos/cgroup", "chaos/history", "chaos/load", "chaos/process"},
		"knows the program by its flags and doors only: the harness must not share its faults"},
	"chaos/report": {[]string{"chaos/history", "chaos/judge"},
		"draws what happened; it judges nothing"},
	"chaos/netns": {[]string{"chaos/cluster", "chaos/process", "chaos/scenario", "chaos/tap"},
		"networks to be cut; it knows no checks"},
	"chaos/tap": {nil,
		"a switch; what its frames are about does not matter to it"},
	"chaos/load": {[]string{"chaos/history", "chaos/keyspace"},
		"asks as a stranger would; see chaos/cluster"},
	"chaos/judge": {[]string{"chaos/history", "chaos/keyspace", "chaos/scenario"},
		"arithmetic on a history; it must not be able to ask a node"},
	"chaos/keyspace": {[]string{"chaos/scenario"},
		"names keys and writes their rules"},
	"chaos/history": {nil,
		"what happened, for whoever wants to know"},
	"chaos/scenario": {nil,
		"the nouns of a run, and how files say them"},
	"chaos/process": {nil,
		"starts and ends programs; what they are does not matter to it"},
	"forward": {[]string{"limit", "membership", "owner", "owner/transfer", "ring"},
		"policy without sockets, so that tests can drive it step by step"},
	"forward/peerrpc": {[]string{"forward", "forward/peerrpc/parcel", "forward/peerrpc/peerpb", "internal/wait", "limit", "membership", "owner", "owner/transfer", "rules", "rules/live"},
		"carries checks, counters and rules between nodes; it is told about the ring, it does not look"},
	"forward/peerrpc/parcel": {[]string{"forward/peerrpc/peerpb", "limit", "membership", "owner", "owner/transfer"},
		"what the messages of the hand-over look like on the wire; it opens no stream"},
	"forward/peerrpc/peerpb": {nil,
		"generated: the frame on the wire"},
	"front": {[]string{"limit"},
		"doors know verdicts, not how a cluster comes to them"},
	"front/httpfront": {[]string{"front", "limit"},
		"doors know verdicts, not how a cluster comes to them"},
	"front/grpcfront": {[]string{"api/ringlimit/v1", "front", "internal/wire", "limit"},
		"doors know verdicts, not how a cluster comes to them"},
	"front/adminfront": {[]string{"front", "limit"},
		"shows what its interfaces give it; it must not reach into a node"},
	root: {[]string{"forward/...", "front", "front/httpfront", "limit", "membership/...", "owner/...", "ring", "rules", "rules/live"},
		"the only assembler; the command and its files stand above it"},
	"cmd/ringlimit": {[]string{root, "examples", "forward/...", "front/...", "limit", "membership/...", "owner/...", "ring", "rules"},
		"the top: files, flags, environment, listeners, signals"},
	"examples": {nil,
		"files to read, not code to build on"},
	"internal/floor": {nil,
		"what benchmarks compare with; it must not share our code"},
	"internal/layers": {nil,
		"the judge stands apart"},
	"internal/planted": {nil,
		"a constant that says which fault a build has; none, in what is shipped"},
}

// dependencies lists who may import what is neither ours nor the standard
// library's. A module that is missing here is an error.
var dependencies = map[string]layer{
	"github.com/hashicorp/memberlist": {[]string{"membership/gossip", "membership/gossip/memnet"},
		"its callbacks run under its lock: one package knows its traps"},
	"github.com/buraksezer/consistent": {[]string{"ring"},
		"it panics on bad parameters: one package checks them"},
	"github.com/cespare/xxhash/v2": {[]string{"ring"},
		"the hash of placements"},
	"github.com/zeebo/xxh3": {[]string{"owner"},
		"the 128-bit hash of counters"},
	"google.golang.org/genproto/googleapis/rpc": {[]string{"front/grpcfront"},
		"what a status says of the fields that are wrong"},
	"google.golang.org/grpc": {[]string{"api/ringlimit/v1", "client", "forward/peerrpc", "forward/peerrpc/peerpb", "front/grpcfront", "internal/wire", "internal/floor"},
		"policy and doors stay testable without a network"},
	"google.golang.org/protobuf": {[]string{"api/ringlimit/v1", "forward/peerrpc", "forward/peerrpc/parcel", "forward/peerrpc/peerpb", "internal/floor"},
		"the frames between nodes, and what clients send"},
	"golang.org/x/sys": {[]string{"internal/planted", "owner/driver", "forward/peerrpc", "chaos/netns", "chaos/tap"},
		"whether the machine has slept; when a connection is given up; which network a thread is in"},
	"github.com/goccy/go-yaml": {[]string{"rules", "cmd/ringlimit", "chaos/scenario"},
		"files are read at three places: the rules, the settings, the scenarios"},
	"github.com/go-json-experiment/json": {[]string{"rules", "front/..."},
		"strict JSON bodies"},
	"github.com/prometheus/client_golang": {[]string{root, "cmd/ringlimit"},
		"the packages below report through interfaces"},
	"github.com/spf13/cobra":        {[]string{"cmd/ringlimit", "chaos"}, "flags belong to the commands"},
	"github.com/spf13/pflag":        {[]string{"cmd/ringlimit"}, "flags belong to the command"},
	"github.com/dustin/go-humanize": {[]string{"cmd/ringlimit", "chaos/scenario"}, "sizes for people belong to commands and files"},
	"github.com/KimMachineGun/automemlimit": {[]string{"cmd/ringlimit"},
		"one process, one limit: the command's to set, not a library's"},
	"github.com/HdrHistogram/hdrhistogram-go": {[]string{"chaos/judge", "chaos/report"},
		"percentiles of latencies"},
	"github.com/schollz/progressbar/v3": {[]string{"chaos"}, "shows a run's progress on a terminal"},
	"golang.org/x/sync":                 {[]string{"cmd/ringlimit"}, "errgroup ties the doors of a command together"},
}

// testImports lists what the tests of a folder may import besides what its code
// may.
var testImports = map[string]layer{
	root: {[]string{"api/ringlimit/v1", "client", "front/grpcfront", "internal/floor"},
		"benchmarks compare a node with the least that a check costs, and its doors with each other"},
	"forward/peerrpc": {[]string{"ring"},
		"its tests put a router on real streams, and a router needs a ring"},
	"cmd/ringlimit": {[]string{"client"},
		"its tests ask the gRPC door as a program would"},
	"internal/wait": {nil,
		"where callers wait; what for does not matter to it"},
	"internal/wire": {[]string{"api/ringlimit/v1"},
		"what it writes the generated code must read"},
	"client": {[]string{"api/ringlimit/v1", "front/...", "internal/floor"},
		"its tests ask real doors, and hold it to what a door asks of a checker"},
	"chaos/load": {[]string{"chaos/scenario"},
		"a keyspace is made of a scenario's classes"},
	"chaos/judge": {[]string{"limit"},
		"what it lets an algorithm admit is held against the algorithm"},
	"chaos/keyspace": {[]string{"limit", "rules"},
		"the rules that it writes are read as the program reads them"},
}

// testOnly lists our packages that only tests may import.
var testOnly = []string{"membership/gossip/memnet"}

// testDependencies may be imported by every test, as may dependencies above, and
// by nothing else.
var testDependencies = []string{
	"github.com/anishathalye/porcupine",
	"github.com/dunglas/httpsfv",
	"github.com/hashicorp/go-msgpack/v2",
	"github.com/rogpeppe/go-internal",
	"go.uber.org/goleak",
	"golang.org/x/time",
	"pgregory.net/rapid",
}

// standardOnly lists folders that import nothing but the standard library, even
// if a line above would let them.
var standardOnly = map[string]string{
	"limit":      "whoever embeds an algorithm gets no dependency with it",
	"membership": "the cluster's nouns; see limit",
	"examples":   "files to read",
}

// environment lists who may read environment variables. A library that does
// changes its behaviour behind its caller's back.
var environment = []string{"cmd/..."}
