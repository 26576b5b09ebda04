package client_test

import (
	"context"
	"fmt"
	"log"

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
