// Package load is the clients of a run: they ask random nodes over HTTP, as a
// load balancer would have them, and record what each check came to.
package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/ringlimit/ringlimit/chaos/history"
)

// Door is the HTTP door of one node.
type Door struct {
	Node   int
	Host   string // host:port
	Client *http.Client
}

// ask is one check on the wire.
type ask struct {
	Key   string `json:"key"`
	Route string `json:"route"`
	Peek  bool   `json:"peek,omitempty"`
}

// answer is a verdict on the wire, as far as the run cares.
type answer struct {
	Allowed   bool            `json:"allowed"`
	Remaining int64           `json:"remaining"`
	ResetAt   time.Time       `json:"reset_at"`
	Rule      string          `json:"rule"`
	Source    string          `json:"source"`
	Error     json.RawMessage `json:"error"` // of one check in a batch
}

// maxAnswer bounds what is read of an answer: a thousand verdicts and more.
const maxAnswer = 1 << 20

// check asks about one key, checks about many at once.
func (d *Door) check(ctx context.Context, a ask) (answer, error) {
	var got answer
	err := d.post(ctx, "/v1/check", a, &got)
	return got, err
}

func (d *Door) checks(ctx context.Context, asks []ask) ([]answer, error) {
	var got struct {
		Verdicts []answer `json:"verdicts"`
	}
	err := d.post(ctx, "/v1/checks", map[string][]ask{"checks": asks}, &got)
	if err == nil && len(got.Verdicts) != len(asks) {
		err = fmt.Errorf("%w: %d verdicts for %d checks", errNoVerdict, len(got.Verdicts), len(asks))
	}
	return got.Verdicts, err
}

var errNoVerdict = errors.New("not a verdict")

func (d *Door) post(ctx context.Context, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+d.Host+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := d.Client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: %s: %.200s", errNoVerdict, resp.Status, text)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%w: %w", errNoVerdict, err)
	}
	return nil
}

// faultOf sorts the ways in which a call can fail by whether the check may have
// been counted.
func faultOf(err error) history.Fault {
	timeout, ok := errors.AsType[net.Error](err)
	switch {
	case err == nil:
		return history.Answered
	case errors.Is(err, syscall.ECONNREFUSED):
		return history.Refused
	case errors.Is(err, errNoVerdict):
		return history.Wrong
	case ok && timeout.Timeout():
		return history.TimedOut
	}
	return history.Broken
}
