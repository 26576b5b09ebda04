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

// readSecret reads the cluster's secret.
func readSecret(file string, log *slog.Logger) ([]byte, error) {
	return readKept(file, "secret", log)
}

// readToken reads the token of an admin API. It travels in a header, so that it
// must be of characters that a bearer token may have (RFC 6750, section 2.1).
func readToken(file string, log *slog.Logger) ([]byte, error) {
	token, err := readKept(file, "token", log)
	odd := func(c rune) bool { return c <= ' ' || c > '~' }
	if err == nil && bytes.ContainsFunc(token, odd) {
		err = fmt.Errorf("%s: the token must be one line of printable ASCII without spaces (openssl rand -hex 32 makes one)", file)
	}
	return token, err
}

// readKept reads what must not be known to others: the bytes of the file without
// one line end at its end, which editors add.
func readKept(file, what string, log *slog.Logger) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	secret, err := readBounded(file, maxSecret)
	if err != nil {
		return nil, err
	}
	secret = bytes.TrimSuffix(bytes.TrimSuffix(secret, []byte("\n")), []byte("\r"))
	if len(secret) < minSecret {
		return nil, fmt.Errorf("%s: the %s is %d bytes long; at least %d are needed (openssl rand -hex 32 makes one)", file, what, len(secret), minSecret)
	}
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o077 != 0 {
		log.Warn("the "+what+" can be read by others than its owner; chmod 600 it", "file", file, "mode", info.Mode().Perm().String())
	}
	return secret, nil
}
