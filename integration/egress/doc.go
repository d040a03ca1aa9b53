// Package egress tests runs with a list of hosts (--allow-host): the real binary,
// on a host of the test's own whose only neighbour is an internet of the test's
// own, where everything that arrives is seen.
package egress
