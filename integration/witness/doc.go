// Package witness looks at live runs through another project's code: the
// library with which containerd manages its containers' groups reads the limits
// back, follows the events, and kills. Two readers of one kernel file can only
// agree when both read it right.
package witness
