package peerrpc

import (
	"fmt"
	"sync"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto" // and registers its codec
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
)

// codec is gRPC's for protobuf, but reads and writes frames of checks by hand, into
// memory that is used again: a frame is on its way a hundred thousand times a second.
// What is on the wire is the same.
type codec struct {
	encoding.CodecV2
	buffers *buffers
}

func newCodec() codec { return codec{encoding.GetCodecV2(proto.Name), new(buffers)} }

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*peerpb.Frame)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	b := c.buffers.Get(len(f.Records))
	*b = appendFrame((*b)[:0], f)
	return mem.BufferSlice{mem.NewBuffer(b, c.buffers)}, nil
}

// Unmarshal implements encoding.CodecV2. A frame keeps the room of its records.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*peerpb.Frame)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	whole := data.MaterializeToBuffer(c.buffers)
	defer whole.Free()
	return readFrame(whole.ReadOnlyData(), f)
}

// headBytes is about what a frame is longer than its records.
const headBytes = 64

// The fields of a Frame; see peer.proto.
const (
	frameID       protowire.Number = 1
	frameRecords  protowire.Number = 2
	framePatience protowire.Number = 3
	frameEra      protowire.Number = 4
)

func appendFrame(b []byte, f *peerpb.Frame) []byte {
	b = appendField(b, frameID, f.Id)
	if len(f.Records) > 0 {
		b = protowire.AppendTag(b, frameRecords, protowire.BytesType)
		b = protowire.AppendBytes(b, f.Records)
	}
	b = appendField(b, framePatience, f.PatienceUs)
	return appendField(b, frameEra, f.Era)
}

func appendField(b []byte, n protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
}

// readFrame skips fields that it does not know.
func readFrame(b []byte, f *peerpb.Frame) error {
	f.Id, f.Records, f.PatienceUs, f.Era = 0, f.Records[:0], 0, 0
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		if !number.IsValid() { // which ConsumeTag lets pass when it is too large
			return fmt.Errorf("field number %d: must be at most %d", number, protowire.MaxValidNumber)
		}
		if b = b[n:]; kind == protowire.BytesType && number == frameRecords {
			var records []byte
			records, n = protowire.ConsumeBytes(b)
			f.Records = append(f.Records[:0], records...)
		} else if to := varintOf(f, number); kind == protowire.VarintType && to != nil {
			*to, n = protowire.ConsumeVarint(b)
		} else {
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
	}
	return nil
}

// varintOf is the place of a field that is a number; nil when there is no such field.
func varintOf(f *peerpb.Frame, n protowire.Number) *uint64 {
	switch n {
	case frameID:
		return &f.Id
	case framePatience:
		return &f.PatienceUs
	case frameEra:
		return &f.Era
	}
	return nil
}

// buffers implements mem.BufferPool. gRPC's own clears what it hands out.
type buffers struct{ pool sync.Pool }

// Get implements mem.BufferPool.
func (p *buffers) Get(length int) *[]byte {
	b, ok := p.pool.Get().(*[]byte)
	if !ok {
		b = new([]byte)
	}
	if cap(*b) < length+headBytes {
		*b = make([]byte, max(length+headBytes, 4<<10))
	}
	*b = (*b)[:length]
	return b
}

// Put implements mem.BufferPool. A frame of long names, once, is not to stay.
func (p *buffers) Put(b *[]byte) {
	if cap(*b) <= 2*frameBytes {
		p.pool.Put(b)
	}
}
