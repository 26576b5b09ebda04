package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// loader fills in settings from several sources, later ones over earlier ones.
type loader struct {
	settings *settings
	flags    *pflag.FlagSet // bound to settings
	from     origins
}

// load reads the settings of a node: a flag counts more than an environment
// variable, that more than the file, that more than the default. flags is the
// parsed command line; file may be empty. The error holds all that is wrong; the
// origins are for what later turns out to be.
func load(flags *pflag.FlagSet, env lookup, file string) (*settings, origins, error) {
	l := &loader{defaultSettings(), pflag.NewFlagSet("settings", pflag.ContinueOnError), origins{}}
	l.settings.bind(l.flags)
	err := errors.Join(l.fromFile(file), l.fromEnvironment(env), l.fromFlags(flags))
	return l.settings, l.from, errors.Join(err, l.settings.validate(l.from))
}

// fromEnvironment takes each setting's variable. An empty one counts as absent:
// that is how deployment files commonly leave a value out.
func (l *loader) fromEnvironment(env lookup) error {
	var problems []error
	l.flags.VisitAll(func(f *pflag.Flag) {
		name := variable(f.Name)
		value, ok := env(name)
		if !ok || value == "" {
			return
		}
		values := []string{value}
		if _, isList := f.Value.(pflag.SliceValue); isList {
			values = strings.Split(value, ",")
		}
		problems = append(problems, l.set(f.Name, name, values))
	})
	return errors.Join(problems...)
}

// fromFlags takes the flags that stand on the command line. Their values have
// been parsed once and cannot fail.
func (l *loader) fromFlags(flags *pflag.FlagSet) error {
	var problems []error
	flags.Visit(func(f *pflag.Flag) {
		if l.flags.Lookup(f.Name) == nil {
			return // not a setting: --config
		}
		values := []string{f.Value.String()}
		if list, isList := f.Value.(pflag.SliceValue); isList {
			values = list.GetSlice()
		}
		problems = append(problems, l.set(f.Name, "--"+f.Name, values))
	})
	return errors.Join(problems...)
}

// set gives a setting its value and notes where it came from.
func (l *loader) set(setting, origin string, values []string) error {
	l.from[setting] = origin
	value := l.flags.Lookup(setting).Value
	list, isList := value.(pflag.SliceValue)
	old := value.String()
	switch {
	case isList:
		for i := range values {
			values[i] = strings.TrimSpace(values[i])
		}
		return list.Replace(values)
	case len(values) != 1:
		return l.from.wrong(setting, "takes one value, not a list")
	case value.Set(values[0]) != nil:
		_ = value.Set(old) // pflag leaves 0 behind, which would be complained of too
		return l.from.wrong(setting, "%q is not %s", values[0], kindOf(value.Type()))
	}
	return nil
}

// kindOf says what a flag of this type takes.
func kindOf(flagType string) string {
	switch flagType {
	case "format":
		return "text or json"
	case "size":
		return "a size; write it like 512MiB"
	case "duration":
		return "a duration; write it like 50ms"
	case "bool":
		return "true or false"
	case "int", "int64":
		return "a whole number"
	case "stringToString":
		return "a list of name=value; write it like region=eu"
	case "stringSlice":
		return "a list; write it like 10.0.0.1:7703,10.0.0.2:7703"
	}
	return "a " + flagType
}

// variable is the environment variable of a setting.
func variable(setting string) string {
	return "RINGLIMIT_" + strings.ToUpper(strings.ReplaceAll(setting, "-", "_"))
}

// maxSettings bounds the settings file; the YAML parser is slow on deep nesting.
const maxSettings = 64 << 10

func (l *loader) fromFile(name string) error {
	if name == "" {
		return nil
	}
	data, err := readBounded(name, maxSettings)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	return l.fromYAML(name, data)
}

// readBounded reads a file of at most limit bytes.
func readBounded(name string, limit int) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, name, limit)
}
