package peerrpc

import (
	"context"
	"crypto/subtle"
	"fmt"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/ringlimit/ringlimit/membership"
)

// version is that of the streams' contents. Nodes of neighbouring versions work
// together, so that a cluster can be updated node by node; oldest is the first
// that was released.
const (
	version = 4
	oldest  = 3
	grouped = 4 // the first that knows groups and ages
)

// The handshake: the metadata of who opens a stream, and the other's header with
// its version.
const (
	versionKey = "ringlimit-peer-version"
	fromKey    = "ringlimit-from"  // who opens it
	bootKey    = "ringlimit-boot"  // and which run of it, in hexadecimal
	nodeKey    = "ringlimit-node"  // whom it means to talk to
	tokenKey   = "ringlimit-token" // proof that it belongs to the cluster
	laneKey    = "ringlimit-lane"  // a ticket; the answer is laneVersion
)

func hello(ctx context.Context, cfg *PoolConfig, to membership.NodeID) context.Context {
	return metadata.AppendToOutgoingContext(ctx,
		versionKey, strconv.Itoa(version), fromKey, printable(cfg.Self), bootKey, cfg.Boot.String(),
		nodeKey, printable(to), tokenKey, cfg.Token)
}

// printable is a name that metadata can carry.
func printable(id membership.NodeID) string { return strconv.QuoteToASCII(string(id)) }

// caller is who has opened a stream.
type caller struct {
	id   membership.NodeID
	boot membership.BootID
}

// admit checks a stream's metadata. A stranger learns nothing but that.
func admit(ctx context.Context, self membership.NodeID, token string) (caller, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	if subtle.ConstantTimeCompare([]byte(single(md, tokenKey)), []byte(token)) != 1 {
		return caller{}, status.Error(codes.Unauthenticated, tokenKey+": is not this cluster's; nodes of one cluster need the same secret")
	}
	if err := checkVersion(md); err != nil {
		return caller{}, status.Error(codes.FailedPrecondition, err.Error())
	}
	if to := single(md, nodeKey); to != printable(self) {
		return caller{}, status.Errorf(codes.FailedPrecondition, "%s: %s was meant, but this address is now %s", nodeKey, to, printable(self))
	}
	c, err := introduced(md)
	if err != nil {
		return caller{}, status.Error(codes.FailedPrecondition, err.Error())
	}
	return c, nil
}

func introduced(md metadata.MD) (caller, error) {
	id, err := strconv.Unquote(single(md, fromKey))
	if err != nil || id == "" || len(id) > maxHint {
		return caller{}, fmt.Errorf("%s: want a quoted name of 1 to %d bytes", fromKey, maxHint)
	}
	boot, err := strconv.ParseUint(single(md, bootKey), 16, 64)
	if err != nil {
		return caller{}, fmt.Errorf("%s: want a hexadecimal number of 64 bits", bootKey)
	}
	return caller{membership.NodeID(id), membership.BootID(boot)}, nil
}

// laneVersion is that of the lanes that an owner offers; see lane.go.
const laneVersion = "1"

// welcome is the header that the other answers with.
func welcome() metadata.MD { return metadata.Pairs(versionKey, strconv.Itoa(version)) }

// offersLane says whether a welcome offers the lane that was asked for. One of an
// earlier version does not.
func offersLane(welcome metadata.MD) bool { return single(welcome, laneKey) == laneVersion }

// askedLane returns the ticket of the lane that a stream's opener asks for.
func askedLane(ctx context.Context) (t ticket, asked bool) {
	md, _ := metadata.FromIncomingContext(ctx)
	return parseTicket(single(md, laneKey))
}

func versionOf(md metadata.MD) (int, error) { return strconv.Atoi(single(md, versionKey)) }

func checkVersion(md metadata.MD) error {
	v, err := versionOf(md)
	if err != nil || v < max(oldest, version-1) || v > version+1 {
		return fmt.Errorf("%s: is %q; this node speaks %d and works with the versions next to it, from %d up",
			versionKey, single(md, versionKey), version, oldest)
	}
	return nil
}

// single is the value of a key that occurs once, else "".
func single(md metadata.MD, key string) string {
	if v := md.Get(key); len(v) == 1 {
		return v[0]
	}
	return ""
}
