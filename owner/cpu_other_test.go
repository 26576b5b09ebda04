//go:build !linux

package owner

import "time"

func threadCPU() int64  { return time.Now().UnixNano() }
func processCPU() int64 { return time.Now().UnixNano() }
