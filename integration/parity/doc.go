// Package parity runs one policy twice, by sandglass and, in the words of the
// OCI form, by runc, and compares what a program inside sees. Every difference is
// one where sandglass is stricter, or stands with its reason in testdata: see
// docs/PARITY.md.
package parity
