package unpack

import (
	"runtime"
	"strconv"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/image"
)

// descriptor names a part by its digest (OCI image specification, descriptor.md).
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Platform    *platform         `json:"platform"`
	Annotations map[string]string `json:"annotations"`
}

type platform struct {
	OS           string `json:"os"`
	Architecture string `json:"architecture"`
}

// manifest is an image's, or an index of several.
type manifest struct {
	MediaType string       `json:"mediaType"`
	Manifests []descriptor `json:"manifests"`
	Config    descriptor   `json:"config"`
	Layers    []descriptor `json:"layers"`
}

// settings are an image's own words about itself.
type settings struct {
	OS           string `json:"os"`
	Architecture string `json:"architecture"`
	Config       struct {
		Env        []string
		Entrypoint []string
		Cmd        []string
		WorkingDir string
		User       string
	} `json:"config"`
	RootFS struct {
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// maxIndex is how many indexes may lead to an image. A cycle cannot have right
// digests, and one that has none ends here.
const maxIndex = 4

// oci reads a layout.
func (u *unpacker) oci(from files) error {
	var m manifest
	if err := u.document(from, "index.json", "", &m); err != nil {
		return err
	}
	what := "index.json"
	for range maxIndex {
		if len(m.Manifests) > 0 && (m.Config.Digest != "" || len(m.Layers) > 0) { // CVE-2021-41190: two readers would see two images
			return refusal.Newf("%s is a list of images and an image at once", what)
		}
		d, err := choose(m.Manifests)
		if err != nil {
			return err
		}
		if name := d.Annotations["org.opencontainers.image.ref.name"]; name != "" {
			u.out.Called = append(u.out.Called, name)
		}
		m, what = manifest{}, refusal.Word(cut(d.Digest))
		if err := u.described(from, d, &m); err != nil {
			return err
		}
		if len(m.Manifests) == 0 {
			return u.ociImage(from, &m)
		}
	}
	return refusal.Newf("index.json: %d lists lead to each other and to no image", maxIndex)
}

// described reads a document by its descriptor.
func (u *unpacker) described(from files, d descriptor, into any) error {
	name, err := blob(d.Digest)
	if err != nil {
		return err
	}
	return u.document(from, name, d.Digest, into)
}

// choose finds the one image of a list that is for this machine.
func choose(list []descriptor) (descriptor, error) {
	var fit, rest []descriptor
	var others []string
	for _, d := range list {
		switch p := d.Platform; {
		case d.Annotations["vnd.docker.reference.type"] != "": // a note about another one
		case p == nil:
			rest = append(rest, d)
		case p.OS == runtime.GOOS && p.Architecture == runtime.GOARCH:
			fit = append(fit, d)
		default:
			others = append(others, refusal.Word(p.OS+"/"+p.Architecture))
		}
	}
	if len(fit) == 0 {
		fit = rest
	}
	switch {
	case len(fit) == 1:
		return fit[0], nil
	case len(fit) > 1:
		return descriptor{}, refusal.Newf("it holds %d images", len(fit)).Hint("docker save ONE-IMAGE > FILE   # one at a time")
	case len(others) > 0:
		return descriptor{}, refusal.Newf("it is for %s, and this machine is %s/%s", strings.Join(others[:min(len(others), 8)], ", "), runtime.GOOS, runtime.GOARCH).
			Hint("get the image for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	return descriptor{}, refusal.Newf("it holds no image")
}

// flat reads a directory of one image.
func (u *unpacker) flat(from files) error {
	var m manifest
	if err := u.document(from, "manifest.json", "", &m); err != nil {
		return err
	}
	if len(m.Manifests) > 0 {
		return refusal.Newf("manifest.json: it holds a list of images").Hint("podman save --format oci-archive IMAGE > FILE   # one image")
	}
	return u.ociImage(from, &m)
}

func (u *unpacker) ociImage(from files, m *manifest) error {
	var s settings
	if err := u.described(from, m.Config, &s); err != nil {
		return err
	}
	var names, digests []string
	for _, l := range m.Layers {
		name, err := blob(l.Digest)
		if err != nil {
			return err
		}
		names, digests = append(names, name), append(digests, l.Digest)
	}
	return u.layers(from, &s, names, digests)
}

// layers unpacks an image's layers, the lowest first. digests may be nil.
func (u *unpacker) layers(from files, s *settings, names, digests []string) error {
	if int64(len(names)) > u.limits.Layers {
		return refusal.Newf("%d layers, more than %d", len(names), u.limits.Layers).Hint("--max-layers %d", len(names))
	}
	if len(names) != len(s.RootFS.DiffIDs) {
		return refusal.Newf("%d layers, and the settings name %d", len(names), len(s.RootFS.DiffIDs))
	}
	if err := u.settings(s); err != nil {
		return err
	}
	for i, name := range names {
		if !image.IsDigest(s.RootFS.DiffIDs[i]) {
			return refusal.Newf("the settings: %s is no digest of SHA-256", refusal.Word(cut(s.RootFS.DiffIDs[i])))
		}
		digest := ""
		if digests != nil {
			digest = digests[i]
		}
		if err := u.packedLayer(from, name, digest, s.RootFS.DiffIDs[i]); err != nil {
			return refusal.Within("layer "+strconv.Itoa(i+1), err)
		}
	}
	return nil
}

// saved is one image of a docker-save archive's manifest.json.
type saved struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// docker reads an archive of docker save.
func (u *unpacker) docker(from files) error {
	var list []saved
	if err := u.document(from, "manifest.json", "", &list); err != nil {
		return err
	}
	if len(list) != 1 {
		return refusal.Newf("manifest.json: it holds %d images", len(list)).Hint("docker save ONE-IMAGE > FILE   # one at a time")
	}
	u.out.Called = list[0].RepoTags
	var s settings
	if err := u.document(from, list[0].Config, configDigest(list[0].Config), &s); err != nil {
		return err
	}
	return u.layers(from, &s, list[0].Layers, nil)
}

// configDigest is the digest that a docker-save archive's name for its settings
// says, "" for none.
func configDigest(name string) string {
	hex := strings.TrimSuffix(name[strings.LastIndexByte(name, '/')+1:], ".json")
	if d := image.DigestPrefix + hex; image.IsDigest(d) {
		return d
	}
	return ""
}
