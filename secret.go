package ringlimit

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/ringlimit/ringlimit/owner"
)

// minSecret is the least length of a cluster secret in bytes. Gossip is
// encrypted with a key derived from it, so a guessable one opens the cluster.
const minSecret = 16

// keys are what the cluster's secret is used for, each derived by HKDF
// (RFC 5869) under its own label, so that none gives away another.
type keys struct {
	gossip []byte     // AES-256 key of the gossip
	token  string     // what nodes show each other on the peer port
	seed   owner.Seed // of the counters' hash
}

// deriveKeys needs every node to hold the same secret. Without a secret the
// gossip is plain, the peer port open and the hash predictable.
func deriveKeys(secret []byte) (keys, error) {
	if len(secret) == 0 {
		return keys{}, nil
	}
	if len(secret) < minSecret {
		return keys{}, wrong("secret", "is %d bytes long; at least %d are needed", len(secret), minSecret)
	}
	derive := func(label string) []byte {
		key, err := hkdf.Key(sha256.New, secret, nil, "ringlimit "+label, 32)
		if err != nil {
			panic(err) // only for more than 255 hashes of output
		}
		return key
	}
	return keys{
		gossip: derive("gossip"),
		token:  hex.EncodeToString(derive("peer token")),
		seed:   owner.Seed(binary.BigEndian.Uint64(derive("counter seed"))),
	}, nil
}
