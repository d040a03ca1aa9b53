// Package integration holds what is true of the repository and of the product
// as a whole: that every claim of docs/THREATMODEL.md has its test, that each
// control's test fails without the control, and what may import what. The tests
// of whole runs are in the packages below.
package integration
