// Package twohosts holds the tests of what a program can tell about the host
// that it runs on. A program that reads all that it can runs on two hosts with
// different names, users and contents; what differs must stand in docs/LEAKS.md,
// with the reason why it stays.
package twohosts
