package peerrpc

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// ticket tells the owner to which stream a lane belongs. The asker makes it up and
// sends it with the stream's greeting; so who has it belongs to the cluster.
type ticket [16]byte

func newTicket() (t ticket) {
	_, _ = rand.Read(t[:]) // never fails
	return t
}

func (t ticket) String() string { return hex.EncodeToString(t[:]) }

func parseTicket(text string) (t ticket, ok bool) {
	n, err := hex.Decode(t[:], []byte(text))
	return t, err == nil && n == len(t)
}

// laneGreeting is how a lane begins; the ticket follows. Its first byte tells it from
// gRPC, which begins with "PRI".
const laneGreeting = "\x00ringlimit lane 1\n"

func greetingOf(t ticket) []byte { return append([]byte(laneGreeting), t[:]...) }

// laneWelcome is what the owner says first on a lane, once its stream has it.
const laneWelcome = laneGreeting

var errNoLaneWelcome = errors.New("a lane that leads to something else than a node")

func awaitLaneWelcome(lane io.Reader) error {
	var said [len(laneWelcome)]byte
	if _, err := io.ReadFull(lane, said[:]); err != nil {
		return fmt.Errorf("%w: %w", errNoLaneWelcome, err)
	}
	if string(said[:]) != laneWelcome {
		return errNoLaneWelcome
	}
	return nil
}

// lanes takes the connections that begin as lanes do to the streams that wait for
// them. The others are gRPC's.
type lanes struct {
	credentials.TransportCredentials

	mu      *sync.Mutex
	waiting map[ticket]chan<- net.Conn
}

func newLanes() *lanes {
	return &lanes{insecure.NewCredentials(), new(sync.Mutex), map[ticket]chan<- net.Conn{}}
}

// Clone implements credentials.TransportCredentials: the clone has the same streams.
func (l *lanes) Clone() credentials.TransportCredentials { return l }

// expect registers a stream. One lane at most comes on the channel; forget the ticket
// when the stream ends.
func (l *lanes) expect(t ticket) <-chan net.Conn {
	lane := make(chan net.Conn, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting[t] = lane
	return lane
}

// forget ends what expect began, with a lane that nobody has taken.
func (l *lanes) forget(t ticket, lane <-chan net.Conn) {
	l.mu.Lock()
	delete(l.waiting, t)
	l.mu.Unlock()
	select {
	case conn := <-lane:
		_ = conn.Close() // nobody waits for its bytes
	default:
	}
}

func (l *lanes) give(t ticket, conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	lane, ok := l.waiting[t]
	delete(l.waiting, t)
	if ok {
		lane <- conn // it has room for one
	}
	return ok
}

var errNoStream = errors.New("a lane with a ticket that no stream waits for")

// ServerHandshake implements credentials.TransportCredentials. gRPC has set a deadline
// on the connection, and closes it after an error.
func (l *lanes) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	var begin [len(laneGreeting)]byte
	if _, err := io.ReadFull(conn, begin[:]); err != nil {
		return nil, nil, err
	}
	if string(begin[:]) != laneGreeting {
		return l.TransportCredentials.ServerHandshake(&replayed{Conn: conn, begin: begin[:]})
	}
	var t ticket
	if _, err := io.ReadFull(conn, t[:]); err != nil {
		return nil, nil, err
	}
	if err := errors.Join(prepareLane(conn), conn.SetDeadline(time.Time{})); err != nil {
		return nil, nil, err
	}
	if !l.give(t, conn) {
		return nil, nil, errNoStream
	}
	return nil, nil, credentials.ErrConnDispatched
}

// replayed is a connection of which the first bytes have been read.
type replayed struct {
	net.Conn
	begin []byte
}

func (r *replayed) Read(b []byte) (int, error) {
	if len(r.begin) == 0 {
		return r.Conn.Read(b)
	}
	n := copy(b, r.begin)
	r.begin = r.begin[n:]
	return n, nil
}
