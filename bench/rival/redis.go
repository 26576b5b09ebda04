package rival

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ringlimit/ringlimit/bench/load"
)

// tokenBucket is a token bucket in Lua: the moment at which the bucket will be full
// again, in microseconds, in one string with an expiry. It does the least that such a
// script can: one GET, one SET.
const tokenBucket = `
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local full = tonumber(redis.call('GET', KEYS[1]) or now)
if full < now then full = now end
local window, each = tonumber(ARGV[1]), tonumber(ARGV[2])
local after = full + each
if after - now > window then
  return {0, math.floor((window - (full - now)) / each), math.ceil(after - now - window)}
end
redis.call('SET', KEYS[1], string.format('%.3f', after), 'PX', math.ceil((after - now) / 1000) + 1)
return {1, math.floor((window - (after - now)) / each), 0}
`

// redisServer is one redis-server without persistence, on loopback TCP as everyone
// else is, and a client.
type redisServer struct {
	limit  Limit
	pool   int
	client *redis.Client
	script *redis.Script
	args   []any
}

func (r *redisServer) Start(ctx context.Context, env *Env) error {
	if env.Redis == "" {
		return fmt.Errorf("redis-server %w", errNotInstalled)
	}
	at, err := freeAddresses(1)
	if err != nil {
		return err
	}
	host, port, _ := strings.Cut(at[0], ":")
	c, err := env.spawn(env.Redis, "--bind", host, "--port", port, "--save", "", "--appendonly", "no",
		"--dir", env.Dir, "--pidfile", filepath.Join(env.Dir, "redis.pid"))
	if err != nil {
		return err
	}
	r.client = redis.NewClient(&redis.Options{
		Addr: at[0], PoolSize: r.pool, MinIdleConns: r.pool, PoolTimeout: deadline,
		ReadTimeout: deadline, WriteTimeout: deadline, DisableIdentity: true,
	})
	r.script = redis.NewScript(tokenBucket)
	window := float64(r.limit.Window.Microseconds())
	r.args = []any{strconv.FormatFloat(window, 'f', -1, 64), strconv.FormatFloat(window/float64(r.limit.Count), 'f', -1, 64)}
	return r.load(ctx, c)
}

// load loads the script, as soon as the server answers.
func (r *redisServer) load(ctx context.Context, c *child) (err error) {
	for range int(patience / (20 * time.Millisecond)) {
		if _, err = r.script.Load(ctx, r.client).Result(); err == nil {
			return nil
		}
		select {
		case <-c.Done():
			return fmt.Errorf("it has ended: %s", tail(c.log))
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return err
}

func (r *redisServer) Stop() { _ = r.client.Close() }

// Used is what Redis says that it has allocated.
func (r *redisServer) Used(ctx context.Context) (int64, error) {
	info, err := r.client.InfoMap(ctx, "memory").Result()
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(info["Memory"]["used_memory"], 10, 64)
}

// admits reads the script's answer.
func admits(cmd *redis.Cmd) (bool, error) {
	values, err := cmd.Int64Slice()
	if err != nil {
		return false, err
	}
	if len(values) != 3 {
		return false, fmt.Errorf("the script answered %v", values)
	}
	return values[0] == 1, nil
}

// redisSingle sends one EVALSHA a check, as most that use it do.
type redisSingle struct{ redisServer }

func (r *redisSingle) Caller(int) load.Ask {
	return one(func(ctx context.Context, key string) (bool, error) {
		return admits(r.client.EvalSha(ctx, r.script.Hash(), []string{key}, r.args...))
	})
}

// redisPipelined gathers the callers' checks into pipelines in the same natural way
// that ringlimit gathers frames: what arrives while two pipelines are unanswered
// shares the next.
type redisPipelined struct {
	redisServer
	mu         sync.Mutex
	open       []*question
	leading    bool
	unanswered int
}

type question struct {
	key     string
	allowed bool
	err     error
	done    chan struct{}
}

// unansweredPipelines and pipelineChecks are those of ringlimit's frames.
const (
	unansweredPipelines = 2
	pipelineChecks      = 512
)

func (r *redisPipelined) Caller(int) load.Ask {
	q := &question{done: make(chan struct{}, 1)}
	return one(func(_ context.Context, key string) (bool, error) {
		q.key, q.err = key, nil
		r.mu.Lock()
		r.open = append(r.open, q)
		leads := r.claim()
		r.mu.Unlock()
		if leads {
			go r.lead() // the caller waits like the others: another may lead after it
		}
		<-q.done
		return q.allowed, q.err
	})
}

// claim makes the caller the leader, if one is wanted. r.mu is held.
func (r *redisPipelined) claim() bool {
	if r.leading || r.unanswered == unansweredPipelines || len(r.open) == 0 {
		return false
	}
	r.leading = true
	return true
}

// lead sends what is open until nothing is.
func (r *redisPipelined) lead() {
	for leads := true; leads; {
		runtime.Gosched()
		r.mu.Lock()
		n := min(len(r.open), pipelineChecks)
		batch := append([]*question(nil), r.open[:n]...)
		r.open = append(r.open[:0], r.open[n:]...)
		r.leading = false
		r.unanswered++
		if r.claim() {
			go r.lead()
		}
		r.mu.Unlock()
		r.send(batch)
		r.mu.Lock()
		r.unanswered--
		leads = r.claim()
		r.mu.Unlock()
	}
}

func (r *redisPipelined) send(batch []*question) {
	cmds := make([]*redis.Cmd, len(batch))
	// The commands have their own errors.
	_, _ = r.client.Pipelined(context.Background(), func(p redis.Pipeliner) error {
		for i, q := range batch {
			cmds[i] = p.EvalSha(context.Background(), r.script.Hash(), []string{q.key}, r.args...)
		}
		return nil
	})
	for i, q := range batch {
		q.allowed, q.err = admits(cmds[i])
		q.done <- struct{}{}
	}
}
