package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"sandglass/internal/refusal"
	"sandglass/pkg/policy"
)

// The bounds of a list in a description, which is in every prompt of a model's.
const (
	maxNamed     = 12
	maxNameBytes = 100
)

// about is what a model should know of its sandbox: all that the operator gave it
// beside a bare one, by the paths inside. Where that is on the host it never learns.
func (o *options) about() string {
	return fmt.Sprintf("a fresh sandbox, which is thrown away afterwards. The working directory is %s. It sees %s, and nothing else of the host's. It has %s. Limits: %s.",
		named(o.base.Workdir), o.files(), o.network(), o.limitsInWords())
}

func (o *options) files() string {
	list := []string{"the installed programs (read-only)"}
	if o.base.Image != policy.Default().Image {
		list[0] = "an image (read-only)"
	}
	if o.base.Venv != "" {
		list = append(list, "a Python environment (read-only)")
	}
	for _, m := range o.base.Mounts {
		how := " (read-only)"
		if m.Write {
			how = " (writable, and later calls see what is written)"
		}
		list = append(list, named(m.Target)+how)
	}
	return some(list)
}

func (o *options) network() string {
	var list []string
	for _, h := range o.base.Hosts {
		list = append(list, named(h))
	}
	switch {
	case len(list) == 0 && len(o.offered) == 0:
		return "no network"
	case len(list) == 0:
		return "no network but the allow_hosts of a call"
	case len(o.offered) == 0:
		return "no network but TCP to " + some(list)
	}
	return "no network but TCP to " + some(list) + " and to the allow_hosts of a call"
}

// limitsInWords are those of a call without wishes, and how far it may wish.
func (o *options) limitsInWords() string {
	var list []string
	for i := range limitFields {
		f := &limitFields[i]
		s := f.field + " " + f.in(&o.base.Limits)
		if f.value(&o.most) > f.value(&o.base.Limits) {
			s += " (at most " + f.in(&o.most) + ")"
		}
		list = append(list, s)
	}
	return strings.Join(list, ", ")
}

// named is a name of the operator's as one word of a sentence.
func named(s string) string {
	if len(s) > maxNameBytes {
		s = strings.ToValidUTF8(s[:maxNameBytes], "") + "…"
	}
	return refusal.Word(s)
}

func some(list []string) string {
	if more := len(list) - maxNamed; more > 0 {
		list = append(slices.Clone(list[:maxNamed]), fmt.Sprintf("%d more", more))
	}
	return strings.Join(list, ", ")
}

// schemaOf is the schema of a tool's fields, without those that mean nothing here.
func schemaOf[T any](o *options) (*jsonschema.Schema, error) {
	s, err := jsonschema.For[T](nil)
	if err != nil {
		return nil, err
	}
	if o.artifacts == 0 {
		delete(s.Properties, "artifacts")
	}
	for _, h := range o.offered {
		hosts := s.Properties["allow_hosts"]
		hosts.Items.Enum = append(hosts.Items.Enum, h)
	}
	if len(o.offered) == 0 {
		delete(s.Properties, "allow_hosts")
	}
	nullable(s)
	nullable(s.Properties["files"].Items)
	return s, nil
}
