package live

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ringlimit/ringlimit/rules"
)

func keptIn(t *testing.T, dir string) (*Store, []string) {
	t.Helper()
	s := NewStore("a")
	warnings, err := s.KeepIn(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s, warnings
}

func TestAStoreOutlivesItsNode(t *testing.T) {
	dir := t.TempDir()
	s, _ := keptIn(t, dir)
	if _, err := s.Seed(file(t, map[string]int{"free": 1, "paid": 2})); err != nil {
		t.Fatal(err)
	}
	put(t, s, tier("free"), limits(5))
	put(t, s, client("\x00<&\u2028\""), []byte(`{"tier":"free"}`))
	remove(t, s, tier("paid"))
	other := NewStore("b")
	put(t, other, tier("more"), limits(3))
	copyAll(t, s, other)
	again, warnings := keptIn(t, dir)
	if again.Summary() != s.Summary() || shown(again.Rules()) != shown(s.Rules()) || warnings != nil {
		t.Errorf("%+v, %+v, %v\n%s\n%s", s.Summary(), again.Summary(), warnings, shown(s.Rules()), shown(again.Rules()))
	}
	if e := put(t, again, tier("free"), limits(6)); e.Version.Count != s.Summary().Version+1 {
		t.Errorf("it counts on from %d, not from %d", e.Version.Count-1, s.Summary().Version)
	}
}

func TestDamagedFileIsNamedAndTheOneBeforeIsUsed(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"cut":     func(path string) error { return os.Truncate(path, 100) },
		"empty":   func(path string) error { return os.Truncate(path, 0) },
		"flipped": flip,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, _ := keptIn(t, dir)
			put(t, s, tier("free"), limits(1))
			put(t, s, tier("free"), limits(2))
			if err := damage(FileIn(dir).Path()); err != nil {
				t.Fatal(err)
			}
			again, warnings := keptIn(t, dir)
			if len(warnings) != 1 || !strings.Contains(warnings[0], FileIn(dir).Path()+" is damaged") {
				t.Errorf("warnings %q", warnings)
			}
			if !strings.Contains(shown(again.Rules()), `"limit":1`) {
				t.Errorf("in force:\n%s", shown(again.Rules()))
			}
			// The damaged file must not become the one before.
			put(t, again, tier("free"), limits(3))
			if err := damage(FileIn(dir).Path()); err != nil {
				t.Fatal(err)
			}
			if third, _ := keptIn(t, dir); !strings.Contains(shown(third.Rules()), `"limit":1`) {
				t.Errorf("in force after another damage:\n%s", shown(third.Rules()))
			}
			if _, err := os.Stat(FileIn(dir).Path() + badSuffix); err != nil {
				t.Error(err)
			}
		})
	}
}

func flip(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	data[len(data)/2] ^= 1
	return os.WriteFile(path, data, 0o600)
}

func TestTwoDamagedFilesAreAnError(t *testing.T) {
	dir := t.TempDir()
	s, _ := keptIn(t, dir)
	put(t, s, tier("free"), limits(1))
	if err := flip(FileIn(dir).Path()); err != nil { // and none before it
		t.Fatal(err)
	}
	if _, err := NewStore("a").KeepIn(dir); err == nil || !strings.Contains(err.Error(), FileIn(dir).Path()+" is damaged") {
		t.Errorf("a damaged file alone: %v", err)
	}
	if _, err := os.Stat(FileIn(dir).Path()); err != nil {
		t.Errorf("it was moved: %v", err)
	}
}

// A file that cannot be read is not a damaged one: it may hold what was written last.
func TestAFileThatCannotBeReadStaysWhereItIs(t *testing.T) {
	dir := t.TempDir()
	s, _ := keptIn(t, dir)
	put(t, s, tier("free"), limits(1))
	put(t, s, tier("free"), limits(2))
	path := FileIn(dir).Path()
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil { // even root cannot read it
		t.Fatal(err)
	}
	if _, err := NewStore("a").KeepIn(dir); err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "damaged") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("it was moved: %v", err)
	}
}

// Whenever the machine stops during a Save, Load finds what was before or what
// was saved. The steps of Save are played up to each of them.
func TestSaveMayStopAnywhere(t *testing.T) {
	before := []Entry{{tier("free"), Version{1, "a"}, limits(1)}}
	after := []Entry{{tier("free"), Version{2, "a"}, limits(2)}}
	for step := range 5 {
		f := FileIn(t.TempDir())
		if err := f.Save(before); err != nil {
			t.Fatal(err)
		}
		want := before
		if step >= 1 {
			os.WriteFile(f.Path()+newSuffix, encode(after)[:40], 0o600)
		}
		if step >= 2 {
			os.WriteFile(f.Path()+newSuffix, encode(after), 0o600)
		}
		if step >= 3 {
			os.Rename(f.Path(), f.Path()+beforeSuffix)
		}
		if step >= 4 {
			os.Rename(f.Path()+newSuffix, f.Path())
			want = after
		}
		got, warnings, err := f.Load()
		if err != nil || warnings != nil || len(got) != 1 || !bytes.Equal(got[0].Body, want[0].Body) {
			t.Errorf("stopped after step %d: %v, %v, %v", step, got, warnings, err)
		}
		if err := f.Save(after); err != nil {
			t.Errorf("step %d: %v", step, err)
		}
		if got, _, err = f.Load(); err != nil || !bytes.Equal(got[0].Body, after[0].Body) {
			t.Errorf("step %d, saved again: %v, %v", step, got, err)
		}
	}
}

