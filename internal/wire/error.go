package wire

import "google.golang.org/grpc/codes"

// Error is the message of that name: why a check has no verdict.
type Error struct {
	Code    codes.Code
	Message string
	Field   string
}

func (e *Error) Error() string { return e.Message }

func appendError(b []byte, e *Error) []byte {
	b = appendNumber(b, one, uint64(e.Code))
	b = appendString(b, two, e.Message)
	return appendString(b, three, e.Field)
}

func readError(s string) (*Error, error) {
	var e Error
	for len(s) > 0 {
		var f field
		var err error
		if s, err = f.cut(s); err != nil {
			return nil, err
		}
		switch f.tag {
		case one | kindVarint:
			e.Code = codes.Code(f.number)
		case two | kindBytes:
			e.Message = f.bytes
		case three | kindBytes:
			e.Field = f.bytes
		}
	}
	return &e, nil
}
