package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/approvalview"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/pending"
	"codemode-bridge/bridge/recorder"
	"codemode-bridge/cmd/codemode-bridge/storecmd"
)

// A settling is what a command needs to settle requests.
type settling struct {
	desk     *gate.Settler
	logs     *logs
	recorder *recorder.Recorder
	others   *storecmd.Members
	people   *atomic.Pointer[approval.Approvers] // as the configuration has them now
}

func (s settling) Close() error {
	defer s.logs.Close()
	return errors.Join(s.recorder.Close(), s.others.Leave())
}

// openSettling opens the logs and makes a settler. Verdicts are recorded in the same
// audit log as those that the bridge gets itself.
func openSettling(ctx context.Context, con *console, cfg *config.Config, store approval.Store) (settling, error) {
	realm := realmOf(cfg)
	people, err := pending.Approvers(cfg, realm)
	if err != nil {
		return settling{}, err
	}
	l, err := openQuietLogs(con, cfg)
	if err != nil {
		return settling{}, err
	}
	rec, err := con.openLog(ctx, cfg.Audit, l.logger)
	if err != nil {
		l.Close()
		return settling{}, err
	}
	others, err := storecmd.Others(cfg.Audit)
	if err != nil {
		l.Close()
		return settling{}, errors.Join(err, rec.Close())
	}
	s := settling{logs: l, recorder: rec.Recorder, others: others, people: new(atomic.Pointer[approval.Approvers])}
	s.people.Store(people)
	s.desk = &gate.Settler{Recorder: rec, Broker: approval.New(approval.Options{
		Store: store, Approvers: s.people.Load, Configuration: realm.Configuration,
		Gone: others.Gone,
	})}
	s.desk.Listen()
	return s, nil
}

// settleOne gives a verdict on one request and prints the result. If the error is
// [approval.ErrUnjudged], that has been printed too.
func settleOne(ctx context.Context, con *console, s settling, people *approval.Approvers, who approval.Approver, e approval.StoredRequest, v approval.Verdict) error {
	signed, e, err := s.bring(ctx, people, who, e, v)
	kept := errors.Is(err, approval.ErrUnjudged)
	line := map[string]any{"id": e.ID, "by": signed.Who(), "settled": err == nil && e.Verdict != nil}
	text := fmt.Sprintf("%s: %s, and still needed: %s", e.ID, approvalview.Answered(signed), e.Missing())
	switch {
	case kept:
		line["kept"] = true
		text = fmt.Sprintf("%s: not %s yet: %v", e.ID, approvalview.Answered(signed), err)
	case err != nil:
		return uncounted(err)
	case e.Verdict != nil:
		line["status"], line["at"], line["verdict"] = approvalview.Answered(*e.Verdict), e.Verdict.Time, e.Verdict.Shown()
		text = fmt.Sprintf("%s: %s by %s", e.ID, approvalview.Answered(*e.Verdict), e.Verdict.Who())
		if e.Verdict.Edited {
			text += ", with edited arguments"
		}
	}
	if con.JSON {
		return errors.Join(con.PrintJSON(line), err)
	}
	_, lost := fmt.Fprintln(con.Out, canon.Escape(text))
	return errors.Join(lost, err)
}

// bring signs a verdict and settles its request with it. A verdict that the approver
// may not give is recorded as refused.
func (s settling) bring(ctx context.Context, people *approval.Approvers, who approval.Approver, e approval.StoredRequest, v approval.Verdict) (approval.Verdict, approval.StoredRequest, error) {
	signed, err := people.Sign(who, e.Request, v, "terminal", time.Now())
	if err != nil {
		v.By, v.Channel = who.Name, "terminal"
		return v, e, errors.Join(&approval.RefusedError{Err: err}, s.desk.Refuse(ctx, e, v, err))
	}
	e, err = s.desk.Settle(ctx, e.ID, e.Digest(), signed)
	return signed, e, err
}

// uncounted adds to the error of a refused answer that it does not count.
func uncounted(err error) error {
	if refused := (*approval.RefusedError)(nil); errors.As(err, &refused) {
		return fmt.Errorf("this answer does not count: %w", err)
	}
	return err
}
