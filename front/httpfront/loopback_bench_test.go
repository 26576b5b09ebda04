package httpfront

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"testing"

	"github.com/ringlimit/ringlimit/limit"
)

// BenchmarkLoopback is the door over one connection against a floor: a handler of
// net/http that reads as much and writes a constant answer of the same size.
// floor/ratio compares time, and allocs-beyond/op is what the door allocates that the
// floor does not.
func BenchmarkLoopback(b *testing.B) {
	h := New(Config{Checker: says{limit.Verdict{Allowed: true, Rule: perMinute(b, 100), Source: limit.SourceOwner, Limit: 100, Remaining: 99}}})
	for name, ask := range map[string]string{
		"check":     posting("/v1/check", benchBody),
		"authorize": "GET /v1/authorize HTTP/1.1\r\nHost: a\r\nX-API-Key: cust_42\r\nX-Forwarded-Method: POST\r\nX-Forwarded-Uri: /v1/charges\r\n\r\n",
		"checks":    posting("/v1/checks", distinct(100)),
	} {
		b.Run(name, func(b *testing.B) {
			door := dial(b, h, ask)
			floor := dial(b, constant(door()), ask)
			door()
			floor()
			ours := mallocs(func() {
				for b.Loop() {
					door()
				}
			})
			theirs := mallocs(func() { b.ReportMetric(ratio(b, func() { floor() }), "floor/ratio") })
			b.ReportMetric((ours-theirs)/float64(b.N), "allocs-beyond/op")
		})
	}
}

func posting(path, body string) string {
	return "POST " + path + " HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

// constant answers with a body of n bytes.
func constant(n int64) http.HandlerFunc {
	body, kind := make([]byte, n), []string{"application/json"}
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header()["Content-Type"] = kind
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write(body)
	}
}

// dial opens a connection to h. What it returns asks once, and says how long the body
// of the answer was.
func dial(b *testing.B, h http.Handler, ask string) func() int64 {
	server := httptest.NewServer(h)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close(); server.Close() })
	in, out := bufio.NewReader(conn), []byte(ask)
	return func() int64 {
		if _, err := conn.Write(out); err != nil {
			b.Fatal(err)
		}
		answer, err := http.ReadResponse(in, nil)
		if err != nil || answer.StatusCode != http.StatusOK {
			b.Fatal(answer, err)
		}
		n, err := io.Copy(io.Discard, answer.Body)
		if err != nil {
			b.Fatal(err)
		}
		return n
	}
}

func mallocs(f func()) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs - before.Mallocs)
}
