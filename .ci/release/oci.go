package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"time"
)

// An image is unpacked by container engines; nothing of one is needed to make it. It is a
// tar archive in the layout of the Open Container Initiative, with a manifest.json beside
// for engines that know Docker's older archive alone. Its root has both programs, and the
// folders that they write to, which belong to a user of no rights; there is no shell, and
// nothing else.

// nobody is the user that the programs of an image run as, and its group.
const nobody = 65532

// The folders of an image that the programs write to; the state is to be a volume.
const (
	imageState = "/var/lib/codemode-bridge"
	imageCache = "/var/cache/codemode-bridge"
	imageTmp   = "/tmp"
)

// A part is a file or a folder of an image.
type part struct {
	name string // without a slash at its beginning; a folder's ends with one
	mode int64
	user int
	text []byte
}

// image is the archive for one processor, and its name.
func (r *release) image(p platform, programs, papers []entry) (string, []byte, error) {
	parts := []part{
		{"dev/", 0o755, 0, nil}, // engines mount these three also where the root is read-only
		{"etc/", 0o755, 0, nil}, {"etc/codemode-bridge/", 0o755, 0, nil},
		{"etc/group", 0o644, 0, []byte("root:x:0:\ncodemode-bridge:x:65532:\n")},
		{"etc/passwd", 0o644, 0, []byte("root:x:0:0:root:/:/sbin/nologin\ncodemode-bridge:x:65532:65532:codemode-bridge:" + imageState + ":/sbin/nologin\n")},
		{"proc/", 0o555, 0, nil}, {"sys/", 0o555, 0, nil}, {"tmp/", 0o1777, 0, nil},
		{"usr/", 0o755, 0, nil}, {"usr/local/", 0o755, 0, nil}, {"usr/local/bin/", 0o755, 0, nil},
	}
	for _, e := range programs {
		parts = append(parts, part{"usr/local/bin/" + e.name, 0o755, 0, e.text})
	}
	parts = append(parts, part{"usr/share/", 0o755, 0, nil}, part{"usr/share/doc/", 0o755, 0, nil}, part{"usr/share/doc/codemode-bridge/", 0o755, 0, nil})
	for _, e := range papers {
		parts = append(parts, part{"usr/share/doc/codemode-bridge/" + e.name, 0o644, 0, e.text})
	}
	parts = append(parts, part{"var/", 0o755, 0, nil}, part{"var/cache/", 0o755, 0, nil}, part{imageCache[1:] + "/", 0o700, nobody, nil},
		part{"var/lib/", 0o755, 0, nil}, part{imageState[1:] + "/", 0o700, nobody, nil})
	text, err := r.layout(p, parts)
	return fmt.Sprintf("codemode-bridge-%s-oci-%s.tar", r.version, p.arch), text, err
}

// archived is a tar archive of parts, in their order.
func archived(parts []part, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, p := range parts {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: p.name, Size: int64(len(p.text)), Mode: p.mode, Uid: p.user, Gid: p.user, ModTime: at, Format: tar.FormatUSTAR}
		if p.name[len(p.name)-1] == '/' {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(p.text); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil { // which writes the end
		return nil, err
	}
	return out.Bytes(), nil
}

// A descriptor names a blob.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    map[string]string `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// blobs are the contents of an image, by digest.
type blobs struct{ parts []part }

func (b *blobs) add(kind string, text []byte) descriptor {
	is := descriptor{MediaType: "application/vnd.oci.image." + kind, Digest: "sha256:" + digest(text), Size: len(text)}
	b.parts = append(b.parts, part{"blobs/sha256/" + digest(text), 0o644, 0, text})
	return is
}

// layout makes an image whose root has the parts, as one layer.
func (r *release) layout(p platform, parts []part) ([]byte, error) {
	root, err := archived(parts, r.time)
	if err != nil {
		return nil, err
	}
	var layer bytes.Buffer
	packed := gzip.NewWriter(&layer) // whose header has no name and no time
	if _, err := packed.Write(root); err != nil {
		return nil, err
	}
	if err := packed.Close(); err != nil {
		return nil, err
	}
	about := map[string]string{
		"org.opencontainers.image.title":    "codemode-bridge",
		"org.opencontainers.image.version":  r.version,
		"org.opencontainers.image.revision": r.commit,
		"org.opencontainers.image.created":  r.time.Format(time.RFC3339),
	}
	var all blobs
	first := all.add("layer.v1.tar+gzip", layer.Bytes())
	config, err := json.Marshal(map[string]any{
		"created": r.time.Format(time.RFC3339), "os": p.os, "architecture": p.arch,
		"config": map[string]any{
			"User": fmt.Sprintf("%d:%d", nobody, nobody), "Entrypoint": []string{"/usr/local/bin/codemode-bridge"}, "Cmd": []string{"serve"},
			"WorkingDir": imageState, "StopSignal": "SIGTERM", "Labels": about,
			"Env":          []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + imageState, "XDG_STATE_HOME=/var/lib", "XDG_CACHE_HOME=/var/cache", "XDG_CONFIG_HOME=/etc", "TMPDIR=" + imageTmp},
			"ExposedPorts": map[string]any{"7420/tcp": map[string]any{}, "7421/tcp": map[string]any{}},
			"Volumes":      map[string]any{imageState: map[string]any{}},
		},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest(root)}},
		"history": []map[string]string{{"created": r.time.Format(time.RFC3339), "created_by": "make release"}},
	})
	if err != nil {
		return nil, err
	}
	described := all.add("config.v1+json", config)
	manifest, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": described, "layers": []descriptor{first}, "annotations": about})
	if err != nil {
		return nil, err
	}
	entry := all.add("manifest.v1+json", manifest)
	entry.Platform = map[string]string{"os": p.os, "architecture": p.arch}
	entry.Annotations = map[string]string{"org.opencontainers.image.ref.name": r.version, "io.containerd.image.name": "docker.io/library/codemode-bridge:" + r.version}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []descriptor{entry}})
	if err != nil {
		return nil, err
	}
	older, err := json.Marshal([]map[string]any{{"Config": all.parts[1].name, "RepoTags": []string{"codemode-bridge:" + r.version}, "Layers": []string{all.parts[0].name}}})
	if err != nil {
		return nil, err
	}
	whole := append([]part{{"blobs/", 0o755, 0, nil}, {"blobs/sha256/", 0o755, 0, nil}}, all.parts...)
	whole = append(whole, part{"index.json", 0o644, 0, index}, part{"manifest.json", 0o644, 0, older}, part{"oci-layout", 0o644, 0, []byte(`{"imageLayoutVersion":"1.0.0"}`)})
	return archived(whole, r.time)
}
