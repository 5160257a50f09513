package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
)

// tarFiles are the entries of a tar archive by name.
func tarFiles(t *testing.T, text []byte) (headers map[string]*tar.Header, contents map[string][]byte) {
	t.Helper()
	headers, contents = map[string]*tar.Header{}, map[string][]byte{}
	if !bytes.HasSuffix(text, make([]byte, 1024)) { // which Go can do without, and others cannot
		t.Error("the archive has no end")
	}
	for r := tar.NewReader(bytes.NewReader(text)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return headers, contents
		}
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(commitTime) || headers[h.Name] != nil {
			t.Errorf("%s: %+v", h.Name, h)
		}
		headers[h.Name] = h
		if contents[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// An image is what the specification of its layout says: every blob is named by its digest,
// and its sizes are right; and it runs as nobody, from a root that need not be written.
func TestImage(t *testing.T) {
	r := &release{version: "1.2.3", commit: "abc", time: commitTime}
	p := platform{"linux", "arm64"}
	programs := []entry{{"codemode-bridge", 0o755, []byte("bridge")}, {"codemode-worker", 0o755, []byte("worker")}}
	papers := []entry{{"LICENSE", 0o644, []byte("licence")}}
	name, text, err := r.image(p, programs, papers)
	if err != nil || name != "codemode-bridge-1.2.3-oci-arm64.tar" {
		t.Fatal(name, err)
	}
	if _, again, err := r.image(p, programs, papers); err != nil || !bytes.Equal(text, again) {
		t.Error("it is not the same bytes again")
	}
	_, files := tarFiles(t, text)
	decode := func(text []byte, into any) {
		t.Helper()
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	blob := func(d descriptor) []byte {
		t.Helper()
		sum, ok := strings.CutPrefix(d.Digest, "sha256:")
		content := files["blobs/sha256/"+sum]
		if !ok || digest(content) != sum || len(content) != d.Size {
			t.Fatalf("the blob of %+v has %d bytes", d, len(content))
		}
		return content
	}
	var layout struct{ ImageLayoutVersion string }
	decode(files["oci-layout"], &layout)
	var index struct {
		SchemaVersion int
		Manifests     []descriptor
	}
	decode(files["index.json"], &index)
	if layout.ImageLayoutVersion != "1.0.0" || index.SchemaVersion != 2 || len(index.Manifests) != 1 || index.Manifests[0].Platform["architecture"] != "arm64" {
		t.Fatalf("%+v %+v", layout, index)
	}
	var manifest struct {
		SchemaVersion int
		MediaType     string
		Config        descriptor
		Layers        []descriptor
	}
	decode(blob(index.Manifests[0]), &manifest)
	if manifest.SchemaVersion != 2 || manifest.MediaType != index.Manifests[0].MediaType || len(manifest.Layers) != 1 {
		t.Fatalf("%+v", manifest)
	}
	var config struct {
		OS, Architecture string
		Config           struct {
			User            string
			Entrypoint, Cmd []string
			Env             []string
			Volumes         map[string]any
		}
		Rootfs struct {
			Type    string
			DiffIDs []string `json:"diff_ids"`
		}
		History []any
	}
	decode(blob(manifest.Config), &config)
	if c := config.Config; config.OS != "linux" || config.Architecture != "arm64" || c.User != "65532:65532" || c.Volumes[imageState] == nil ||
		!slices.Contains(c.Env, "HOME="+imageState) || !slices.Equal(append(c.Entrypoint, c.Cmd...), []string{"/usr/local/bin/codemode-bridge", "serve"}) {
		t.Errorf("%+v", config)
	}
	z, err := gzip.NewReader(bytes.NewReader(blob(manifest.Layers[0])))
	if err != nil {
		t.Fatal(err)
	}
	root, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if len(config.History) != 1 || config.Rootfs.Type != "layers" || !slices.Equal(config.Rootfs.DiffIDs, []string{"sha256:" + digest(root)}) {
		t.Errorf("%+v", config.Rootfs)
	}
	headers, contents := tarFiles(t, root)
	for name, h := range headers {
		mine := name == imageState[1:]+"/" || name == imageCache[1:]+"/"
		if (h.Uid == nobody) != mine || h.Uid != h.Gid || h.Mode&0o022 != 0 && name != "tmp/" || h.Mode&0o6000 != 0 {
			t.Errorf("%s: mode %o, of %d", name, h.Mode, h.Uid)
		}
		if above := strings.TrimSuffix(name, "/"); strings.Contains(above, "/") && headers[above[:strings.LastIndex(above, "/")+1]] == nil {
			t.Errorf("%s comes without its folder", name)
		}
	}
	if string(contents["usr/local/bin/codemode-bridge"]) != "bridge" || string(contents["usr/local/bin/codemode-worker"]) != "worker" || headers["usr/local/bin/codemode-worker"].Mode != 0o755 {
		t.Error("the programs are not in it")
	}
	var older []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	decode(files["manifest.json"], &older)
	if len(older) != 1 || "blobs/sha256/"+strings.TrimPrefix(manifest.Config.Digest, "sha256:") != older[0].Config || files[older[0].Layers[0]] == nil || older[0].RepoTags[0] != "codemode-bridge:1.2.3" {
		t.Errorf("%+v", older)
	}
}
