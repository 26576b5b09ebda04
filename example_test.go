package ringlimit_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/ringlimit/ringlimit"
	"github.com/ringlimit/ringlimit/rules"
)

const exampleRules = `
tiers:
  default:
    - {name: global, algorithm: sliding_window_log, limit: 2, window: 60s}
`

// alone starts a node on free ports of the loopback interface.
func alone(name string, join ...string) *ringlimit.Node {
	set, err := rules.Parse("rules.yaml", []byte(exampleRules))
	if err != nil {
		log.Fatal(err)
	}
	node, err := ringlimit.Start(context.Background(), ringlimit.Config{
		Name:   name,
		Rules:  set,
		Peer:   "127.0.0.1:0",
		Gossip: "127.0.0.1:0",
		Join:   join,
	})
	if err != nil {
		log.Fatal(err)
	}
	return node
}

// Two nodes in one process: whichever is asked, one counter is charged.
func ExampleStart() {
	first := alone("first")
	second := alone("second", first.GossipAddr())
	defer first.Leave(context.Background())
	defer second.Leave(context.Background())

	fmt.Println(len(second.Members()), "members")
	// Output: 2 members
}

func ExampleNode_Check() {
	node := alone("node")
	defer node.Leave(context.Background())
	for range 3 {
		verdict, err := node.Check(context.Background(), ringlimit.Request{Key: "cust_42", Route: "POST /v1/charges"})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(verdict.Allowed, verdict.Remaining)
	}
	// Output:
	// true 1
	// true 0
	// false 0
}

func ExampleNode_Middleware() {
	node := alone("node")
	defer node.Leave(context.Background())
	handler := node.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "hello")
	}))
	for range 3 {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-API-Key", "cust_42")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("RateLimit"))
	}
	// Output:
	// 200 "global";r=1;t=60
	// 200 "global";r=0;t=60
	// 429 "global";r=0;t=60
}

func ExampleNode_Leave() {
	node := alone("node")
	if err := node.Leave(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(node.Ready())
	// Output: draining
}
