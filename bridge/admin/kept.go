package admin

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"codemode-bridge/bridge/documents"
)

// kept are what is good for a while for whoever has its secret: codes, logins, and
// sign-ins and connections of accounts that are under way. Each is a document, named after its kind, its end and the
// hash of its secret; the secret itself is nowhere. Where bridges share the documents,
// what one of them gave is good at all of them, and what is used up or ended is so
// everywhere.
type kept struct {
	store documents.Store
	now   func() time.Time
}

// The kinds of what is kept.
const (
	codes      = "code"
	signIn     = "login"
	signOns    = "sign-on"
	connecting = "connection"
	errIsOut   = keptError("it is not there")
)

type keptError string

func (e keptError) Error() string { return string(e) }

// secret makes the secret of something that is good for so long. It says until when.
func (k kept) secret(good time.Duration) string {
	return newSecret() + "." + strconv.FormatInt(k.now().Add(good).UnixNano(), 36)
}

// place returns the name of the document that a secret is for, and until when it is
// good; false if it is over, or no secret of ours.
func (k kept) place(kind, secret string) (name string, until time.Time, ok bool) {
	_, end, _ := strings.Cut(secret, ".")
	nano, err := strconv.ParseInt(end, 36, 64)
	if until = time.Unix(0, nano); err != nil || !k.now().Before(until) {
		return "", time.Time{}, false
	}
	sum := sha256.Sum256([]byte(secret))
	return kind + "." + strconv.FormatInt(nano, 36) + "." + hex.EncodeToString(sum[:]), until, true
}

// put keeps v for whoever has a secret. There are at most so many of a kind: what ends
// first makes room.
func (k kept) put(ctx context.Context, kind, secret string, most int, v any) error {
	body, err := json.Marshal(v)
	if err == nil {
		err = k.makeRoom(ctx, kind, most)
	}
	if name, _, ok := k.place(kind, secret); err == nil && ok {
		err = k.store.Change(ctx, name, func([]byte) ([]byte, error) { return body, nil })
	}
	if err != nil {
		return fmt.Errorf("keeping a %s: %w", kind, err)
	}
	return nil
}

func (k kept) makeRoom(ctx context.Context, kind string, most int) error {
	all, err := k.store.Names(ctx)
	if err != nil {
		return err
	}
	end := func(name string) int64 {
		nano, _ := strconv.ParseInt(strings.Split(name, ".")[1], 36, 64)
		return nano
	}
	all = slices.DeleteFunc(all, func(name string) bool { return !strings.HasPrefix(name, kind+".") })
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(end(a), end(b)) })
	for i, name := range all {
		if end(name) > k.now().UnixNano() && len(all)-i < most {
			break
		}
		if err := k.remove(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (k kept) remove(ctx context.Context, name string) error {
	return k.store.Change(ctx, name, func([]byte) ([]byte, error) { return nil, nil })
}

// read reads into v what is kept for whoever has a secret, and returns until when; false
// if there is nothing.
func (k kept) read(ctx context.Context, kind, secret string, v any) (until time.Time, ok bool, err error) {
	name, until, ok := k.place(kind, secret)
	if !ok {
		return until, false, nil
	}
	body, err := k.store.Read(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return until, false, nil
	}
	if err == nil {
		err = json.Unmarshal(body, v)
	}
	if err != nil {
		return until, false, fmt.Errorf("reading a %s: %w", kind, err)
	}
	return until, true, nil
}

// take is read, once: of all who have the secret, wherever they come, one gets it.
func (k kept) take(ctx context.Context, kind, secret string, v any) (ok bool, err error) {
	name, _, ok := k.place(kind, secret)
	if !ok {
		return false, nil
	}
	var body []byte
	err = k.store.Change(ctx, name, func(old []byte) ([]byte, error) {
		if body = old; old == nil {
			return nil, errIsOut
		}
		return nil, nil
	})
	if errors.Is(err, errIsOut) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(body, v)
	}
	if err != nil {
		return false, fmt.Errorf("using up a %s: %w", kind, err)
	}
	return true, nil
}

// end ends what is kept for whoever has a secret.
func (k kept) end(ctx context.Context, kind, secret string) error {
	name, _, ok := k.place(kind, secret)
	if !ok {
		return nil
	}
	return k.remove(ctx, name)
}
