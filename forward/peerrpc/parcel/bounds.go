package parcel

import (
	"errors"
	"fmt"

	"github.com/ringlimit/ringlimit/limit"
)

// Bounds on a letter. An Unpacker refuses what exceeds them, so that a peer
// cannot have it keep much.
const (
	maxName     = 32 << 10 // bytes in a counter's name, as in a check
	maxNode     = 256      // bytes in a node's name
	maxMembers  = 10_000   // records, and absent nodes
	maxItems    = 1 << 17  // asks, parts, copies, …: twice the most partitions
	maxRules    = 1 << 16  // on one stream
	minCounter  = 1 + 1 + 8 + 1
	ruleIDBytes = 8
)

// maxCounters is how many bytes a letter's counters may take. The core puts
// about one chunk into a message. That is at most 512 counters, with the longest
// names. Of stamps of logs it is 65,536, of at most 12 bytes, and with the last
// of them a whole log. Its million stamps take under 8 bytes each: within 100
// years they are so close together that the varints of their distances are 6.7
// bytes long on average, and their costs add up to no more than a million.
const maxCounters = 512*(maxName+64) + 65_536*12 + 8*limit.MaxLogLimit

// MaxLetter bounds the bytes of a letter on the wire: its counters, and in
// addition as many items, members and rules as can come with them.
const MaxLetter = maxCounters + maxItems*64 + 2*maxMembers*(maxNode+64) + 512*(limit.MaxSpecBytes+16)

var (
	// ErrTooLarge says that a message has no room in a letter. It is not sent;
	// the stream goes on.
	ErrTooLarge = errors.New("parcel: the message is larger than a letter may be")
	// ErrTooManyRules says that the stream has named as many rules as it may. It
	// has to end; another one begins anew.
	ErrTooManyRules = fmt.Errorf("parcel: a stream can name %d rules", maxRules)
)
