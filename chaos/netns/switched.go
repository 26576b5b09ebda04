package netns

import (
	"errors"
	"fmt"
	"os"

	"github.com/ringlimit/ringlimit/chaos/scenario"
	"github.com/ringlimit/ringlimit/chaos/tap"
)

// switched joins homes by a switch in this process, which can delay. Its ports are
// numbered like the nodes, since these get their places in order.
type switched struct {
	hub *tap.Switch
	log string
}

func (s *switched) plug(_ int, h home) error {
	var device *os.File
	err := h.inside(func() (err error) {
		device, err = tap.Open("eth0")
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnable, err)
	}
	s.hub.Plug(device)
	return nil
}

func (s *switched) delay(from, to int, c *scenario.Cut) {
	s.hub.Set(from, to, tap.Link{Delay: c.Delay, Jitter: c.Jitter})
}

func (s *switched) heal() { s.hub.Clear() }

// close writes down what became of the frames: whoever looks for a cause must know
// whether the switch lost some.
func (s *switched) close() error {
	err := s.hub.Close()
	c := s.hub.Stats()
	text := fmt.Sprintf("frames in %d, out %d, lost to full queues %d, lost to devices that were down %d\n", c.In, c.Out, c.Full, c.Lost)
	return errors.Join(err, os.WriteFile(s.log, []byte(text), 0o600))
}
