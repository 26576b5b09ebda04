// Package wire writes and reads the messages of the public protobuf,
// api/ringlimit/v1, straight from and to the nouns of package limit. The generated
// code would make a message, its optional numbers, durations and strings out of
// each check first: a dozen allocations where one for all checks of a frame does.
// What is written here the generated code reads, and the other way round; the tests
// hold the two against each other.
package wire

import (
	"strings"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// In is a message as it came. Parts of it that are kept keep all of it; that is one
// allocation for all strings in it.
type In string

// Out is a message to be sent. It may be changed once it is sent.
type Out []byte

// Codec passes *In and *Out through gRPC as they are. All other messages it treats
// as gRPC does by itself.
func Codec() encoding.CodecV2 { return codec{encoding.GetCodecV2(proto.Name)} }

type codec struct{ encoding.CodecV2 }

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if out, ok := v.(*Out); ok {
		return mem.BufferSlice{mem.Copy(*out, mem.DefaultBufferPool())}, nil
	}
	return c.CodecV2.Marshal(v)
}

func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	in, ok := v.(*In)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	var b strings.Builder
	b.Grow(data.Len())
	for _, part := range data {
		b.Write(part.ReadOnlyData())
	}
	*in = In(b.String())
	return nil
}
