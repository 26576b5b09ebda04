package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ringlimit/ringlimit/rules"
)

// target is the entity that a command is about.
type target struct{ tier, client string }

func (t *target) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.client, "client", "", "the client of this id, in place of a tier")
}

// take reads the tier from the front of the arguments, unless a client was given.
func (t *target) take(cmd *cobra.Command, args []string) (rest []string, err error) {
	if cmd.Flags().Changed("client") {
		if t.client == "" {
			return nil, errors.New("--client: is empty; give the key that the client's requests have")
		}
		return args, validText(map[string]string{"--client": t.client})
	}
	if len(args) == 0 {
		return nil, errors.New("neither a TIER nor a --client is given")
	}
	t.tier = args[0]
	return args[1:], validText(map[string]string{"TIER": t.tier})
}

func (t *target) name() rules.EntityName {
	if t.client != "" {
		return rules.EntityName{Kind: rules.ClientEntity, Name: t.client}
	}
	return rules.EntityName{Kind: rules.TierEntity, Name: t.tier}
}

// pathOf is where the admin API has an entity.
func pathOf(n rules.EntityName) string {
	if n.Kind == rules.ClientEntity {
		return "/v1/clients/" + url.PathEscape(n.Name)
	}
	return "/v1/limits/" + url.PathEscape(n.Name)
}

// state is what `rules get` and `rules put` tell with --output json.
type state struct {
	Entity  string          `json:"entity,omitempty"`
	ETag    string          `json:"etag"`
	Created *bool           `json:"created,omitempty"`
	Body    json.RawMessage `json:"body"`
}

func (c *command) getRules() *cobra.Command {
	var admin adminFlags
	var of target
	cmd := &cobra.Command{
		Use:   "get [TIER | --client ID]",
		Short: "Print the rules in force, of one tier or client or of all",
		Long: `Print the rules in force, of one tier or client or of all.

All rules are printed as a rule file, those of one tier or client as rules put takes
them: JSON, one rule a line. The etag for --if-match goes to stderr.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			node, err := admin.client()
			if err != nil {
				return err
			}
			if len(args) == 0 && !cmd.Flags().Changed("client") {
				return c.showRules(cmd, node, "/v1/limits", "", &limits{})
			}
			if rest, err := of.take(cmd, args); err != nil || len(rest) > 0 {
				return errors.Join(err, tooMany(rest))
			}
			n := of.name()
			return c.showRules(cmd, node, pathOf(n), n.String(), &entry{})
		},
	}
	admin.bind(cmd.Flags())
	of.bind(cmd)
	return cmd
}

func tooMany(rest []string) error {
	if len(rest) == 0 {
		return nil
	}
	return errors.New("both a TIER and a --client are given; give one of them")
}

// showRules prints what a path answers, in text by v, once it is decoded into that.
func (c *command) showRules(cmd *cobra.Command, node *client, path, entity string, v interface{ text(io.Writer) }) error {
	a, err := node.do(cmd.Context(), call{method: "GET", path: path})
	if err != nil {
		return err
	}
	if err := decode(node, a.body, v); err != nil {
		return err
	}
	if c.out.format == text {
		fmt.Fprintln(c.stderr, "etag:", a.etag)
	}
	return c.out.print(state{Entity: entity, ETag: a.etag, Body: a.body}, v.text)
}

// limits is the answer to GET /v1/limits, in its order.
type limits struct {
	Tiers   map[string]entry `json:"tiers"`
	Clients map[string]entry `json:"clients"`
}

type entry struct {
	Tier  string            `json:"tier"`
	Rules []json.RawMessage `json:"rules"`
}

// text writes a rule file, each rule in a line of its own, so that a comparison of
// two files shows which rules differ.
func (l limits) text(w io.Writer) {
	var b bytes.Buffer
	b.WriteString("{\"tiers\": {")
	writeEntries(&b, l.Tiers, func(e entry) { writeRules(&b, e.Rules) })
	b.WriteString("}")
	if len(l.Clients) > 0 {
		b.WriteString(",\n\"clients\": {")
		writeEntries(&b, l.Clients, func(e entry) { e.write(&b) })
		b.WriteString("}")
	}
	b.WriteString("}\n")
	_, _ = b.WriteTo(w) // an error of w, which the command could only tell w
}

// text writes a body as rules put takes it.
func (e entry) text(w io.Writer) {
	var b bytes.Buffer
	e.write(&b)
	b.WriteString("\n")
	_, _ = b.WriteTo(w)
}

func (e entry) write(b *bytes.Buffer) {
	b.WriteString("{")
	if e.Tier != "" {
		b.WriteString(`"tier": ` + quoted(e.Tier) + `, `)
	}
	b.WriteString(`"rules": `)
	writeRules(b, e.Rules)
	b.WriteString("}")
}

func writeEntries(b *bytes.Buffer, entries map[string]entry, write func(entry)) {
	separator := "\n  "
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		b.WriteString(separator + quoted(name) + ": ")
		write(entries[name])
		separator = ",\n  "
	}
}

// quoted is a name in JSON.
func quoted(s string) string {
	b, _ := json.Marshal(s) // cannot fail
	return string(b)
}

func writeRules(b *bytes.Buffer, rules []json.RawMessage) {
	b.WriteString("[")
	separator := "\n    "
	for _, r := range rules {
		b.WriteString(separator)
		b.Write(r)
		separator = ",\n    "
	}
	b.WriteString("]")
}
