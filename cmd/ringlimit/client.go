package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Bounds on an answer: a node that does not come back, or that is none.
const (
	askTimeout = 10 * time.Second
	maxAnswer  = 16 << 20
)

// client asks one HTTP address of a node.
type client struct {
	base string // scheme://host:port
	http *http.Client
}

// newClient reads an address as a URL or as host:port; name is the flag's.
func newClient(name, address string) (*client, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("--%s: %q is not an address; write it like http://127.0.0.1:7700", name, address)
	}
	return &client{base: u.Scheme + "://" + u.Host, http: &http.Client{Timeout: askTimeout}}, nil
}

// get returns the body of a 200 answer to GET.
func (c *client) get(ctx context.Context, path string) ([]byte, error) {
	return c.do(ctx, http.MethodGet, path, nil)
}

// post sends v as JSON and returns the body of a 200 answer.
func (c *client) post(ctx context.Context, path string, v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return c.do(ctx, http.MethodPost, path, body)
}

func (c *client) do(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	defer c.http.CloseIdleConnections() // a command asks once
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(err)
	}
	defer resp.Body.Close()
	answer, err := readAll(resp.Body, c.base+path, maxAnswer)
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode != http.StatusOK:
		return nil, refusal(c.base, resp, answer)
	}
	return answer, nil
}

func (c *client) unreachable(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return fmt.Errorf("cannot ask %s: %w", c.base, err)
}

// refusal is what a node says of a request that it cannot answer.
func refusal(base string, resp *http.Response, body []byte) error {
	var problem struct{ Detail string }
	if json.Unmarshal(body, &problem) == nil && problem.Detail != "" {
		return errors.New(problem.Detail)
	}
	return fmt.Errorf("%s answers %s; is it a ringlimit node?", base, resp.Status)
}

// decode reads an answer of a node. Fields that a newer node adds are passed over.
func decode(c *client, body []byte, v any) error {
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("%s answers what is no ringlimit answer: %w", c.base, err)
	}
	return nil
}

// raw prints a node's answer as it came, in one line.
func (p *printer) raw(body []byte) error {
	var line bytes.Buffer
	if err := json.Compact(&line, body); err != nil {
		return err
	}
	line.WriteByte('\n')
	_, err := line.WriteTo(p.w)
	return err
}

// show prints an answer: as it came with --output json, else by inText once it
// is decoded into v.
func (p *printer) show(c *client, body []byte, v any, inText func(w io.Writer)) error {
	if err := decode(c, body, v); err != nil {
		return err
	}
	if p.format == jsonFormat {
		return p.raw(body)
	}
	inText(p.w)
	return nil
}
