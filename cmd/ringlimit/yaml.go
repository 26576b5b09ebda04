package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
	"github.com/spf13/pflag"

	"github.com/ringlimit/ringlimit/front/httpfront"
)

// fromYAML takes the settings of a file: one mapping, whose keys are the flags'
// names with _ for -, and identity. Each error names the file, the line, the
// column and the setting.
func (l *loader) fromYAML(file string, data []byte) error {
	doc, err := parser.ParseBytes(data, 0)
	if err != nil {
		return yamlError(file, "", err)
	}
	if len(doc.Docs) > 1 {
		return fmt.Errorf("%s: holds %d documents; it must hold one", file, len(doc.Docs))
	}
	if len(doc.Docs) == 0 || doc.Docs[0].Body == nil {
		return nil // an empty file: the defaults
	}
	mapping, ok := doc.Docs[0].Body.(ast.MapNode)
	if !ok {
		return fmt.Errorf("%s: must be a mapping of settings, such as `http: 127.0.0.1:7700`", at(file, doc.Docs[0].Body.GetToken()))
	}
	var problems []error
	for entries := mapping.MapRange(); entries.Next(); {
		problems = append(problems, l.fromEntry(file, entries.Key(), entries.Value()))
	}
	return errors.Join(problems...)
}

func (l *loader) fromEntry(file string, key ast.MapKeyNode, value ast.Node) error {
	name := key.GetToken().Value
	if name == "identity" {
		return l.fromIdentity(file, value)
	}
	setting := strings.ReplaceAll(name, "_", "-")
	if strings.Contains(name, "-") || l.flags.Lookup(setting) == nil {
		return fmt.Errorf("%s: %s: unknown setting; the settings are %s", at(file, key.GetToken()), name, l.known())
	}
	origin := at(file, value.GetToken()) + ": " + name
	values, err := scalars(value)
	if err != nil {
		return fmt.Errorf("%s: %w", origin, err)
	}
	if isPath(setting) && len(values) == 1 && values[0] != "" && !filepath.IsAbs(values[0]) {
		values[0] = filepath.Join(filepath.Dir(file), values[0])
	}
	return l.set(setting, origin, values)
}

// isPath knows the settings that name files: in a settings file they are
// relative to that file, so that it means the same wherever the node is started.
func isPath(setting string) bool {
	return setting == "rules" || setting == "data-dir" || setting == "secret-file" || setting == "admin-token-file"
}

// scalars are the texts of a plain value or of a list of plain values, as they
// stand in the file.
func scalars(n ast.Node) ([]string, error) {
	switch n := n.(type) {
	case *ast.NullNode:
		return nil, errors.New("has no value; give it one or leave it out")
	case *ast.SequenceNode:
		var all []string
		for _, entry := range n.Values {
			one, err := scalars(entry)
			if err != nil || len(one) != 1 {
				return nil, errors.New("must be a list of plain values")
			}
			all = append(all, one...)
		}
		return all, nil
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return []string{n.GetToken().Value}, nil
	}
	return nil, errors.New("must be a plain value")
}

func (l *loader) known() string {
	names := []string{"identity"}
	l.flags.VisitAll(func(f *pflag.Flag) { names = append(names, strings.ReplaceAll(f.Name, "-", "_")) })
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// fromIdentity decodes the one setting that is more than a value, and notes
// where its parts stand.
func (l *loader) fromIdentity(file string, n ast.Node) error {
	err := yaml.NodeToValue(n, &l.settings.identity, yaml.Strict())
	if unknown, ok := errors.AsType[*yaml.UnknownFieldError](err); ok {
		return fmt.Errorf("%w; there are %s", yamlError(file, "identity: ", unknown), identityFields())
	}
	if err != nil {
		return yamlError(file, "identity: ", err)
	}
	maps.Copy(l.from, places(file, "identity", n))
	return nil
}

func identityFields() string {
	var names []string
	for f := range reflect.TypeFor[httpfront.IdentityConfig]().Fields() {
		names = append(names, f.Tag.Get("yaml"))
	}
	return strings.Join(names, ", ")
}

// places maps the path of each part of n to where it stands.
func places(file, path string, n ast.Node) origins {
	all := origins{path: at(file, n.GetToken()) + ": " + path}
	switch n := n.(type) {
	case ast.MapNode:
		for entries := n.MapRange(); entries.Next(); {
			maps.Copy(all, places(file, path+"."+entries.Key().GetToken().Value, entries.Value()))
		}
	case *ast.SequenceNode:
		for i, entry := range n.Values {
			maps.Copy(all, places(file, fmt.Sprintf("%s[%d]", path, i), entry))
		}
	}
	return all
}

func at(file string, t *token.Token) string {
	return fmt.Sprintf("%s:%d:%d", file, t.Position.Line, t.Position.Column)
}

// yamlError puts file, line and column before what the YAML library says.
func yamlError(file, field string, err error) error {
	var placed yaml.Error
	if errors.As(err, &placed) {
		return fmt.Errorf("%s: %s%s", at(file, placed.GetToken()), field, placed.GetMessage())
	}
	return fmt.Errorf("%s: %s%w", file, field, err)
}

// readAll reads r whole, or refuses it when it holds more than limit bytes.
func readAll(r io.Reader, name string, limit int) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err == nil && len(data) > limit {
		err = fmt.Errorf("%s: is larger than %d bytes", name, limit)
	}
	return data, err
}
