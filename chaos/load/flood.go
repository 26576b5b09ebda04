package load

import (
	"context"
	"fmt"
)

// floodBatch is as much as /v1/checks takes.
const floodBatch = 1_000

// Flood asks once for each key, in batches, one after the other. What became of
// them is in the history.
func (c *Clients) Flood(ctx context.Context, keys []uint32) error {
	for from := 0; from < len(keys); from += floodBatch {
		c.batch(ctx, keys[from:min(from+floodBatch, len(keys))])
		if ctx.Err() != nil {
			return fmt.Errorf("%d of %d keys were asked for in time", from, len(keys))
		}
	}
	return nil
}
