//go:build !(planted_time && linux)

package planted

// Clock is for builds with AbsoluteTime.
func Clock() int64 { return 0 }
