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

// version is that of the frames' contents. Nodes of neighbouring versions work
// together, so that a cluster can be updated node by node.
const version = 1

// The handshake: the asker's metadata, and the owner's header with its version.
const (
	versionKey = "ringlimit-peer-version"
	fromKey    = "ringlimit-from"  // who asks
	nodeKey    = "ringlimit-node"  // whom the asker means to talk to
	tokenKey   = "ringlimit-token" // proof that it belongs to the cluster
)

func hello(ctx context.Context, from, to membership.NodeID, token string) context.Context {
	return metadata.AppendToOutgoingContext(ctx,
		versionKey, strconv.Itoa(version), fromKey, printable(from), nodeKey, printable(to), tokenKey, token)
}

// printable is a name that metadata can carry.
func printable(id membership.NodeID) string { return strconv.QuoteToASCII(string(id)) }

// admit checks a stream's metadata. A stranger learns nothing but that.
func admit(ctx context.Context, self membership.NodeID, token string) error {
	md, _ := metadata.FromIncomingContext(ctx)
	if subtle.ConstantTimeCompare([]byte(single(md, tokenKey)), []byte(token)) != 1 {
		return status.Error(codes.Unauthenticated, tokenKey+": is not this cluster's; nodes of one cluster need the same secret")
	}
	if err := checkVersion(md); err != nil {
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	if to := single(md, nodeKey); to != printable(self) {
		return status.Errorf(codes.FailedPrecondition, "%s: %s was meant, but this address is now %s", nodeKey, to, printable(self))
	}
	return nil
}

// welcome is the header that the owner answers with.
func welcome() metadata.MD { return metadata.Pairs(versionKey, strconv.Itoa(version)) }

func checkVersion(md metadata.MD) error {
	v, err := strconv.Atoi(single(md, versionKey))
	if err != nil || v < version-1 || v > version+1 {
		return fmt.Errorf("%s: is %q; this node speaks %d and works with the versions next to it",
			versionKey, single(md, versionKey), version)
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
