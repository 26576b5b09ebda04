package adminfront

import (
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/ringlimit/ringlimit/front"
)

// Ring is who owns what, and who holds it, as one node sees it at about one
// moment.
type Ring struct {
	Node        string   // the ID of the node that says so
	Fingerprint uint64   // equal at two nodes that place all counters alike
	Members     []string // IDs of the nodes in the ring, sorted
	Partitions  []Partition
}

// Partition is a partition as /v1/ring shows it.
type Partition struct {
	Partition int    `json:"partition"`
	Phase     string `json:"phase"`   // of this node: none, acquiring, holding or released
	Owner     string `json:"owner"`   // who should hold it; empty while no node serves
	Holder    string `json:"holder"`  // who does, as far as this node has heard; empty if it has not
	Standby   string `json:"standby"` // who keeps this node's copy; empty unless this node holds
	Copied    bool   `json:"copied"`  // this node keeps a copy for the holder
	Seeded    bool   `json:"seeded"`  // the standby has a complete copy
}

// ringAnswer begins with what is worth watching while counters change hands:
// all is over when nothing is incoming or outgoing.
type ringAnswer struct {
	Node        string         `json:"node"`
	Fingerprint string         `json:"fingerprint"`
	Members     []string       `json:"members"`
	Phases      map[string]int `json:"phases"`
	Incoming    int            `json:"incoming"`  // owned and not held yet
	Outgoing    int            `json:"outgoing"`  // held, or given and not acknowledged, and another's
	Unguarded   int            `json:"unguarded"` // held without a complete copy elsewhere
	Partitions  []Partition    `json:"partitions"`
}

func (d *door) ring(w http.ResponseWriter, _ *http.Request) {
	ring, err := d.Cluster.Ring()
	var body []byte
	if err == nil {
		body, err = json.Marshal(summed(&ring), json.Deterministic(true))
	}
	if err != nil {
		front.ProblemOf(err).Write(w)
		return
	}
	writeJSON(w, body)
}

func summed(r *Ring) *ringAnswer {
	a := &ringAnswer{
		Node:        r.Node,
		Fingerprint: fmt.Sprintf("%016x", r.Fingerprint),
		Members:     r.Members,
		Phases:      map[string]int{"none": 0, "acquiring": 0, "holding": 0, "released": 0},
		Partitions:  r.Partitions,
	}
	for _, p := range r.Partitions {
		a.Phases[p.Phase]++
		decides, owns := p.Phase == "holding", p.Owner == r.Node
		if owns && !decides {
			a.Incoming++
		}
		if !owns && (decides || p.Phase == "released") {
			a.Outgoing++
		}
		if decides && !p.Seeded {
			a.Unguarded++
		}
	}
	return a
}
