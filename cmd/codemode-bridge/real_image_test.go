//go:build real && linux

package main_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The image of a release runs without a container engine: its root, read-only, in
// namespaces of its own. doctor says which steps of the sandbox hold there: all but
// namespaces, which the kernel does not make for whom it has confined by chroot.
func TestRealImage(t *testing.T) {
	t.Parallel()
	host, _ := hostPlatform()
	_, arch, _ := strings.Cut(host, "/")
	dist := newReal(t).released(t)
	if out, err := exec.CommandContext(t.Context(), "unshare", "--user", "--map-root-user", "--mount", "true").CombinedOutput(); err != nil {
		t.Skipf("this machine lets nobody make namespaces: %s", out)
	}
	files := untarred(t, strings.NewReader(mustRead(t, filepath.Join(dist, "codemode-bridge-"+releaseVersion+"-oci-"+arch+".tar"))))
	blob := func(digest string) []byte { return files["blobs/sha256/"+strings.TrimPrefix(digest, "sha256:")] }
	type named struct{ Digest string }
	var index struct{ Manifests []named }
	var manifest struct {
		Config named
		Layers []named
	}
	var config struct {
		Config struct{ Env, Entrypoint []string }
	}
	for _, one := range []struct {
		text func() []byte
		into any
	}{
		{func() []byte { return files["index.json"] }, &index},
		{func() []byte { return blob(index.Manifests[0].Digest) }, &manifest},
		{func() []byte { return blob(manifest.Config.Digest) }, &config},
	} {
		if err := json.Unmarshal(one.text(), one.into); err != nil {
			t.Fatal(err)
		}
	}
	layer, err := gzip.NewReader(bytes.NewReader(blob(manifest.Layers[0].Digest)))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	unpackRoot := exec.CommandContext(t.Context(), "tar", "--extract", "--no-same-owner", "--directory", root)
	unpackRoot.Stdin = layer
	if out, err := unpackRoot.CombinedOutput(); err != nil {
		t.Fatalf("unpacking the layer: %v\n%s", err, out)
	}
	mustWrite(t, filepath.Join(root, "etc/codemode-bridge/config.json"), `{"servers": {"utils": {"builtin": "utils"}}}`)
	run := func(args ...string) string {
		t.Helper()
		const script = `set -e
root=$1; shift
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
for folder in tmp var/lib/codemode-bridge var/cache/codemode-bridge; do mount -t tmpfs tmpfs "$root/$folder"; done
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
! touch "$root/written" 2>/dev/null
exec "$(command -v chroot || echo /usr/sbin/chroot)" "$root" "$@"`
		cmd := exec.CommandContext(t.Context(), "unshare", append(append([]string{"--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", root}, config.Config.Entrypoint...), args...)...)
		cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, config.Config.Env[1:]...) // unshare and mount are this machine's
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if got := run("eval", `return await codemode.utils__base64_encode({text: "hi"})`); !strings.Contains(got, "aGk=") {
		t.Errorf("eval says %s", got)
	}
	says := run("doctor")
	for _, want := range []string{"landlock", "memory-limit", "no-new-privileges", "seccomp", ": on\n", "namespaces: off: operation not permitted"} {
		if !strings.Contains(says, want) {
			t.Errorf("doctor does not say %q:\n%s", want, says)
		}
	}
}

// untarred are the files of an archive by name.
func untarred(t *testing.T, from io.Reader) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if all[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}
