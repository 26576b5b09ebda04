package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/ringlimit/ringlimit/rules"
)

// pollInterval is how often a rule file is looked at.
const pollInterval = time.Second

// ruleFile is a rule file that may change while the node runs.
//
// It is polled, by content. Notifications of the kernel miss what network file
// systems, bind mounts and the symlinks of a Kubernetes ConfigMap do, and times and
// sizes may be those of before (cp -p, rsync -t). A file of a few KiB costs nothing
// to read.
type ruleFile struct {
	name  string
	log   *slog.Logger
	known [sha256.Size]byte // of what was applied or refused last
	seen  [sha256.Size]byte // of the last look
	lost  string            // why the last look failed; empty: it did not

	// failed is why what was read could not be put in force, though nothing is
	// wrong with it. It is tried again, and not told again.
	failed string
}

// openRules reads a node's rule file for the first time; set is what it holds.
func openRules(name string, log *slog.Logger) (f *ruleFile, set *rules.Set, err error) {
	data, err := readBounded(name, rules.MaxFileBytes)
	if err != nil {
		return nil, nil, err
	}
	set, err = rules.Parse(name, data)
	sum := sha256.Sum256(data)
	return &ruleFile{name: name, log: log, known: sum, seen: sum}, set, err
}

// applier puts rules in force.
type applier interface {
	apply(set *rules.Set, by string) error
}

// followFile applies the rule file when it changes, and at every SIGHUP, until ctx
// ends. Without a file only the signal is answered.
func (i *instance) followFile(ctx context.Context, to applier) {
	look := time.NewTicker(pollInterval)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-i.hangup:
			i.onHangup(to)
		case <-look.C:
			if i.file != nil {
				i.file.look(to)
			}
		}
	}
}

func (i *instance) onHangup(to applier) {
	if i.file == nil {
		i.log.Warn("SIGHUP applies the rule file, and this node has none (--rules)")
		return
	}
	i.file.reload(to)
}

// look applies a changed file once it has stayed the same for two looks: one that
// is still being written may well be valid, with half of a tier's rules.
func (f *ruleFile) look(to applier) {
	data, err := readBounded(f.name, rules.MaxFileBytes)
	if err != nil {
		f.miss(err)
		return
	}
	f.lost = ""
	sum := sha256.Sum256(data)
	settled := sum == f.seen
	f.seen = sum
	if settled && sum != f.known {
		f.use(data, sum, "changed file", to)
	}
}

// reload applies the file at once, changed or not: a signal says that it is whole,
// and that it counts more than what was changed since. Whoever sends it is told why
// the file is not applied, though it was said before.
func (f *ruleFile) reload(to applier) {
	f.lost, f.failed = "", ""
	data, err := readBounded(f.name, rules.MaxFileBytes)
	if err != nil {
		f.miss(err)
		return
	}
	f.use(data, sha256.Sum256(data), "SIGHUP", to)
}

// miss logs that the file cannot be read, once.
func (f *ruleFile) miss(err error) {
	if f.lost != err.Error() {
		f.lost = err.Error()
		f.log.Error("the rule file cannot be read; the rules stay as they are", "error", err)
	}
}

func (f *ruleFile) use(data []byte, sum [sha256.Size]byte, by string, to applier) {
	f.seen = sum
	set, err := rules.Parse(f.name, data)
	if err == nil {
		warnOf(set, f.log)
		err = to.apply(set, by+" "+f.name)
	}
	if _, bad := errors.AsType[*rules.Error](err); err == nil || bad {
		f.known, f.failed = sum, ""
	} else {
		f.known = [sha256.Size]byte{} // it is tried again: there may be room by then
		if f.failed == err.Error() {
			return
		}
		f.failed = err.Error()
	}
	for _, problem := range problems(err) {
		f.log.Error("the rule file was not applied; the rules stay as they are", "by", by, "problem", problem)
	}
}

// problems are the lines of an error: of a rule file, one for each problem.
func problems(err error) (all []string) {
	bad, ok := errors.AsType[*rules.Error](err)
	switch {
	case err == nil:
		return nil
	case !ok:
		return []string{err.Error()}
	}
	for _, p := range bad.Problems {
		p.Source = "" // one line each
		all = append(all, p.String())
	}
	if bad.More > 0 {
		all = append(all, count(bad.More, "more problem"))
	}
	return all
}

func warnOf(set *rules.Set, log *slog.Logger) {
	for _, warning := range set.Warnings() {
		log.Warn("a rule is probably not meant so", "problem", warning)
	}
}

// hangups receives the SIGHUPs of this process until stop is called.
func hangups() (received chan os.Signal, stop func()) {
	received = make(chan os.Signal, 1)
	signal.Notify(received, syscall.SIGHUP)
	return received, func() { signal.Stop(received) }
}
