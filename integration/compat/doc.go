// Package compat runs ordinary programs that break in other sandboxes: each of
// testdata is one such failure, and ends with PASS where it does not occur.
package compat
