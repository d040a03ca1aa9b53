package sys

import "slices"

// Only leaves out the calls of every other name: doctor tries each kind alone,
// so that one that fails does not hide the next.
func (c *Calls) Only(names ...string) *Calls {
	c.list = slices.DeleteFunc(c.list, func(k Call) bool { return !slices.Contains(names, k.Name) })
	return c
}
