package client_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/limit"
)

func Example() {
	c, err := client.New(client.Config{Addresses: []string{"10.0.0.1:7701", "10.0.0.2:7701"}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	verdict, err := c.Check(context.Background(), limit.Request{Key: "cust_42", Route: "POST /v1/charges"})
	switch {
	case err != nil:
		log.Print(err) // to let the request pass or not is the program's to decide
	case !verdict.Allowed:
		fmt.Println("come back in", verdict.RetryAfter)
	}
}

// A worker keeps to the rate that the cluster allows it together with all others.
func ExampleClient_Wait() {
	c, err := client.New(client.Config{Addresses: []string{"10.0.0.1:7701", "10.0.0.2:7701"}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	for _, letter := range []string{"to Ada", "to Grace"} {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		verdict, err := c.Wait(ctx, limit.Request{Key: "mailer", Route: "send"})
		cancel()
		switch {
		case err != nil:
			log.Print(err)
		case !verdict.Allowed:
			log.Print("not within 30 s: come back in ", verdict.RetryAfter)
		default:
			fmt.Println("sending", letter)
		}
	}
}
