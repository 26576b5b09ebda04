package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
)

// Bounds on the secret: shorter ones can be guessed, and a larger file is not
// the one that was meant.
const (
	minSecret = 16
	maxSecret = 4096
)

// readSecret reads the cluster's secret: the bytes of the file without one line
// end at its end, which editors add.
func readSecret(file string, log *slog.Logger) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	secret, err := readBounded(file, maxSecret)
	if err != nil {
		return nil, err
	}
	secret = bytes.TrimSuffix(bytes.TrimSuffix(secret, []byte("\n")), []byte("\r"))
	if len(secret) < minSecret {
		return nil, fmt.Errorf("%s: the secret is %d bytes long; at least %d are needed (openssl rand -hex 32 makes one)", file, len(secret), minSecret)
	}
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o077 != 0 {
		log.Warn("the secret can be read by others than its owner; chmod 600 it", "file", file, "mode", info.Mode().Perm().String())
	}
	return secret, nil
}
