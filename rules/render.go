package rules

import (
	"bytes"
	"encoding/json"

	"github.com/ringlimit/ringlimit/limit"
)

// ruleJSON is a rule with the rule file's field names, defaults filled in but
// for those of an extra. A field that the rule does not have is absent.
type ruleJSON struct {
	Name         string   `json:"name"`
	RoutePattern string   `json:"route_pattern,omitempty"`
	By           []string `json:"by"`
	Priority     int32    `json:"priority,omitempty"`
	Unlimited    bool     `json:"unlimited,omitempty"`
	*countJSON
}

// countJSON is what a rule says that counts.
type countJSON struct {
	Algorithm   string `json:"algorithm"`
	Limit       int64  `json:"limit"`
	Window      string `json:"window"`
	Timezone    string `json:"timezone,omitempty"`
	Burst       *int64 `json:"burst,omitempty"`
	Delay       *bool  `json:"delay,omitempty"`
	OnFailure   string `json:"on_failure"`
	Durability  string `json:"durability"`
	OnMissing   string `json:"on_missing"`
	RetryJitter string `json:"retry_jitter"`
	Shadow      bool   `json:"shadow,omitempty"`
}

// entityJSON is a tier or a client.
type entityJSON struct {
	Tier  string     `json:"tier,omitempty"`
	Rules []ruleJSON `json:"rules"`
}

// render is the canonical body.
func (ed *entityDraft) render() []byte {
	body := entityJSON{Tier: ed.tier, Rules: []ruleJSON{}}
	for _, d := range ed.rules {
		body.Rules = append(body.Rules, d.render())
	}
	return encode(body)
}

// render is the rule as GET /v1/limits shows it.
func (d *draft) render() ruleJSON {
	j := ruleJSON{Name: d.name, RoutePattern: d.pattern, Priority: d.priority, Unlimited: d.unlimited}
	for _, dim := range d.by {
		j.By = append(j.By, dim.label)
	}
	if !d.unlimited {
		j.countJSON = d.renderCount()
	}
	return j
}

func (d *draft) renderCount() *countJSON {
	j := &countJSON{
		Algorithm: d.spec.Algorithm.String(), Limit: d.spec.Limit, Window: d.window, Timezone: d.spec.Timezone,
		OnFailure: d.onFailure.String(), Durability: d.spec.Durability.String(), OnMissing: onMissing[d.deny],
		RetryJitter: retryJitter[d.jitter], Shadow: d.shadow,
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

// LimitsJSON is the body of GET /v1/limits:
// {"tiers":{"free":{"rules":[…]},…},"clients":{"cust_42":{"tier":"free","rules":[…]},…}},
// without clients when there are none. It is made at the first call. The bytes
// are shared; do not change them.
func (s *Set) LimitsJSON() []byte {
	s.limits.Do(func() {
		all := struct {
			Tiers   map[string]json.RawMessage `json:"tiers"`
			Clients map[string]json.RawMessage `json:"clients,omitempty"`
		}{bodies(s.tiers), bodies(s.clients)}
		s.json = encode(all)
	})
	return s.json
}

func bodies(entities map[string]entity) map[string]json.RawMessage {
	all := make(map[string]json.RawMessage, len(entities))
	for name, e := range entities {
		all[name] = e.body
	}
	return all
}

// TierJSON is the body of GET /v1/limits/{tier}: {"rules":[…]}. It reports
// false for a tier that does not exist. The bytes are shared; do not change
// them.
func (s *Set) TierJSON(tier string) ([]byte, bool) { return s.Entity(EntityName{TierEntity, tier}) }

// ClientJSON is the body of GET /v1/clients/{client}: {"tier":…,"rules":[…]}.
// It reports false for a client that has no entry. The bytes are shared; do not
// change them.
func (s *Set) ClientJSON(id string) ([]byte, bool) { return s.Entity(EntityName{ClientEntity, id}) }
