//go:build !cgo

package sys

// LinksC says whether this program links C, which one that is built without cgo
// does not.
func LinksC() bool { return false }
