// Package image tries images with the real binaries: imported, run, and hostile
// ones refused or contained, as root and as an ordinary user.
package image
