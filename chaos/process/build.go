package process

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// command is the program that chaos is about.
const command = "github.com/ringlimit/ringlimit/cmd/ringlimit"

// Build builds the program into the folder dir, with build tags if there are
// any, and returns its path. The working directory must be in the repository.
func Build(ctx context.Context, dir, tags string) (string, error) {
	binary := filepath.Join(dir, strings.TrimSuffix("ringlimit-"+tags, "-"))
	out, err := exec.CommandContext(ctx, "go", "build", "-tags", tags, "-o", binary, command).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("cannot build %s: %w\n%s", command, err, out)
	}
	return binary, nil
}
