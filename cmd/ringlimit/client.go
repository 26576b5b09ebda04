package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Bounds on an answer: a node that does not come back, or that is none.
const (
	askTimeout = 10 * time.Second
	maxAnswer  = 256 << 20 // of the rules of all clients, which may be a hundred thousand
)

// client asks one HTTP address of a node.
type client struct {
	base  string // scheme://host:port
	token string // of the admin API; empty: none
	http  *http.Client
}

// adminFlags say which admin address a command asks, and as whom.
type adminFlags struct{ address, tokenFile string }

func (a *adminFlags) bind(f *pflag.FlagSet) {
	f.StringVar(&a.address, "admin", defaultAdmin, "admin address of a node")
	f.StringVar(&a.tokenFile, "admin-token-file", "", "file with the token of that admin address")
}

func (a *adminFlags) client() (*client, error) {
	token, err := readToken(a.tokenFile, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, fmt.Errorf("--admin-token-file: %w", err)
	}
	c, err := newClient("admin", a.address)
	if err != nil {
		return nil, err
	}
	c.token = string(token)
	return c, nil
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
	a, err := c.do(ctx, call{method: http.MethodGet, path: path})
	return a.body, err
}

// post sends v as JSON and returns the body of a 200 answer.
func (c *client) post(ctx context.Context, path string, v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	a, err := c.do(ctx, call{method: http.MethodPost, path: path, body: body})
	return a.body, err
}

// call is what a client asks.
type call struct {
	method, path string
	body         []byte // JSON; nil: none
	ifMatch      string // empty: none
}

// answer is what a node says, if it is no refusal.
type answer struct {
	status int
	body   []byte
	etag   string // without quotes; empty: none
}

func (c *client) do(ctx context.Context, ask call) (answer, error) {
	defer c.http.CloseIdleConnections() // a command asks once
	req, err := http.NewRequestWithContext(ctx, ask.method, c.base+ask.path, bytes.NewReader(ask.body))
	if err != nil {
		return answer{}, err
	}
	for name, value := range ask.headers(c.token) {
		req.Header.Set(name, value)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{}, c.unreachable(err)
	}
	defer resp.Body.Close()
	body, err := readAll(resp.Body, c.base+ask.path, maxAnswer)
	switch {
	case err != nil:
		return answer{}, err
	case resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated:
		return answer{}, refusal(c.base, resp, body)
	}
	return answer{resp.StatusCode, body, strings.Trim(resp.Header.Get("ETag"), `"`)}, nil
}

func (ask *call) headers(token string) map[string]string {
	h := map[string]string{}
	if ask.body != nil {
		h["Content-Type"] = "application/json"
	}
	if ask.ifMatch != "" {
		h["If-Match"] = ask.ifMatch
	}
	if token != "" {
		h["Authorization"] = "Bearer " + token
	}
	return h
}

func (c *client) unreachable(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return fmt.Errorf("cannot ask %s: %w", c.base, err)
}

// refusedError is what a node says of a request that it cannot answer.
type refusedError struct {
	Status int
	Detail string
	Errors []struct { // all that is wrong with a body
		Field, Detail string
		Line, Column  int
	}
	Clients []string // that are in the way
}

func (e *refusedError) Error() string {
	if len(e.Errors) > 0 {
		return strings.Join(e.lines("line "), "\n")
	}
	return e.Detail
}

// lines are the errors in the body, each with its place after where.
func (e *refusedError) lines(where string) (all []string) {
	for _, p := range e.Errors {
		all = append(all, fmt.Sprintf("%s%d:%d: %s", where, p.Line, p.Column, fieldLine(p.Field, p.Detail)))
	}
	return all
}

func refusal(base string, resp *http.Response, body []byte) error {
	problem := &refusedError{}
	switch {
	case json.Unmarshal(body, problem) != nil || problem.Detail == "":
		return fmt.Errorf("%s answers %s; is it a ringlimit node?", base, resp.Status)
	case resp.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("%s needs a token, and the right one: give its file with --admin-token-file", base)
	}
	problem.Status = resp.StatusCode
	return problem
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
