package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"io/fs"
	"maps"
	"slices"
	"time"
)

// An entry is one file of an archive, or a folder.
type entry struct {
	name string // with slashes, a folder's with one at its end
	mode fs.FileMode
	text []byte
}

// beneath returns entries with a folder before their names.
func beneath(folder string, entries []entry) []entry {
	all := slices.Clone(entries)
	for i := range all {
		all[i].name = folder + all[i].name
	}
	return all
}

func inOrder(entries []entry) []entry {
	return slices.SortedFunc(slices.Values(entries), func(a, b entry) int { return cmp.Compare(a.name, b.name) })
}

// sorted are the keys of a map in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// tarred is a compressed tar archive of entries that belong to nobody.
func tarred(entries []entry, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	packed := gzip.NewWriter(&out) // whose header has no name and no time
	w := tar.NewWriter(packed)
	for _, e := range inOrder(entries) {
		kind := byte(tar.TypeReg)
		if e.mode.IsDir() {
			kind = tar.TypeDir
		}
		h := &tar.Header{Typeflag: kind, Name: e.name, Size: int64(len(e.text)), Mode: int64(e.mode.Perm()), ModTime: at, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.text); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := packed.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// zipped is a zip archive of entries.
func zipped(entries []entry, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, e := range inOrder(entries) {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at}
		h.SetMode(e.mode)
		f, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := f.Write(e.text); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
