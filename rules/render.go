package rules

import (
	"bytes"
	"encoding/json"

	"github.com/ringlimit/ringlimit/limit"
)

// ruleJSON is a rule with the rule file's field names, defaults filled in. A
// field that the algorithm does not have is absent.
type ruleJSON struct {
	Name         string   `json:"name"`
	RoutePattern string   `json:"route_pattern,omitempty"`
	By           []string `json:"by"`
	Algorithm    string   `json:"algorithm"`
	Limit        int64    `json:"limit"`
	Window       string   `json:"window"`
	Timezone     string   `json:"timezone,omitempty"`
	Burst        *int64   `json:"burst,omitempty"`
	Delay        *bool    `json:"delay,omitempty"`
	OnFailure    string   `json:"on_failure"`
	Durability   string   `json:"durability"`
	OnMissing    string   `json:"on_missing"`
	RetryJitter  string   `json:"retry_jitter"`
}

type tierJSON struct {
	Rules []ruleJSON `json:"rules"`
}

// render is the rule as GET /v1/limits shows it.
func (d *draft) render() ruleJSON {
	j := ruleJSON{
		Name: d.name, RoutePattern: d.pattern, Algorithm: d.spec.Algorithm.String(),
		Limit: d.spec.Limit, Window: d.window, Timezone: d.spec.Timezone,
		OnFailure: d.onFailure.String(), Durability: d.spec.Durability.String(), OnMissing: onMissing[d.deny], RetryJitter: retryJitter[d.jitter],
	}
	for _, dim := range d.by {
		j.By = append(j.By, dim.label)
	}
	if d.spec.Calendar != limit.NoCalendar && j.Timezone == "" {
		j.Timezone = "UTC"
	}
	switch d.spec.Algorithm {
	case limit.TokenBucket:
		j.Burst = &d.spec.Burst
		if d.spec.Burst == 0 {
			j.Burst = &d.spec.Limit
		}
	case limit.LeakyBucket:
		delay := !d.spec.Police
		j.Burst, j.Delay = &d.spec.Burst, &delay
	}
	return j
}

// encode writes v without escaping <, > and &, which are common in patterns
// and harmless in an application/json answer.
func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // cannot fail: strings, numbers and booleans
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// LimitsJSON is the body of GET /v1/limits: {"tiers":{"free":{"rules":[…]},…}}.
// The bytes are shared; do not change them.
func (s *Set) LimitsJSON() []byte {
	if s.json == nil {
		return []byte(`{"tiers":{}}`)
	}
	return s.json
}

// TierJSON is the body of GET /v1/limits/{tier}: {"rules":[…]}. It reports
// false for a tier that does not exist. The bytes are shared; do not change
// them.
func (s *Set) TierJSON(tier string) ([]byte, bool) {
	t, ok := s.tiers[tier]
	if !ok {
		return nil, false
	}
	return t.json, true
}
