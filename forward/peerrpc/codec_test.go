package peerrpc

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
)

func drawFrame() *rapid.Generator[*peerpb.Frame] {
	number := rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64(), rapid.Just(uint64(math.MaxUint64)))
	return rapid.Custom(func(t *rapid.T) *peerpb.Frame {
		return &peerpb.Frame{
			Id: number.Draw(t, "id"), Era: number.Draw(t, "era"), PatienceUs: number.Draw(t, "patience"),
			Records: rapid.SliceOfN(rapid.Byte(), 0, 9000).Draw(t, "records"),
		}
	})
}

// What the codec writes protobuf reads, and the other way round, into a frame that
// was used before, from memory in any pieces.
func TestLawCodecIsProtobuf(t *testing.T) {
	c, used := newCodec(), new(peerpb.Frame)
	rapid.Check(t, func(t *rapid.T) {
		want := drawFrame().Draw(t, "frame")
		written, err := c.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got peerpb.Frame
		if err := proto.Unmarshal(written.Materialize(), &got); err != nil || !proto.Equal(&got, want) {
			t.Fatalf("protobuf reads %v, %v; want %v", &got, err, want)
		}
		written.Free()
		theirs, err := proto.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		theirs = protowire.AppendTag(theirs, 99, protowire.BytesType) // of a later version
		theirs = protowire.AppendBytes(theirs, []byte("news"))
		cut := rapid.IntRange(0, len(theirs)).Draw(t, "cut")
		pieces := mem.BufferSlice{mem.SliceBuffer(theirs[:cut]), mem.SliceBuffer(theirs[cut:])}
		if err := c.Unmarshal(pieces, used); err != nil || !same(used, want) {
			t.Fatalf("the codec reads %v, %v; want %v", used, err, want)
		}
	})
}

func same(a, b *peerpb.Frame) bool {
	return a.Id == b.Id && a.Era == b.Era && a.PatienceUs == b.PatienceUs && bytes.Equal(a.Records, b.Records)
}

// What is on its way is nobody's to change: frames that are written one after the
// other have memory of their own until gRPC lets go of it.
func TestCodecLeavesAloneWhatIsUnderWay(t *testing.T) {
	c := newCodec()
	var sent []mem.BufferSlice
	for i := range 20 {
		data, err := c.Marshal(&peerpb.Frame{Id: 1, Records: bytes.Repeat([]byte{byte(i)}, 5000)})
		if err != nil {
			t.Fatal(err)
		}
		sent = append(sent, data)
	}
	for i, data := range sent {
		var got peerpb.Frame
		if err := c.Unmarshal(data, &got); err != nil || !bytes.Equal(got.Records, bytes.Repeat([]byte{byte(i)}, 5000)) {
			t.Errorf("frame %d became another: %v", i, err)
		}
		data.Free()
	}
}

// Messages of other kinds go through as they did.
func TestCodecLeavesLettersToProtobuf(t *testing.T) {
	c, want := newCodec(), &peerpb.Letter{Message: &peerpb.Letter_Views{Views: &peerpb.Views{}}}
	data, err := c.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got peerpb.Letter
	if err := c.Unmarshal(data, &got); err != nil || !proto.Equal(&got, want) {
		t.Errorf("got %v, %v", &got, err)
	}
}

func FuzzCodec(f *testing.F) {
	for _, frame := range []*peerpb.Frame{{}, {Id: 1, Records: []byte("abc"), Era: 3, PatienceUs: 9}} {
		b, err := proto.Marshal(frame)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte{0x12, 0xff, 0xff, 0xff, 0xff, 0x0f})            // records longer than what came
	f.Add([]byte{0x0a, 1, 7, 0x10, 5})                           // the fields with each other's kinds
	f.Add(slices.Concat([]byte{0x12, 1, 7}, []byte{0x12, 1, 8})) // records twice
	f.Add([]byte("\xf9\x85\x85\xd0 \f\xef&\x87\f]\xc9\x11"))     // a field number above all that there are
	f.Fuzz(func(t *testing.T, b []byte) {
		var got, want peerpb.Frame
		err := newCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, &got)
		if wants := proto.Unmarshal(b, &want); (err == nil) != (wants == nil) {
			t.Fatalf("the codec says %v, protobuf %v", err, wants)
		}
		if err == nil && !same(&got, &want) {
			t.Fatalf("the codec reads %v, protobuf %v", &got, &want)
		}
	})
}
