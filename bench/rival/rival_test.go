package rival

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/bench/load"
)

// limited is what each contender without processes of its own has to be able to do:
// to admit what is below the limit, and to refuse what is above.
func limited(t *testing.T, r Rival, env *Env) {
	t.Helper()
	if err := r.Start(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	defer r.Stop()
	for key := range 3 {
		admitted := 0
		for i := range 9 {
			n, err := r.Caller(i)(t.Context(), []string{load.Name(key)})
			if err != nil {
				t.Fatal(err)
			}
			admitted += n
		}
		if admitted != 6 {
			t.Errorf("%s: 9 checks of a limit of 6, %d admitted", load.Name(key), admitted)
		}
	}
	if sized, ok := r.(Sized); ok {
		if used, err := sized.Used(t.Context()); err != nil || used < 1000 {
			t.Errorf("uses %d bytes, %v", used, err)
		}
	}
}

func TestLimitsInProcess(t *testing.T) {
	for _, e := range All() {
		if e.Kind == InProcess && !e.Refused {
			t.Run(e.Name, func(t *testing.T) { limited(t, e.make(Limit{6, 24 * time.Hour}), nil) })
		}
	}
}

// Both ends of a hop are in this process, and each check takes it.
func TestInside(t *testing.T) {
	for _, e := range All() {
		if e.Kind != Inside {
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			env := &Env{}
			r := e.ForLoad()
			if err := r.Start(t.Context(), env); err != nil {
				t.Fatal(err)
			}
			if n, err := r.Caller(0)(t.Context(), []string{load.Name(0), load.Name(1)}); n != 2 || err != nil || len(env.PIDs()) > 0 {
				t.Errorf("%d of 2 admitted, %v, by %v", n, err, env.PIDs())
			}
			r.Stop()
			if _, err := r.Caller(0)(t.Context(), []string{load.Name(0)}); err == nil {
				t.Error("it is stopped, and answers")
			}
		})
	}
}

// What a process is told by its environment it is told here, too, and it is the
// process that is counted: nothing stands between.
func TestVariables(t *testing.T) {
	env := &Env{Dir: t.TempDir(), Variables: []string{"GOMAXPROCS=1", "GOGC=50"}}
	defer env.Close()
	c, err := env.spawn("sh", "-c", `echo "$$ $GOMAXPROCS $GOGC"; exec sleep 60`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.line(t.Context(), "")
	if want := fmt.Sprintf("%d 1 50", c.PID()); got != want || err != nil {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

func TestLimitsRedis(t *testing.T) {
	redis, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("no redis-server")
	}
	for _, e := range All() {
		if e.Name == "redis" || e.Name == "redis-pipelined" {
			t.Run(e.Name, func(t *testing.T) {
				env := &Env{Dir: t.TempDir(), Redis: redis}
				defer env.Close()
				limited(t, e.make(Limit{6, 24 * time.Hour}), env)
			})
		}
	}
}

func TestNoRedis(t *testing.T) {
	err := (&redisSingle{}).Start(context.Background(), &Env{})
	if err == nil || err.Error() != "redis-server is not installed" {
		t.Errorf("%v", err)
	}
}

// Names are unique, cells can be read, and each entry makes a rival of its own.
func TestList(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range All() {
		if e.Name == "" || e.What == "" || e.Kind == "" || seen[e.Name] {
			t.Errorf("%+v: a name that is not its own, or nothing said", e)
		}
		seen[e.Name] = true
		if e.ForLoad() == e.ForLoad() {
			t.Errorf("%s: one rival for all", e.Name)
		}
		for _, c := range slices.Concat(e.Only, e.Also) {
			if _, err := load.ParseSpread(c.Keys); err != nil || c.Callers < 1 {
				t.Errorf("%s: %+v, %v", e.Name, c, err)
			}
		}
		if _, sized := e.ForMemory().(Sized); e.Memory && !sized {
			t.Errorf("%s cannot tell what it takes", e.Name)
		}
	}
}
