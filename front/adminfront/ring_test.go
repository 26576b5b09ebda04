package adminfront

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/ringlimit/ringlimit/front"
)

func TestRing(t *testing.T) {
	c := &cluster{ring: Ring{
		Node:        "b",
		Fingerprint: 0xab,
		Members:     []string{"a", "b"},
		Partitions:  []Partition{{Partition: 0, Phase: "holding", Owner: "b", Holder: "b", Standby: "a", Seeded: true}, {Partition: 1, Phase: "none", Owner: "a", Copied: true}},
	}}
	const want = `{"node":"b","fingerprint":"00000000000000ab","members":["a","b"],` +
		`"phases":{"acquiring":0,"holding":1,"none":1,"released":0},"incoming":0,"outgoing":0,"unguarded":0,"partitions":[` +
		`{"partition":0,"phase":"holding","owner":"b","holder":"b","standby":"a","copied":false,"seeded":true},` +
		`{"partition":1,"phase":"none","owner":"a","holder":"","standby":"","copied":true,"seeded":false}]}`
	if got := get200(t, newDoor(c), "/v1/ring"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := get200(t, newDoor(&cluster{}), "/v1/ring"); !strings.Contains(got, `"members":[],`) || !strings.HasSuffix(got, `"partitions":[]}`) {
		t.Error(got)
	}
}

// What moves: each phase, as owner and as bystander.
func TestRingCountsWhatMoves(t *testing.T) {
	for _, test := range []struct {
		p                             Partition
		incoming, outgoing, unguarded int
	}{
		{Partition{Phase: "none", Owner: "me"}, 1, 0, 0},
		{Partition{Phase: "acquiring", Owner: "me"}, 1, 0, 0},
		{Partition{Phase: "released", Owner: "me"}, 1, 0, 0},
		{Partition{Phase: "holding", Owner: "me", Seeded: true}, 0, 0, 0},
		{Partition{Phase: "holding", Owner: "me"}, 0, 0, 1},
		{Partition{Phase: "none", Owner: "other"}, 0, 0, 0},
		{Partition{Phase: "acquiring", Owner: "other"}, 0, 0, 0},
		{Partition{Phase: "released", Owner: "other"}, 0, 1, 0},
		{Partition{Phase: "holding", Owner: "other", Seeded: true}, 0, 1, 0},
		{Partition{Phase: "holding", Owner: "other"}, 0, 1, 1},
		{Partition{Phase: "holding", Owner: ""}, 0, 1, 1},
	} {
		c := &cluster{ring: Ring{Node: "me", Partitions: []Partition{test.p, test.p}}}
		var got struct {
			Incoming, Outgoing, Unguarded int
			Phases                        map[string]int
		}
		if err := json.Unmarshal([]byte(get200(t, newDoor(c), "/v1/ring")), &got, json.MatchCaseInsensitiveNames(true)); err != nil {
			t.Fatal(err)
		}
		if got.Incoming != 2*test.incoming || got.Outgoing != 2*test.outgoing || got.Unguarded != 2*test.unguarded || got.Phases[test.p.Phase] != 2 {
			t.Errorf("two of %+v: %+v", test.p, got)
		}
	}
}

// A node that is not there yet says so: an empty ring would be a claim.
func TestRingBeforeTheNode(t *testing.T) {
	c := &cluster{err: front.NewProblem(http.StatusServiceUnavailable, "", "the node is joining its cluster")}
	w := call(newDoor(c), "GET", "/v1/ring", "")
	if w.Code != 503 || !strings.Contains(w.Body.String(), "joining") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestHead(t *testing.T) {
	server := httptest.NewServer(newDoor(&cluster{ring: Ring{Node: "a"}}))
	defer server.Close()
	resp, err := server.Client().Head(server.URL + "/v1/ring")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 || resp.ContentLength <= 0 || resp.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s, %d bytes, %v", resp.Status, resp.ContentLength, resp.Header)
	}
}
