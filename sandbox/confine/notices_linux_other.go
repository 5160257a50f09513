//go:build linux && !amd64

package confine

// legacyCalls are watched calls that newer architectures do not have.
var legacyCalls []watchedCall
