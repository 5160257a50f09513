package admin

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/ledger"
)

// fakeConfig is a file of which a change waits, in a real store.
type fakeConfig struct{ store *approval.Memory }

func (f fakeConfig) Pending(ctx context.Context) (*approval.PendingConfig, error) {
	h, err := approval.PendingConfigOf(ctx, f.store, "/etc/config.json")
	if err != nil || h == nil || h.By != "" {
		return nil, err
	}
	return h, nil
}

func (f fakeConfig) Confirm(ctx context.Context, digest string, said approval.Confirmation) error {
	return approval.Confirm(ctx, f.store, "/etc/config.json", digest, said)
}

func (f fakeConfig) Reject(ctx context.Context, digest string, said approval.Confirmation) error {
	return approval.Reject(ctx, f.store, "/etc/config.json", digest, said)
}

func (f fakeConfig) hold(t *testing.T, h approval.PendingConfig) {
	t.Helper()
	h.File, h.Since = "/etc/config.json", time.Now()
	if _, err := approval.SubmitConfig(t.Context(), f.store, h, time.Now()); err != nil {
		t.Fatal(err)
	}
}

// A changed configuration that waits is shown to everybody, and confirmed by
// who may edit, with a reason where it needs one.
func TestHeldConfiguration(t *testing.T) {
	config := fakeConfig{store: new(approval.Memory)}
	b := newBench(t, func(o *Options) { o.Config = config })
	b.as("vic").do("GET", "/api/config", "").want(200).says(`"held":null`)
	confirm := func(name, digest, reason string) response {
		return b.as(name).do("POST", "/api/config/confirm", fmt.Sprintf(`{"digest":%q,"reason":%q}`, digest, reason))
	}
	confirm("ada", "d1", "why not").refused(404, "not_found")
	if res := b.atPage("ada").do("GET", "/", ""); !strings.Contains(res.body, `id="held" class="notice" role="status" hidden`) {
		t.Error("the page says that something waits")
	}

	config.hold(t, approval.PendingConfig{Digest: "d1", Why: []string{"denylist: \"<b>__*\" is gone\u202e"}, Diff: []string{"@ profile p", "-<script>"}, NeedsReason: true})
	b.as("vic").do("GET", "/api/config", "").want(200).says(`"digest":"d1"`, `is gone\\u{202E}`, `"reason_needed":true`, `"you_may_confirm":false`)
	b.as("ada").do("GET", "/api/config", "").want(200).says(`"you_may_confirm":true`)
	for _, path := range []string{"/", "/grants", "/history"} {
		if res := b.atPage("bob").do("GET", path, ""); strings.Contains(res.body, `role="status" hidden`) {
			t.Errorf("%s does not say that something waits", path)
		}
	}
	b.atPage("ada").do("GET", "/profiles", "").want(200).says(`data-digest="d1" data-reason`, "&lt;b&gt;__*", `<span class="minus">-&lt;script&gt;`)
	if res := b.atPage("bob").do("GET", "/profiles", "").says("is gone"); strings.Contains(res.body, `id="confirm"`) {
		t.Error("who may not confirm gets a button")
	}

	confirm("bob", "d1", "because").refused(403, "role")
	confirm("ada", "d0", "because").refused(409, "changed")
	confirm("ada", "", "because").refused(422, "invalid")
	confirm("ada", "d1", "  ").refused(422, "invalid")
	confirm("ada", "d1", strings.Repeat("a", 4001)).refused(422, "invalid")
	if h, err := config.Pending(t.Context()); err != nil || h == nil || len(b.recorded(ledger.ConfigChanged)) != 0 {
		t.Fatalf("a refused confirmation changed something: %+v, %v", h, err)
	}
	reject := func(name, digest string) response {
		return b.as(name).do("POST", "/api/config/reject", fmt.Sprintf(`{"digest":%q,"reason":"<not> now"}`, digest))
	}
	reject("bob", "d1").refused(403, "role")
	reject("ada", "d0").refused(409, "changed")
	reject("ada", "d1").want(200).says(`"rejected":true`)
	b.as("vic").do("GET", "/api/config", "").want(200).says(`"rejected_by":"ada"`, `"digest":"d1"`)
	b.atPage("ada").do("GET", "/profiles", "").want(200).says("ada", "&lt;not&gt; now")
	if rec := b.recorded(ledger.ConfigChanged); len(rec) != 1 || rec[0].Approver != "ada" || !strings.Contains(string(rec[0].Detail), `"reject":"d1"`) {
		t.Errorf("recorded %+v", rec)
	}

	confirm("ada", "d1", "agreed with ops").want(200).says(`"confirmed":true`)
	h, err := approval.PendingConfigOf(t.Context(), config.store, "/etc/config.json")
	if err != nil || h.At.IsZero() {
		t.Errorf("kept is %+v, %v", h, err)
	}
	if diff := cmp.Diff(approval.Confirmation{By: "ada", Channel: "api", Text: "agreed with ops", At: h.At}, h.Confirmation); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if rec := b.recorded(ledger.ConfigChanged); len(rec) != 2 || rec[1].Approver != "ada" || !strings.Contains(string(rec[1].Detail), "agreed with ops") {
		t.Errorf("recorded %+v", rec)
	}
	b.as("vic").do("GET", "/api/config", "").want(200).says(`"held":null`)
	confirm("ada", "d1", "again").refused(404, "not_found")

	config.hold(t, approval.PendingConfig{Digest: "d2", Why: []string{"asklist: \"x\" is gone"}})
	page := b.atPage("ada")
	page.do("POST", "/api/config/confirm", `{"digest":"d2"}`).want(200)
	if h, err := approval.PendingConfigOf(t.Context(), config.store, "/etc/config.json"); err != nil || h.Channel != "page" {
		t.Errorf("kept is %+v, %v", h, err)
	}
}

// What cannot be recorded is not confirmed.
func TestUnrecordedConfirmation(t *testing.T) {
	config := fakeConfig{store: new(approval.Memory)}
	b := newBench(t, func(o *Options) { o.Config, o.Record = config, broken{} })
	config.hold(t, approval.PendingConfig{Digest: "d1", Why: []string{"looser"}})
	b.as("ada").do("POST", "/api/config/confirm", `{"digest":"d1"}`).refused(503, "audit_unavailable")
	if h, err := config.Pending(t.Context()); err != nil || h == nil {
		t.Errorf("it was confirmed: %v", err)
	}
}
