package pending

import (
	"slices"
	"time"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/confirmed"
)

// Keep records that a configuration is in force: confirmed by somebody, or applied
// because it loosens nothing. Nothing is recorded of a file that never had
// approvers. It reports whether this is the first record of its file.
func (h *History) Keep(cfg *config.Config, by, channel string, now time.Time) (first bool, err error) {
	store, err := h.store()
	if err != nil {
		if len(cfg.Approvals.Approvers) == 0 {
			err = nil
		}
		return false, err
	}
	if by == "" {
		err = h.keepLater(store, cfg)
	}
	if err == nil {
		first, err = h.keepHere(store, cfg, by, channel, now)
	}
	if err == nil {
		err = h.keepElsewhere(store, cfg, by, channel, now)
	}
	return first, err
}

// keepHere is Keep on this machine.
func (h *History) keepHere(store *confirmed.Store, cfg *config.Config, by, channel string, now time.Time) (first bool, err error) {
	texts := confirmed.Texts(cfg.Texts())
	if by == "" {
		records, err := store.Records(cfg.File)
		if err != nil {
			return false, err
		}
		first = len(records) == 0
		if first && len(cfg.Approvals.Approvers) == 0 || !first && keptAlready(store, records[0], cfg) {
			return false, nil // most starts write nothing
		}
	}
	return first, store.Change(cfg.File, by != "", func(r *confirmed.Record) error {
		its, known := r.Environments[overlayKey(cfg)]
		switch {
		case by != "":
			dropFormer(r, cfg)
			fallthrough
		case !known, !h.guarded(its.Confirmed, cfg):
			its = confirmed.Standing{Confirmed: texts, By: by, Channel: channel, At: now}
		default:
			its.Taken = &texts
		}
		r.Environments[overlayKey(cfg)] = its
		return nil
	})
}

// keptAlready reports whether the newest record of a configuration's file already
// says that the configuration is in force.
func keptAlready(store *confirmed.Store, record confirmed.Record, cfg *config.Config) bool {
	its, known := record.Environments[overlayKey(cfg)]
	return known && its.InForce() == confirmed.Texts(cfg.Texts()) && store.Points(cfg.File, record.File)
}

// dropFormer drops what the overlay's name led to before: somebody confirms what it
// leads to now.
func dropFormer(r *confirmed.Record, cfg *config.Config) {
	if cfg.Overlay == "" {
		return
	}
	names, now := confirmed.Names(cfg.Overlay), overlayKey(cfg)
	for key, its := range r.Environments {
		switch {
		case key == now:
		case slices.Contains(names, key):
			delete(r.Environments, key)
		default: // it still counts under its own name
			if slices.Contains(names, its.Confirmed.OverlayName) {
				its.Confirmed.OverlayName = key
			}
			if its.Taken != nil && slices.Contains(names, its.Taken.OverlayName) {
				its.Taken.OverlayName = key
			}
			r.Environments[key] = its
		}
	}
}

// guarded reports whether the confirmed configuration has approvers: edits are then
// compared with it until one of them confirms another. If it cannot be read, it is
// taken to have some.
func (h *History) guarded(was confirmed.Texts, cfg *config.Config) bool {
	old, err := config.Texts(was).Recall(h.Env, h.Policy(cfg.File))
	return err != nil || len(old.Approvals.Approvers) > 0
}
