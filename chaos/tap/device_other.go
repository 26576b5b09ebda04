//go:build !linux

package tap

import (
	"errors"
	"os"
)

// Open is possible on Linux only.
func Open(string) (*os.File, error) { return nil, errors.ErrUnsupported }
