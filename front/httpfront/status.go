package httpfront

import (
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ringlimit/ringlimit/front"
)

const limitsPath = "/v1/limits"

func (s *server) limits(w http.ResponseWriter, _ *http.Request) {
	s.writeJSON(w, http.StatusOK, s.Limits.LimitsJSON())
}

func (s *server) tier(w http.ResponseWriter, r *http.Request) {
	tier := strings.TrimPrefix(r.URL.Path, limitsPath+"/")
	body, ok := s.Limits.TierJSON(tier)
	if !ok {
		front.NewProblem(http.StatusNotFound, "tier", "there is no such tier; "+limitsPath+" lists all").Write(w)
		return
	}
	s.writeJSON(w, http.StatusOK, body)
}

// livez depends on nothing but this process: a restart heals no peer.
func (s *server) livez(w http.ResponseWriter, _ *http.Request) {
	s.writeJSON(w, http.StatusOK, []byte(`{"status":"ok"}`))
}

func (s *server) readyz(w http.ResponseWriter, r *http.Request) {
	err := s.Ready()
	if err == nil {
		s.livez(w, r)
		return
	}
	body := []byte(`{"status":"unavailable","reason":`)
	body, _ = jsontext.AppendQuote(body, err.Error())
	s.writeJSON(w, http.StatusServiceUnavailable, append(body, '}'))
}

func (s *server) writeJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header()["Content-Type"] = s.contentType
	w.WriteHeader(status)
	w.Write(body)
}
