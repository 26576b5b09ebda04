package main

import (
	"encoding/json"
	"testing"
)

// Several limits follow the verdict, a line each.
func TestTextOfSeveralLimits(t *testing.T) {
	for name, test := range map[string]struct{ answer, want string }{
		"one": {
			`{"allowed":true,"limit":3,"remaining":2,"retry_after_ms":0,"reset_at":"2025-02-01T12:01:00.000Z","rule":"global","source":"owner"}`,
			`allowed: 2 of 3 left, all back at 2025-02-01T12:01:00Z; rule global, decided by owner`},
		"several": {
			`{"allowed":false,"limit":5,"remaining":0,"retry_after_ms":60000,"reset_at":"2025-02-01T12:01:00.000Z","rule":"hourly","source":"owner","limits":[` +
				`{"rule":"hourly","allowed":false,"limit":5,"remaining":0,"retry_after_ms":60000,"reset_at":"2025-02-01T12:01:00.000Z"},` +
				`{"rule":"daily","allowed":true,"limit":100,"remaining":95,"retry_after_ms":0,"reset_at":"2025-02-01T19:00:00.000Z"},` +
				`{"rule":"trial","allowed":false,"reason":"missing_dimension","shadow":true}]}`,
			"denied, retry in 1m0s: 0 of 5 left, all back at 2025-02-01T12:01:00Z; rule hourly, decided by owner\n" +
				"  hourly: denied, retry in 1m0s; 0 of 5 left, all back at 2025-02-01T12:01:00Z\n" +
				"  daily: allowed; 95 of 100 left, all back at 2025-02-01T19:00:00Z\n" +
				"  trial (in shadow): denied, missing_dimension"},
		"in shadow only": {
			`{"allowed":true,"limits":[{"rule":"trial","allowed":true,"limit":1,"remaining":0,"retry_after_ms":0,"reset_at":"2025-02-01T12:01:00.000Z","shadow":true}]}`,
			"allowed: no rule applies\n  trial (in shadow): allowed; 0 of 1 left, all back at 2025-02-01T12:01:00Z"},
		"queued": {
			`{"allowed":true,"limit":3,"remaining":2,"retry_after_ms":0,"reset_at":"2025-02-01T12:01:00.000Z","rule":"jobs","source":"owner","delay_ms":1500}`,
			`allowed, in 1.5s: 2 of 3 left, all back at 2025-02-01T12:01:00Z; rule jobs, decided by owner`},
	} {
		t.Run(name, func(t *testing.T) {
			var v verdict
			if err := json.Unmarshal([]byte(test.answer), &v); err != nil {
				t.Fatal(err)
			}
			if got := v.text(); got != test.want {
				t.Errorf("\n%s, want\n%s", got, test.want)
			}
		})
	}
}
