// Package tty tests what a person at a terminal gets of run -t and -it: the real
// binary on a pseudo-terminal of the test's own, as root and as an ordinary user.
package tty
