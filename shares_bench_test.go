package ringlimit

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"runtime/pprof"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/ringlimit/ringlimit/internal/floor"
)

// BenchmarkShares is forwarded checks of counters that one node owns, another has the
// copies of and a third asks for: what of the processor time is whose. A node's
// goroutines bear its name in a profile. The scheduler's and the collector's time
// bears none; it is told apart as overhead-share, and shared out in proportion.
func BenchmarkShares(b *testing.B) {
	set := parseRules(b, meshRules)
	var nodes []*Node
	for _, name := range []string{"owner", "copies", "gateway"} {
		as(name, func() {
			nodes = append(nodes, onLoopback(b, Config{Name: name, Rules: set, Forwarder: name == "gateway"}, nodes...))
		})
	}
	defer leaveAll(b, nodes...)
	waitForCopies(b, nodes...)
	gateway := nodes[2]
	var keys []string
	for _, key := range benchKeys(20_000) {
		if owners(b, gateway, Request{Key: key})[0] == "owner" {
			keys = append(keys, key)
		}
	}
	for _, callers := range []int{1, 64, 1024} {
		for _, tier := range []string{"uncopied", ""} {
			b.Run(fmt.Sprintf("callers=%d/copied=%t", callers, tier == ""), func(b *testing.B) {
				reportShares(b, callers, func(_, i int) error {
					v, err := gateway.Check(context.Background(), Request{Key: keys[i%len(keys)], Tier: tier})
					if err == nil && !v.Allowed {
						return errNotForwarded
					}
					return err
				})
			})
		}
	}
}

func reportShares(b *testing.B, callers int, ask func(caller, i int) error) {
	var profile bytes.Buffer
	if err := pprof.StartCPUProfile(&profile); err != nil {
		b.Skip(err) // with -cpuprofile; go tool pprof -tags shows the same
	}
	var run floor.Run
	as("gateway", func() { run = measure(b, callers, b.N, ask) })
	pprof.StopCPUProfile()
	samples, err := samplesByNode(&profile)
	if err != nil {
		b.Fatal(err)
	}
	all := samples["owner"] + samples["copies"] + samples["gateway"]
	b.ReportMetric(run.CPU(), "cpu-ns/check")
	for _, name := range []string{"owner", "copies", "gateway"} {
		b.ReportMetric(run.CPU()*samples[name]/max(1, all), name+"-cpu-ns/check")
	}
	b.ReportMetric(samples[""]/max(1, all+samples[""]), "overhead-share")
}

// as runs f so that it, and the goroutines that it starts, bear a node's name.
func as(node string, f func()) {
	pprof.Do(context.Background(), pprof.Labels("node", node), func(context.Context) { f() })
}

// samplesByNode sums up the time of a profile's samples by their one label; "" is those
// without. The fields are those of profile.proto of github.com/google/pprof.
func samplesByNode(profile io.Reader) (map[string]float64, error) {
	unzipped, err := gzip.NewReader(profile)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(unzipped)
	if err != nil {
		return nil, err
	}
	const sample, stringTable = 2, 6
	var texts []string
	used := map[uint64]float64{} // by the label's value, an index of texts
	err = eachField(b, func(field protowire.Number, _ uint64, value []byte) error {
		switch field {
		case sample:
			label, ns, err := readSample(value)
			used[label] += ns
			return err
		case stringTable:
			texts = append(texts, string(value))
		}
		return nil
	})
	byNode := map[string]float64{}
	for label, ns := range used {
		if label < uint64(len(texts)) {
			byNode[texts[label]] = ns
		}
	}
	return byNode, err
}

func readSample(b []byte) (label uint64, ns float64, err error) {
	const values, labels, text = 2, 3, 2
	err = eachField(b, func(field protowire.Number, v uint64, value []byte) error {
		switch field {
		case values: // not packed: how often, and last the nanoseconds
			ns = float64(v)
		case labels:
			return eachField(value, func(field protowire.Number, v uint64, _ []byte) error {
				if field == text {
					label = v
				}
				return nil
			})
		}
		return nil
	})
	return label, ns, err
}

// eachField calls f with each field of a message: v is a varint's value.
func eachField(b []byte, f func(field protowire.Number, v uint64, value []byte) error) error {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		var v uint64
		var value []byte
		switch kind {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			value, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(field, kind, b)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		if err := f(field, v, value); err != nil {
			return err
		}
	}
	return nil
}

// Samples are found under the name that their goroutine bears.
func TestSamplesByNode(t *testing.T) {
	var profile bytes.Buffer
	if err := pprof.StartCPUProfile(&profile); err != nil {
		t.Skip(err)
	}
	as("busy", func() {
		done := make(chan struct{})
		go func() { defer close(done); spin() }()
		<-done
	})
	pprof.StopCPUProfile()
	samples, err := samplesByNode(&profile)
	if err != nil || samples["busy"] == 0 || samples["busy"] < samples[""] {
		t.Errorf("%v, %v", samples, err)
	}
}

// spin uses a fifth of a second of a processor, however long that takes.
func spin() {
	used := func() time.Duration {
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // never fails
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	for began := used(); used()-began < 200*time.Millisecond; {
	}
}