// What cannot be written is not in force: it would be gone after a restart.
func TestAWriteThatCannotBeKeptIsRefused(t *testing.T) {
	s := NewStore("a")
	full := errors.New("no space left")
	s.keep = func([]Entry) error { return full }
	if _, _, err := s.Put(tier("free"), limits(1), Precondition{}); !errors.Is(err, full) || !s.Empty() {
		t.Errorf("%v, %+v", err, s.Summary())
	}
	other := NewStore("b")
	put(t, other, tier("free"), limits(1))
	entries, _ := other.Newer(nil)
	n, warnings, err := s.Merge(entries) // the cluster has it
	if n != 1 || err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], full.Error()) {
		t.Errorf("%d, %q, %v", n, warnings, err)
	}
}

// failing is a file whose n-th step of the disk fails, from 1: before it has done
// anything, or when all is done. Those after it fail too if it is broken.
func failing(dir string, n int, done, broken bool) File {
	f, steps := FileIn(dir), 0
	step := func(do func() error) error {
		steps++
		if steps != n && !(broken && steps > n) {
			return do()
		}
		if done {
			_ = do()
		}
		return errDisk
	}
	real := f.disk
	f.disk.rename = func(from, to string) error { return step(func() error { return real.rename(from, to) }) }
	f.disk.sync = func(dir string) error { return step(func() error { return real.sync(dir) }) }
	return f
}

var errDisk = errors.New("the disk does not answer")

// A write that was refused is not in force after a restart either, wherever the
// disk has failed, and the next one that is kept is.
func TestARefusedWriteStaysRefusedAfterARestart(t *testing.T) {
	const steps = 3 // two renames and the sync of the directory
	for n := 1; n <= steps; n++ {
		for _, done := range []bool{false, true} {
			for _, exists := range []bool{true, false} {
				dir, want := t.TempDir(), ""
				s, _ := keptIn(t, dir)
				if exists {
					put(t, s, tier("free"), limits(1))
					want = shown(s.Rules())
				}
				s.keep = failing(dir, n, done, false).Save
				_, _, err := s.Put(tier("free"), limits(2), Precondition{})
				if !errors.Is(err, errDisk) || strings.Contains(err.Error(), "restart") || shown(s.Rules()) != want {
					t.Errorf("step %d, done %v: %v\n%s", n, done, err, shown(s.Rules()))
				}
				if again, warnings := keptIn(t, dir); shown(again.Rules()) != want || warnings != nil {
					t.Errorf("step %d, done %v, exists %v: after a restart %q\n%s", n, done, exists, warnings, shown(again.Rules()))
				}
				s.keep = FileIn(dir).Save
				put(t, s, tier("free"), limits(3))
				if again, _ := keptIn(t, dir); again.Summary() != s.Summary() || shown(again.Rules()) != shown(s.Rules()) {
					t.Errorf("step %d, done %v: the next write is lost\n%s", n, done, shown(again.Rules()))
				}
			}
		}
	}
}

// What cannot be put back is said.
func TestADiskThatStaysBroken(t *testing.T) {
	dir := t.TempDir()
	s, _ := keptIn(t, dir)
	put(t, s, tier("free"), limits(1))
	s.keep = failing(dir, 3, false, true).Save
	_, _, err := s.Put(tier("free"), limits(2), Precondition{})
	if !errors.Is(err, errDisk) || !strings.Contains(err.Error(), "a restart may bring this one in force") {
		t.Errorf("error %v", err)
	}
	if !strings.Contains(shown(s.Rules()), `"limit":1,`) {
		t.Errorf("in force:\n%s", shown(s.Rules()))
	}
}

func TestNoDirectory(t *testing.T) {
	f := FileIn(t.TempDir() + "/absent")
	if err := f.Save(nil); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestFileRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := rapid.SliceOf(rapid.Custom(func(t *rapid.T) Entry {
			e := Entry{
				rules.EntityName{Kind: rules.EntityKind(rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "kind")), Name: rapid.StringN(1, 20, 512).Draw(t, "name")},
				Version{rapid.Uint64Max(maxCount).Draw(t, "count"), rapid.StringN(1, 8, 128).Draw(t, "node")}, nil,
			}
			if rapid.Bool().Draw(t, "alive") {
				e.Body = []byte(rapid.StringN(1, -1, -1).Draw(t, "body"))
			}
			return e
		})).Draw(t, "entries")
		got, err := decode(encode(entries))
		if err != nil || len(got) != len(entries) {
			t.Fatal(err)
		}
		for i, e := range entries {
			if got[i].Stamp() != e.Stamp() || !bytes.Equal(got[i].Body, e.Body) {
				t.Fatalf("%+v became %+v", e, got[i])
			}
		}
	})
}

// What decodes is right, and encodes to the same.
func FuzzFile(f *testing.F) {
	f.Add([]byte(`[{"kind":"tier","name":"free","count":1,"node":"a","body":"{}"},{"kind":"client","name":"x","count":2,"node":"b","body":null}]`))
	f.Add([]byte("[]"))
	f.Fuzz(func(t *testing.T, content []byte) {
		entries, err := decode(append(header(content), content...))
		if err != nil {
			return
		}
		again, err := decode(encode(entries))
		if err != nil || len(again) != len(entries) {
			t.Fatalf("%q: %v", content, err)
		}
		if _, err := decode(content); err == nil {
			t.Fatal("read without a checksum")
		}
	})
}
