// Package hosts makes a test machine into hosts that lack something, as their
// administrators would, and holds sandglass to it there: what it refuses, in
// which words, and that what it says to paste helps. docs/HOSTS.md has the list.
package hosts
