package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
)

// licences are those of what the binary may contain. A module that is not here
// fails the release: somebody has to read its licence, and NOTICE has to have it.
var licences = map[string]string{
	"std":              "BSD-3-Clause",
	"golang.org/x/sys": "BSD-3-Clause",
	"golang.org/x/net": "BSD-3-Clause",

	// Of sandglass-image alone, which links zstd and what that needs: all but
	// xxhash are BSD.
	"github.com/klauspost/compress": "BSD-3-Clause AND MIT",

	// Of sandglass-mcp alone: the protocol's SDK, whose authors are changing from MIT
	// to Apache-2.0, and what that needs.
	"github.com/modelcontextprotocol/go-sdk": "Apache-2.0 AND MIT",
	"github.com/google/jsonschema-go":        "MIT",
	"github.com/segmentio/asm":               "MIT",
	"github.com/segmentio/encoding":          "MIT",
	"github.com/yosida95/uritemplate/v3":     "BSD-3-Clause",
	"golang.org/x/oauth2":                    "BSD-3-Clause",
	"golang.org/x/sync":                      "BSD-3-Clause",
	"golang.org/x/time":                      "BSD-3-Clause",
}

const ownLicence = "Apache-2.0"

// The parts of CycloneDX 1.5 that are used.
type (
	bom struct {
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		Serial       string       `json:"serialNumber"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	}
	component struct {
		Type       string     `json:"type"`
		Ref        string     `json:"bom-ref"`
		Name       string     `json:"name"`
		Version    string     `json:"version"`
		Hashes     []hash     `json:"hashes,omitempty"`
		Licences   []licence  `json:"licenses"`
		PURL       string     `json:"purl,omitempty"`
		Properties []property `json:"properties,omitempty"`
	}
	hash struct {
		Alg     string `json:"alg"`
		Content string `json:"content"`
	}
	licence struct {
		Licence struct {
			ID string `json:"id"`
		} `json:"license"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn,omitempty"`
	}
)

// contents says what a binary is made of, in the words of CycloneDX. All of it is
// read from the binary itself, by the list that the linker has put there.
func (r *release) contents(name, bin string, data []byte) ([]byte, error) {
	info, err := buildinfo.ReadFile(bin)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	own := component{Type: "application", Ref: name, Name: name, Version: r.version, Licences: licenced(ownLicence),
		Hashes: []hash{{"SHA-256", fmt.Sprintf("%x", sum)}}}
	for _, s := range info.Settings {
		own.Properties = append(own.Properties, property{"go:build:" + s.Key, s.Value})
	}
	b := bom{Format: "CycloneDX", Spec: "1.5", Version: 1,
		Serial: "urn:uuid:" + uuid(sum)}
	b.Metadata = metadata{r.when.Format(time.RFC3339), own}
	root := dependency{Ref: own.Ref}
	for _, m := range append([]*debug.Module{{Path: "std", Version: info.GoVersion}}, info.Deps...) {
		if m.Replace != nil {
			m = m.Replace
		}
		id := licences[m.Path]
		if id == "" {
			return nil, fmt.Errorf("the binary contains %s, whose licence packaging/dist does not know", m.Path)
		}
		c := component{Type: "library", Ref: m.Path, Name: m.Path, Version: m.Version, Licences: licenced(id), PURL: "pkg:golang/" + m.Path + "@" + m.Version}
		if m.Sum != "" {
			c.Properties = []property{{"go:sum", m.Sum}}
		}
		b.Components = append(b.Components, c)
		root.DependsOn = append(root.DependsOn, c.Ref)
		b.Dependencies = append(b.Dependencies, dependency{Ref: c.Ref})
	}
	b.Dependencies = append([]dependency{root}, b.Dependencies...)
	text, err := json.MarshalIndent(b, "", "  ")
	return append(text, '\n'), err
}

// uuid is a number for each binary, always the same for the same: version 8 has
// no clock in it.
func uuid(sum [sha256.Size]byte) string {
	sum[6] = sum[6]&0x0f | 0x80
	sum[8] = sum[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

func licenced(ids string) (list []licence) {
	for id := range strings.SplitSeq(ids, " AND ") {
		var l licence
		l.Licence.ID = id
		list = append(list, l)
	}
	return list
}
