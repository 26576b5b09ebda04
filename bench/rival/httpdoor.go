package rival

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/ringlimit/ringlimit/bench/load"
)

// httpClient is one connection a caller, kept alive.
func httpClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, 4096
	return &http.Client{Transport: t}
}

// httpService is three real nodes asked over HTTP; callers take them in turn.
type httpService struct {
	fleet  fleet
	client *http.Client
}

func (h *httpService) Start(ctx context.Context, env *Env) error {
	h.client = httpClient()
	return h.fleet.start(ctx, env, nodes, 0)
}

func (h *httpService) Stop() { h.client.CloseIdleConnections() }

// httpCheck asks /v1/check.
type httpCheck struct{ httpService }

func (h *httpCheck) Caller(next int) load.Ask {
	var body, answer []byte
	return one(func(ctx context.Context, key string) (bool, error) {
		next++
		body = append(strconv.AppendQuote(append(body[:0], `{"key":`...), key), '}')
		var err error
		if answer, err = post(ctx, h.client, "http://"+h.fleet.nodes[next%nodes].HTTP+"/v1/check", body, answer); err != nil {
			return false, err
		}
		return admittedIn(answer) == 1, byOwner(answer, 1)
	})
}

// httpChecks asks /v1/checks.
type httpChecks struct{ httpService }

func (h *httpChecks) Caller(next int) load.Ask {
	var body, answer []byte
	return func(ctx context.Context, keys []string) (int, error) {
		next++
		body = append(body[:0], `{"checks":[`...)
		for i, key := range keys {
			if i > 0 {
				body = append(body, ',')
			}
			body = append(strconv.AppendQuote(append(body, `{"key":`...), key), '}')
		}
		body = append(body, "]}"...)
		var err error
		if answer, err = post(ctx, h.client, "http://"+h.fleet.nodes[next%nodes].HTTP+"/v1/checks", body, answer); err != nil {
			return 0, err
		}
		return admittedIn(answer), byOwner(answer, len(keys))
	}
}

// post returns the body of a 200, in buf if it fits.
func post(ctx context.Context, c *http.Client, url string, body, buf []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return buf, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.Do(req)
	if err != nil {
		return buf, err
	}
	defer resp.Body.Close()
	in := bytes.NewBuffer(buf[:0])
	if _, err := in.ReadFrom(resp.Body); err != nil {
		return buf, err
	}
	if resp.StatusCode != http.StatusOK {
		return buf, fmt.Errorf("%s: %s", resp.Status, in)
	}
	return in.Bytes(), nil
}

// admittedIn and byOwner look for what ringlimit writes, without a parser, whose cost
// is no limiter's.
func admittedIn(answer []byte) int { return bytes.Count(answer, []byte(`"allowed":true`)) }

func byOwner(answer []byte, checks int) error {
	if n := bytes.Count(answer, []byte(`"source":"owner"`)); n != checks {
		return fmt.Errorf("%d of %d verdicts are by an owner: %.300s", n, checks, answer)
	}
	return nil
}

// authorize asks /v1/authorize, as a proxy does, of two nodes: of the one that owns
// everything, or, for what forwarding costs, of the one that only forwards to it.
type authorize struct {
	fleet     fleet
	forwarded bool
	client    *http.Client
}

func (a *authorize) Start(ctx context.Context, env *Env) error {
	a.client = httpClient()
	return a.fleet.start(ctx, env, 1, 1)
}

func (a *authorize) Caller(int) load.Ask {
	url := "http://" + a.fleet.door(a.forwarded).HTTP + "/v1/authorize"
	return one(func(ctx context.Context, key string) (bool, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false, err
		}
		req.Header["X-Api-Key"] = []string{key}
		resp, err := a.client.Do(req)
		if err != nil {
			return false, err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		// An answer by on_failure: local has the node's share of the limit.
		if got, want := resp.Header.Get("RateLimit-Limit"), strconv.FormatInt(a.fleet.limit.Count, 10); err == nil && got != want {
			err = fmt.Errorf("%s with a limit of %q, want %s", resp.Status, got, want)
		}
		return resp.StatusCode == http.StatusOK, err
	})
}

func (a *authorize) Stop() { a.client.CloseIdleConnections() }
