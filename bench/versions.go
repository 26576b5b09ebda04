package main

import (
	"context"
	"maps"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
)

// compared are the modules whose versions matter to who reads a run.
func compared() []string {
	return []string{
		"github.com/gubernator-io/gubernator/v2", "github.com/redis/go-redis/v9", "github.com/throttled/throttled/v2",
		"github.com/sethvargo/go-limiter", "golang.org/x/time", "google.golang.org/grpc",
	}
}

// versions is what takes part, as it was built into this program, and Redis.
func versions(ctx context.Context, redis string) map[string]string {
	all := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if slices.Contains(compared(), m.Path) {
				all[m.Path] = m.Version
			}
		}
	}
	if redis == "" {
		return all
	}
	if out, err := exec.CommandContext(ctx, redis, "--version").Output(); err == nil {
		all["redis-server"] = redisVersion(string(out))
	}
	return all
}

// redisVersion is 7.0.15 of "Redis server v=7.0.15 sha=…".
func redisVersion(line string) string {
	_, rest, _ := strings.Cut(line, "v=")
	version, _, _ := strings.Cut(rest, " ")
	return version
}

// listed is the versions in one line.
func listed(all map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		short := strings.TrimSuffix(strings.TrimSuffix(name, "/v2"), "/v9")
		parts = append(parts, short[strings.LastIndexByte(short, '/')+1:]+" "+all[name])
	}
	return strings.Join(parts, ", ")
}
