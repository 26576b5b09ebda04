// Package parcel packs the messages of package transfer for the way between
// nodes, and reads what arrives. It opens no stream.
//
// The structure is protobuf, so that neighbouring versions work together; the
// counters in it are packed by hand, because a join moves a million of them. A
// rule goes over a stream once, with the first of its counters; therefore there
// is one [Packer] and one [Unpacker] to a stream, and no letter may be left out.
package parcel
