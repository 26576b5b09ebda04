package main

import (
	"fmt"
	"io"
	"os"

	"github.com/schollz/progressbar/v3"

	"github.com/ringlimit/ringlimit/chaos/play"
)

// bar shows how far a scenario is: on a terminal as a bar that moves, elsewhere
// as a line now and then.
type bar struct {
	out   io.Writer
	name  string
	moves *progressbar.ProgressBar // nil: not on a terminal
	told  int                      // steps done when the last line was printed
}

func newBar(out io.Writer, name string) *bar {
	b := &bar{out: out, name: name, told: -1}
	if f, ok := out.(*os.File); ok && terminal(f) {
		b.moves = progressbar.NewOptions(1,
			progressbar.OptionSetWriter(out),
			progressbar.OptionSetWidth(20),
			progressbar.OptionShowCount(),
			progressbar.OptionClearOnFinish(),
			progressbar.OptionSetPredictTime(false),
			progressbar.OptionSetDescription(name))
	}
	return b
}

func terminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// show is called about once a second, by one goroutine at a time.
func (b *bar) show(p play.Progress) {
	line := fmt.Sprintf("%s: %s; %d checks/s, %d nodes ready, %d denied, %d unanswered",
		b.name, p.Step, p.Rate, p.Up, p.Totals.Denied, p.Totals.Unanswered)
	if b.moves != nil {
		b.moves.Describe(line)
		b.moves.ChangeMax(max(p.Total, p.Done, 1))
		_ = b.moves.Set(p.Done) // a terminal that is gone is no reason to stop
		return
	}
	if p.Done != b.told {
		b.told = p.Done
		fmt.Fprintf(b.out, "%d/%d %s\n", p.Done, p.Total, line)
	}
}

func (b *bar) close() {
	if b.moves != nil {
		_ = b.moves.Finish() // see show
	}
}
