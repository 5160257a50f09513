package pending

import (
	"time"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/confirmed"
)

// A configuration may be that of several machines ([History.Shared]). What an approver
// confirmed on one of them is then confirmed on all:
//
//   - The very text that was confirmed last is in force wherever it is found.
//   - Any other text is compared with what an approver confirmed last, wherever that was.
//     If no approver has, here or elsewhere, it is compared with what both have.
//   - A machine that knows nothing of the file yet begins with what was confirmed elsewhere.
//
// An edit of the id or the store is compared on each machine alone: the place of the
// documents is that of the configuration in force there.

// elsewhere returns what was confirmed on any machine, as a record of the files here, and
// what of it is the configuration's environment; nil if there is nothing. Documents that
// cannot be read are an error only if the machine knows nothing by itself.
func (h *History) elsewhere(cfg *config.Config, records []confirmed.Record) (*confirmed.Record, *confirmed.Standing, error) {
	if h.Shared == nil {
		return nil, nil, nil
	}
	inForce := cfg
	if here := h.compareAll(cfg, nil, records, nil); here != nil {
		inForce = here.Old
	}
	if inForce == nil || inForce.ID != cfg.ID {
		return nil, nil, nil
	}
	d := h.Shared(inForce)
	if d == nil {
		return nil, nil, nil
	}
	all, err := confirmed.OpenShared(d).Read(cfg.File, cfg.Overlay)
	if err != nil && len(records) == 0 {
		return nil, nil, &UnreadableError{cfg, err}
	}
	if err != nil || len(all.Environments) == 0 {
		return nil, nil, nil
	}
	if its, known := all.Environments[overlayKey(cfg)]; known {
		return &all, &its, nil
	}
	return &all, nil, nil
}

// judgeElsewhere compares a configuration with what was confirmed here and on any machine.
func (h *History) judgeElsewhere(cfg, running *config.Config, records []confirmed.Record, all *confirmed.Record, its *confirmed.Standing) *Change {
	switch {
	case its != nil && its.By != "" && its.Confirmed == confirmed.Texts(cfg.Texts()):
		return nil // confirmed as it is
	case len(records) == 0:
		return h.compareAll(cfg, running, []confirmed.Record{*all}, nil)
	case later(its, records, cfg):
		change := h.compareAll(cfg, nil, []confirmed.Record{*all}, nil)
		if change != nil && running != nil {
			change.Old = running
		}
		return change
	case its != nil && !confirmedAfter(its, records, cfg):
		return h.compareAll(cfg, running, records, []config.Texts{config.Texts(its.Confirmed)})
	}
	return h.compareAll(cfg, running, records, nil)
}

// later reports whether an approver has confirmed its after whatever was confirmed of the
// configuration here.
func later(its *confirmed.Standing, records []confirmed.Record, cfg *config.Config) bool {
	if its == nil || its.By == "" || len(records) > 1 {
		return false
	}
	own := here(records, cfg)
	return own == nil || its.At.After(own.At)
}

// confirmedAfter reports whether an approver has confirmed the configuration here after
// its was confirmed.
func confirmedAfter(its *confirmed.Standing, records []confirmed.Record, cfg *config.Config) bool {
	own := here(records, cfg)
	return own != nil && own.By != "" && own.At.After(its.At)
}

// here returns what was confirmed of a configuration here; nil if nothing was.
func here(records []confirmed.Record, cfg *config.Config) *confirmed.Standing {
	if len(records) == 0 {
		return nil
	}
	if own := standings(records[0], cfg); len(own) > 0 {
		return &own[0] // the newest
	}
	return nil
}

// keepLater takes over here what was confirmed elsewhere since.
func (h *History) keepLater(store *confirmed.Store, cfg *config.Config) error {
	if h.Shared == nil {
		return nil
	}
	records, err := store.Records(cfg.File)
	if err != nil {
		return err
	}
	_, its, err := h.elsewhere(cfg, records)
	if err != nil || !later(its, records, cfg) {
		return err
	}
	standing := *its
	if texts := confirmed.Texts(cfg.Texts()); texts != standing.Confirmed {
		standing.Taken = &texts
	}
	return store.Change(cfg.File, true, func(r *confirmed.Record) error {
		dropFormer(r, cfg)
		r.Environments[overlayKey(cfg)] = standing
		return nil
	})
}

// keepElsewhere tells the other machines that a configuration, which is in force here, was
// confirmed by somebody, or is the first. What they have otherwise stays.
func (h *History) keepElsewhere(store *confirmed.Store, cfg *config.Config, by, channel string, now time.Time) error {
	if h.Shared == nil {
		return nil
	}
	d := h.Shared(cfg)
	if d == nil {
		return nil
	}
	is := &confirmed.Standing{Confirmed: confirmed.Texts(cfg.Texts()), By: by, Channel: channel, At: now}
	var records []confirmed.Record
	if by == "" {
		if len(cfg.Approvals.Approvers) == 0 {
			return nil
		}
		record, err := store.Read(cfg.File)
		if err != nil {
			return err
		}
		records = []confirmed.Record{record}
		if own := here(records, cfg); own != nil { // confirmed here, perhaps before there was a store
			is = own
		}
	}
	shared := confirmed.OpenShared(d)
	replaces := func(was *confirmed.Standing) bool {
		return by != "" || was == nil || !h.guarded(was.Confirmed, cfg) || confirmedAfter(was, records, cfg)
	}
	all, err := shared.Read(cfg.File, cfg.Overlay)
	if err != nil {
		return err
	}
	if was, known := all.Environments[overlayKey(cfg)]; known && !replaces(&was) {
		return nil // most starts write nothing
	}
	return shared.Change(cfg.Overlay, func(was *confirmed.Standing) *confirmed.Standing {
		if was != nil {
			was.Confirmed.Name, was.Confirmed.OverlayName = cfg.File, cfg.Overlay
		}
		if !replaces(was) {
			return nil
		}
		return is
	})
}
