package scenario

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxBytes is far above what a scenario needs.
const maxBytes = 64 << 10

// The shape of a file. Texts are read further by compile, so that every error
// can say where it stands.
type (
	file struct {
		About    string    `yaml:"about"`
		Nodes    int       `yaml:"nodes"`
		Needs    int       `yaml:"needs"`
		Start    string    `yaml:"start"`
		Network  string    `yaml:"network"`
		Serve    []string  `yaml:"serve"`
		Files    int       `yaml:"files"`
		Memory   string    `yaml:"cgroup_memory"`
		Patience string    `yaml:"patience"`
		Hot      int       `yaml:"hot"`
		Counters []counter `yaml:"counters"`
		Steps    []step    `yaml:"steps"`
		Bounds   bounds    `yaml:"bounds"`
	}
	counter struct {
		Name       string `yaml:"name"`
		Algorithm  string `yaml:"algorithm"`
		Limit      int64  `yaml:"limit"`
		Window     string `yaml:"window"`
		Burst      int64  `yaml:"burst"`
		OnFailure  string `yaml:"on_failure"`
		Durability string `yaml:"durability"`
		Keys       int    `yaml:"keys"`
		Once       bool   `yaml:"once"`
	}
	step struct {
		Load      *load    `yaml:"load"`
		Fill      string   `yaml:"fill"`
		Flood     string   `yaml:"flood"`
		Wait      string   `yaml:"wait"`
		FreshKeys bool     `yaml:"fresh_keys"`
		Settle    string   `yaml:"settle"`
		Join      *join    `yaml:"join"`
		Kill      string   `yaml:"kill"`
		Terminate *ending  `yaml:"terminate"`
		Pause     *pause   `yaml:"pause"`
		Start     string   `yaml:"start"`
		Restart   *restart `yaml:"restart"`
		Resets    string   `yaml:"resets"`
		Limit     *limit   `yaml:"limit"`
		Cut       *cut     `yaml:"cut"`
		Heal      bool     `yaml:"heal"`
		Attack    *attack  `yaml:"attack"`
		Random    *random  `yaml:"random"`
		Repeat    *repeat  `yaml:"repeat"`
	}
	load struct {
		Steady int `yaml:"steady"`
		Bursty int `yaml:"bursty"`
	}
	join struct {
		Count   int    `yaml:"count"`
		Ready   *bool  `yaml:"ready"`
		Clock   string `yaml:"clock"`
		Alien   bool   `yaml:"alien"`
		Build   string `yaml:"build"`
		Refused string `yaml:"refused"`
	}
	ending struct {
		Nodes string `yaml:"nodes"`
		Wait  string `yaml:"wait"`
	}
	pause struct {
		Node string `yaml:"node"`
		For  string `yaml:"for"`
	}
	restart struct {
		Nodes  string `yaml:"nodes"`
		Signal string `yaml:"signal"`
		Down   string `yaml:"down"`
		Settle string `yaml:"settle"`
	}
	cut struct {
		From    []int  `yaml:"from"`
		To      []int  `yaml:"to"`
		OneWay  bool   `yaml:"one_way"`
		Only    string `yaml:"only"`
		Percent *int   `yaml:"percent"`
		Reject  bool   `yaml:"reject"`
		Delay   string `yaml:"delay"`
		Jitter  string `yaml:"jitter"`
	}
	limit struct {
		Node    string `yaml:"node"`
		Counter string `yaml:"counter"`
		To      int64  `yaml:"to"`
	}
	attack struct {
		Kind        string `yaml:"kind"`
		Nodes       string `yaml:"nodes"`
		Connections int    `yaml:"connections"`
		For         string `yaml:"for"`
	}
	random struct {
		For   string   `yaml:"for"`
		Pause string   `yaml:"pause"`
		Kinds []string `yaml:"kinds"`
	}
	repeat struct {
		Times int    `yaml:"times"`
		Steps []step `yaml:"steps"`
	}
	bounds struct {
		Extra      string `yaml:"extra"`
		Slack      int    `yaml:"slack"`
		Unanswered string `yaml:"unanswered"`
		Homeless   string `yaml:"homeless"`
		Dark       string `yaml:"dark"`
		Exit       string `yaml:"exit"`
		Resets     string `yaml:"resets"`
		Ready      string `yaml:"ready"`
		Thawed     bool   `yaml:"thawed"`
		Growth     string `yaml:"growth"`
	}
)

// Read reads one file. An error names the file, the line and the field of
// everything that is wrong.
func Read(name string, data []byte) (*Scenario, error) {
	if len(data) > maxBytes {
		return nil, fmt.Errorf("%s: is larger than %d bytes", name, maxBytes)
	}
	tree, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, placed(name, err)
	}
	if len(tree.Docs) != 1 || tree.Docs[0].Body == nil {
		return nil, fmt.Errorf("%s: must hold one scenario", name)
	}
	var f file
	if err := yaml.NodeToValue(tree.Docs[0].Body, &f, yaml.Strict()); err != nil {
		return nil, placed(name, err)
	}
	c := &compiler{name: name, root: tree.Docs[0].Body}
	s := c.scenario(&f)
	s.Name = title(name)
	return s, errors.Join(c.problems...)
}

// title is the file's name without folders and ending.
func title(name string) string {
	name = name[strings.LastIndexByte(name, '/')+1:]
	return strings.TrimSuffix(name, ".yaml")
}

// placed puts file and line before what the YAML library says.
func placed(name string, err error) error {
	var at yaml.Error
	if errors.As(err, &at) {
		p := at.GetToken().Position
		return fmt.Errorf("%s:%d:%d: %s", name, p.Line, p.Column, at.GetMessage())
	}
	return fmt.Errorf("%s: %w", name, err)
}

// find is the node at a path such as $.steps[3].join, or the nearest one above
// it, for the error's sake.
func find(root ast.Node, path string) ast.Node {
	for path != "$" {
		if p, err := yaml.PathString(path); err == nil {
			if n, err := p.FilterNode(root); err == nil && n != nil {
				return n
			}
		}
		path = path[:max(1, strings.LastIndexAny(path, ".["))]
	}
	return root
}
