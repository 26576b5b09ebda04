// Package parcel packs the messages of package transfer for the way between
// nodes, and reads what arrives. It opens no stream.
package parcel
