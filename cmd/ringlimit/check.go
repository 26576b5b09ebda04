package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// checkRequest is the body of POST /v1/check.
type checkRequest struct {
	Key   string `json:"key"`
	Route string `json:"route,omitempty"`
	Tier  string `json:"tier,omitempty"`
	Cost  *int64 `json:"cost,omitempty"`
	IP    string `json:"ip,omitempty"`
}

// verdict is the answer to a check.
type verdict struct {
	Allowed      bool      `json:"allowed"`
	Limit        *int64    `json:"limit"` // absent when no rule matched
	Remaining    int64     `json:"remaining"`
	RetryAfterMS *int64    `json:"retry_after_ms"` // absent when no wait helps
	DelayMS      int64     `json:"delay_ms"`
	ResetAt      time.Time `json:"reset_at"`
	Rule         string    `json:"rule"`
	Source       string    `json:"source"`
	Reason       string    `json:"reason"`
	Limits       []one     `json:"limits"` // of a request with several, or with one in shadow
}

// one is one of several limits in the answer to a check.
type one struct {
	verdict
	Shadow bool `json:"shadow"`
}

func (c *command) check() *cobra.Command {
	var server string
	var cost int64
	var req checkRequest
	cmd := &cobra.Command{
		Use:   "check KEY",
		Short: "Ask a node whether KEY may pass, and charge it",
		Long: `Ask a node whether KEY may pass, and charge it.

Exit codes: 0 allowed, 1 denied, 2 an error.`,
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("cost") {
				req.Cost = &cost // also a wrong one: the node says what is right
			}
			req.Key = args[0]
			return c.askVerdict(cmd, server, req)
		},
	}
	f := cmd.Flags()
	f.StringVar(&req.Route, "route", "", `what is called, such as "POST /v1/charges"`)
	f.StringVar(&req.Tier, "tier", "", "the key's tier (default: the tier named default)")
	f.Int64Var(&cost, "cost", 1, "how much this request takes")
	f.StringVar(&req.IP, "ip", "", "the client's address")
	f.StringVar(&server, "server", "http://127.0.0.1:7700", "HTTP address of a node")
	return cmd
}

func (c *command) askVerdict(cmd *cobra.Command, server string, req checkRequest) error {
	if err := validText(map[string]string{"KEY": req.Key, "--route": req.Route, "--tier": req.Tier, "--ip": req.IP}); err != nil {
		return err
	}
	node, err := newClient("server", server)
	if err != nil {
		return err
	}
	body, err := node.post(cmd.Context(), "/v1/check", req)
	if err != nil {
		return err
	}
	var v verdict
	if err := c.out.show(node, body, &v, func(w io.Writer) { fmt.Fprintln(w, v.text()) }); err != nil {
		return err
	}
	if !v.Allowed {
		return errDenied
	}
	return nil
}

// validText refuses what JSON would replace without a word: the node would then
// count another key.
func validText(arguments map[string]string) error {
	var problems []error
	for name, value := range arguments {
		if !utf8.ValidString(value) {
			problems = append(problems, fmt.Errorf("%s: %q is not valid UTF-8", name, value))
		}
	}
	return errors.Join(problems...)
}

// text says the verdict in a line, and each of several limits in one more.
func (v verdict) text() string {
	var b strings.Builder
	b.WriteString(v.line())
	for _, l := range v.Limits {
		b.WriteString("\n  " + l.text())
	}
	return b.String()
}

func (v verdict) line() string {
	if v.Limit == nil {
		if v.Allowed {
			return "allowed: no rule applies"
		}
		return fmt.Sprintf("denied, %s: rule %s", v.Reason, v.Rule)
	}
	return fmt.Sprintf("%s: %s; rule %s, decided by %s", v.decision(), v.left(), v.Rule, v.Source)
}

func (v verdict) decision() string {
	switch {
	case v.Allowed && v.DelayMS > 0:
		return fmt.Sprintf("allowed, in %v", millis(v.DelayMS))
	case v.Allowed:
		return "allowed"
	case v.RetryAfterMS == nil:
		return "denied, " + v.Reason
	}
	return fmt.Sprintf("denied, retry in %v", millis(*v.RetryAfterMS))
}

func (v verdict) left() string {
	return fmt.Sprintf("%d of %d left, all back at %s", v.Remaining, *v.Limit, v.ResetAt.Format(time.RFC3339Nano))
}

func (l one) text() string {
	name, figures := l.Rule, ""
	if l.Shadow {
		name += " (in shadow)"
	}
	if l.Limit != nil {
		figures = "; " + l.left()
	}
	return name + ": " + l.decision() + figures
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
