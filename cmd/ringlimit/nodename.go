package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// nodeName is what the node is called in the ring: the name it was given, else
// the id that its data folder keeps, else its host and gossip port. All three
// outlive a restart, which a random name would not: its counters would move.
func (s *settings) nodeName(from origins, hostname func() (string, error)) (string, error) {
	switch {
	case s.name != "":
		return s.name, nil
	case s.dataDir != "":
		id, err := keptID(s.dataDir)
		if err != nil {
			err = from.place("data-dir", err)
		}
		return id, err
	}
	host, err := hostname()
	if err != nil {
		return "", from.wrong("name", "the host has no name to take instead: %w", err)
	}
	_, port, err := net.SplitHostPort(s.gossip)
	if err != nil || port == "0" {
		return "", from.wrong("name", "is needed where --gossip has no fixed port; or give a --data-dir to keep one in")
	}
	return host + "-" + port, nil
}

// idFile holds the id of the node that a data folder belongs to.
const idFile = "node-id"

// keptID reads the id of a data folder, or makes one for a new folder. A
// damaged file is an error: with another id the node would be another node.
func keptID(dir string) (string, error) {
	file := filepath.Join(dir, idFile)
	data, err := readBounded(file, 64)
	if errors.Is(err, fs.ErrNotExist) {
		return newID(dir, file)
	}
	if err != nil {
		return "", err
	}
	id := strings.TrimSuffix(string(data), "\n")
	if ok, _ := regexp.MatchString(`^node-[0-9a-f]{16}$`, id); !ok {
		return "", fmt.Errorf("%s: is damaged: it holds %q, not node- and 16 hexadecimal digits; restore it, give --name, or delete it to begin as a new node", file, data)
	}
	return id, nil
}

func newID(dir, file string) (string, error) {
	var random [8]byte
	rand.Read(random[:]) // never fails: see crypto/rand
	id := "node-" + hex.EncodeToString(random[:])
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return id, writeWhole(file, []byte(id+"\n"))
}

// writeWhole writes a file so that a crash leaves all of it or nothing: next to
// its place, to the disk, then renamed.
func writeWhole(file string, data []byte) (err error) {
	dir := filepath.Dir(file)
	f, err := os.CreateTemp(dir, filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(data); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), file); err != nil {
		return err
	}
	return syncDir(dir)
}

// syncDir makes a rename in dir survive a power cut.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
