// Package doctor makes hosts that lack something, out of this one, and holds
// sandglass doctor to them: what it says of each layer, and that a run agrees.
package doctor
