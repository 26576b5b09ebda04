package rival

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/ringlimit/ringlimit/bench/profile"
	"github.com/ringlimit/ringlimit/bench/wire"
)

// Serve is a server process of a rival: it prints where it listens, and runs until
// it is killed. It is not for people; see Env.serve.
func Serve(ctx context.Context, out io.Writer, profiled bool, kind string, args []string) error {
	if profiled {
		addr, err := profile.Serve()
		if err != nil {
			return err
		}
		fmt.Fprintln(out, profiles+addr)
	}
	go reportHeap(ctx, out)
	switch kind {
	case "tcp":
		return serveJudge(out, wire.ServeTCP)
	case "unary":
		return serveJudge(out, wire.ServeUnary)
	case "mesh":
		return serveMesh(out, args)
	case "gubernator":
		return serveGubernator(ctx, out, args)
	}
	return fmt.Errorf("%q is no kind of server", kind)
}

func reportHeap(ctx context.Context, out io.Writer) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	for n := 1; ; n++ {
		select {
		case <-asked:
			fmt.Fprintln(out, heapSize+strconv.Itoa(n), heap())
		case <-ctx.Done():
			return
		}
	}
}

func serveJudge(out io.Writer, serve func(net.Listener, *wire.Judge) error) error {
	j, l, err := listen()
	if err != nil {
		return err
	}
	fmt.Fprintln(out, serving+l.Addr().String())
	return serve(l, j)
}

// listen is what a server that only judges is made of.
func listen() (*wire.Judge, net.Listener, error) {
	j, err := wire.NewJudge(overNetwork.Count)
	if err != nil {
		return nil, nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	return j, l, err
}

// serveMesh is one node of a mesh: its number, then all addresses.
func serveMesh(out io.Writer, args []string) error {
	if len(args) < 2 {
		return errors.New("a node of a mesh needs its number and all addresses")
	}
	self, err := strconv.Atoi(args[0])
	if err != nil || self < 0 || self >= len(args)-1 {
		return fmt.Errorf("%q is no number of a node", args[0])
	}
	return runMesh(out, args[1:], self)
}

func runMesh(out io.Writer, addresses []string, self int) error {
	j, err := wire.NewJudge(overNetwork.Count)
	if err != nil {
		return err
	}
	m, err := wire.NewMesh(j, addresses, self)
	if err != nil {
		return err
	}
	defer m.Close()
	l, err := net.Listen("tcp", addresses[self])
	if err != nil {
		return err
	}
	fmt.Fprintln(out, serving+l.Addr().String())
	return m.Serve(l)
}

// freeAddresses are n addresses on loopback that nobody listens on at the moment.
func freeAddresses(n int) ([]string, error) {
	var addresses []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // only when all are found: no two must be the same
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, nil
}
