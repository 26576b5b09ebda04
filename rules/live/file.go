package live

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ringlimit/ringlimit/rules"
)

// The names in a data directory. The file before is what a damaged one is
// replaced by; the damaged one is kept for whoever wants to look into it.
const (
	fileName     = "replicated-rules"
	beforeSuffix = ".before"
	newSuffix    = ".new"
	badSuffix    = ".damaged"
)

// fileFormat is the first word of a file. The checksum follows, then a line end
// and a JSON array.
const fileFormat = "ringlimit-rules/1"

// maxFile bounds what is read: all entries, JSON's escapes and all.
const maxFile = 6*MaxBytes + MaxEntries*256

// File is where a store outlives its node.
type File struct {
	dir  string
	disk disk
}

// disk is what a Save asks of the operating system. Tests have one that fails.
type disk struct {
	rename func(from, to string) error
	sync   func(dir string) error
}

// FileIn is the file in a data directory, which must exist when it is used.
func FileIn(dir string) File {
	return File{dir, disk{os.Rename, syncDir}}
}

// Path is where the file is.
func (f File) Path() string { return filepath.Join(f.dir, fileName) }

// entryJSON is an entry in the file. The body is a string, so that not a byte of
// it changes.
type entryJSON struct {
	Kind  string  `json:"kind"`
	Name  string  `json:"name"`
	Count uint64  `json:"count"`
	Node  string  `json:"node"`
	Body  *string `json:"body"` // null: deleted
}

// Save replaces the file as a whole: whenever the machine stops, the new file or
// the one before is there, complete. An error means that a restart finds what was
// there before, or says that it may not.
func (f File) Save(entries []Entry) error {
	fresh := f.Path() + newSuffix
	if err := writeSynced(fresh, encode(entries)); err != nil {
		return err
	}
	err := f.disk.rename(f.Path(), f.Path()+beforeSuffix)
	replaces := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err = f.disk.rename(fresh, f.Path()); err == nil {
		err = f.disk.sync(f.dir)
	}
	if err == nil {
		return nil
	}
	if undone := f.undo(replaces); undone != nil {
		return fmt.Errorf("%w; what was there before could not be put back for certain (%v): until a later change is kept, a restart may bring this one in force", err, undone)
	}
	return err
}

// undo takes the new file away. A directory that could not be synced has it all the
// same, and the change that its writer was refused would be in force after a restart.
func (f File) undo(replaced bool) (err error) {
	if replaced {
		err = f.disk.rename(f.Path()+beforeSuffix, f.Path())
	} else if err = os.Remove(f.Path()); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, f.disk.sync(f.dir))
}

func writeSynced(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Sync(), file.Close())
}

// syncDir makes renames last.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// errDamaged means that a file is not what was written.
var errDamaged = errors.New("is damaged")

// Load reads the file; one that was never written has no entries. In the place of
// a damaged one it reads the one before, and warns. When both are of no use, or a
// file cannot be read now but perhaps later, the error names the file.
func (f File) Load() (entries []Entry, warnings []string, err error) {
	entries, err = read(f.Path())
	absent := errors.Is(err, fs.ErrNotExist)
	if err == nil || !absent && !errors.Is(err, errDamaged) {
		return entries, nil, err
	}
	before, errBefore := read(f.Path() + beforeSuffix)
	switch {
	case absent && errors.Is(errBefore, fs.ErrNotExist):
		return nil, nil, nil
	case errBefore != nil:
		return nil, nil, fmt.Errorf("%w; the one before it cannot be used either (%v): restore one of them, or delete both to begin without", err, errBefore)
	case absent: // the machine stopped between two renames
		return before, nil, nil
	}
	// Out of the way: the next Save would put it in the place of the good one.
	if moved := f.disk.rename(f.Path(), f.Path()+badSuffix); moved != nil {
		return nil, nil, moved
	}
	return before, []string{fmt.Sprintf("%v; using the one before it, what was written last is lost; the damaged one is kept as %s", err, f.Path()+badSuffix)}, nil
}

func read(path string) ([]Entry, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, err
	}
	entries, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s %w: %w", path, errDamaged, err)
	}
	return entries, nil
}

func encode(entries []Entry) []byte {
	list := make([]entryJSON, len(entries))
	for i, e := range entries {
		list[i] = entryJSON{string(e.Name.Kind), e.Name.Name, e.Version.Count, e.Version.Node, nil}
		if e.Body != nil {
			body := string(e.Body)
			list[i].Body = &body
		}
	}
	var content bytes.Buffer
	enc := json.NewEncoder(&content)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	_ = enc.Encode(list) // strings and numbers only
	return append(header(content.Bytes()), content.Bytes()...)
}

func header(content []byte) []byte {
	return fmt.Appendf(nil, "%s %x\n", fileFormat, sha256.Sum256(content))
}

func decode(data []byte) ([]Entry, error) {
	_, content, _ := bytes.Cut(data, []byte("\n"))
	if !bytes.HasPrefix(data, header(content)) {
		return nil, fmt.Errorf("it does not begin with %s and the SHA-256 of the rest", fileFormat)
	}
	var list []entryJSON
	if err := json.Unmarshal(content, &list); err != nil {
		return nil, err
	}
	entries := make([]Entry, len(list))
	for i, j := range list {
		entries[i] = Entry{Name: rules.EntityName{Kind: rules.EntityKind(j.Kind), Name: j.Name}, Version: Version{j.Count, j.Node}}
		if j.Body != nil {
			entries[i].Body = []byte(*j.Body)
		}
		if err := entries[i].Check(); err != nil {
			return nil, err
		}
	}
	return entries, nil
}
