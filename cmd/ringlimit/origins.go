package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"

	"github.com/ringlimit/ringlimit"
	"github.com/ringlimit/ringlimit/front/httpfront"
	"github.com/ringlimit/ringlimit/rules"
)

// origins tells where a setting came from, as errors show it: its place in the
// settings file, its environment variable, or its flag.
type origins map[string]string

// place says where the setting came from that err is about.
func (o origins) place(setting string, err error) error {
	return fmt.Errorf("%s: %w", cmp.Or(o[setting], "--"+setting), err)
}

func (o origins) wrong(setting, problem string, args ...any) error {
	return o.place(setting, fmt.Errorf(problem, args...))
}

// unopened places the error of an address that was not to be had.
func (o origins) unopened(setting string, err error) error {
	// By its text: memberlist keeps nothing else of an error.
	if strings.HasSuffix(err.Error(), syscall.EADDRINUSE.Error()) {
		err = fmt.Errorf("%w; give a free address, or end what uses this one", err)
	}
	return o.place(setting, err)
}

// started places what ringlimit.Start says is wrong.
func (o origins) started(err error) error {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		var placed []error
		for _, err := range all.Unwrap() {
			placed = append(placed, o.started(err))
		}
		return errors.Join(placed...)
	}
	var wrong *ringlimit.ConfigError
	if !errors.As(err, &wrong) {
		return err
	}
	setting := wrong.Field
	if setting == "secret" {
		setting = "secret-file"
	}
	return o.unopened(setting, wrong.Err)
}

// openRules reads the rule file of a node. What is wrong in it has a place of its
// own.
func (o origins) openRules(name string, log *slog.Logger) (*ruleFile, *rules.Set, error) {
	file, set, err := openRules(name, log)
	var wrong *rules.Error
	if err == nil || errors.As(err, &wrong) {
		return file, set, err
	}
	return nil, nil, o.place("rules", err)
}

// identity places an error of the identity settings in the file.
func (o origins) identity(err error) error {
	var setting *httpfront.SettingError
	if errors.As(err, &setting) {
		if origin, ok := o[setting.Field]; ok {
			return fmt.Errorf("%s: %s", origin, setting.Problem)
		}
	}
	return err
}
