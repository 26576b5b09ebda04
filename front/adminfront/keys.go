package adminfront

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/limit"
)

// key answers {"key","partition","owner","tier"} and the members of the verdict that a
// check of cost 1 would get now. Nothing is counted.
func (d *door) key(w http.ResponseWriter, r *http.Request, key string) {
	req, err := locateRequest(key, r.URL)
	var at Location
	if err == nil {
		at, err = d.Cluster.Locate(r.Context(), req)
	}
	if err != nil {
		front.ProblemOf(err).Write(w)
		return
	}
	writeJSON(w, appendLocation(nil, key, &at, time.Now()))
}

// locateRequest reads the query; a parameter that is mistyped would locate
// another counter.
func locateRequest(key string, u *url.URL) (limit.Request, error) {
	req := limit.Request{Key: key, Peek: true}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return req, &limit.InputError{Field: "query", Problem: "cannot be read; write it like ?route=GET+/v1/users&tier=free"}
	}
	for name, values := range query {
		switch value := values[0]; {
		case len(values) > 1:
			return req, &limit.InputError{Field: name, Problem: "is there twice; once would be right"}
		case name == "route":
			req.Route = value
		case name == "tier":
			req.Tier = value
		case name == "ip":
			if req.IP, err = front.ParseIP("ip", value); err != nil {
				return req, err
			}
		default:
			return req, &limit.InputError{Field: fmt.Sprintf("%.60s", name), Problem: "is not a parameter here; there are route, tier, ip"}
		}
	}
	return req, nil
}

func appendLocation(b []byte, key string, at *Location, now time.Time) []byte {
	b, _ = jsontext.AppendQuote(append(b, `{"key":`...), key)
	if at.Verdict.Rule != nil {
		b = strconv.AppendInt(append(b, `,"partition":`...), int64(at.Partition), 10)
		b, _ = jsontext.AppendQuote(append(b, `,"owner":`...), at.Owner)
		if tier := at.Verdict.Rule.Tier; tier != "" { // else the rule is the client's own
			b, _ = jsontext.AppendQuote(append(b, `,"tier":`...), tier)
		}
	}
	start := len(b)
	b = front.AppendVerdict(b, &at.Verdict, now)
	b[start] = ',' // the verdict's members go on in our object
	return b
}
