package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
)

// Member is how a node sees another.
type Member struct {
	ID    string `json:"id"`
	State string `json:"state"`
	Owner bool   `json:"owner"`
}

// Members is the cluster as the node sees it.
func (n *Node) Members(ctx context.Context) ([]Member, error) {
	var answer struct {
		Members []Member `json:"members"`
	}
	err := n.admin(ctx, "/v1/members", &answer)
	return answer.Members, err
}

// Location is where a key is counted.
type Location struct {
	Partition int    `json:"partition"`
	Owner     string `json:"owner"` // a node's name
}

// Locate is where a key is counted, as this node sees it.
func (n *Node) Locate(ctx context.Context, key, route string) (at Location, err error) {
	err = n.admin(ctx, "/v1/keys/"+url.PathEscape(key)+"?route="+url.QueryEscape(route), &at)
	return at, err
}

// Ring is who owns what and who holds it, as the node sees it.
type Ring struct {
	Fingerprint string         `json:"fingerprint"`
	Phases      map[string]int `json:"phases"`
	Incoming    int            `json:"incoming"`
	Outgoing    int            `json:"outgoing"`
	Partitions  []Partition    `json:"partitions"`
}

// Partition is one partition of a Ring. Standby is known of those that the node
// holds.
type Partition struct {
	Partition int    `json:"partition"`
	Standby   string `json:"standby"`
}

// Ring asks the node for its ring.
func (n *Node) Ring(ctx context.Context) (r Ring, err error) {
	err = n.admin(ctx, "/v1/ring", &r)
	return r, err
}

// answerBytes bounds what is read of an answer.
const answerBytes = 4 << 20

func (n *Node) admin(ctx context.Context, path string, answer any) error {
	return n.get(ctx, adminPort, path, func(r *http.Response) error {
		return json.NewDecoder(io.LimitReader(r.Body, answerBytes)).Decode(answer)
	})
}

func (n *Node) get(ctx context.Context, port, path string, read func(*http.Response) error) error {
	return n.ask(ctx, http.MethodGet, port, path, nil, read)
}

// SetRule changes one rule of everybody's tier, at this node's admin port.
func (n *Node) SetRule(ctx context.Context, rule []byte) error {
	return n.ask(ctx, http.MethodPut, adminPort, "/v1/limits/default", rule, func(*http.Response) error { return nil })
}

func (n *Node) ask(ctx context.Context, method, port, path string, body []byte, read func(*http.Response) error) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+net.JoinHostPort(n.place.Doors, port)+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := n.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s %s: %s", n.Name, method, path, resp.Status)
	}
	return read(resp)
}
