package enrollcmd

import (
	"context"
	"log/slog"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/enrolment"
	"codemode-bridge/bridge/questions"
)

// An Asking says whose questions go up to the centre.
type Asking struct {
	Place         config.Audit
	Store         approval.Store // in memory where Place keeps nothing: then nobody is asked
	Configuration string         // the id of the one that asks
	Approvers     func() bool    // reports whether it has any
	Logger        *slog.Logger
}

// Ask shows the questions of a configuration to approvers at the centre at which the
// machine is enrolled, until ctx ends.
func Ask(ctx context.Context, a Asking) {
	if !a.Place.Enabled || a.Place.Path == "" {
		return // there is no folder in which it could be enrolled
	}
	folder := enrolment.FolderOf(a.Place.Path)
	var of enrolment.Enrolment // that client is for
	var client *enrolment.Client
	questions.NewLaptop(questions.LaptopOptions{
		Store: a.Store, Configuration: a.Configuration, Approvers: a.Approvers, Logger: a.Logger.With("part", "centre"),
		Lead: func() (func(), error) {
			if _, err := folder.Enrolment(); err != nil {
				return nil, err
			}
			return folder.LockAsking(a.Configuration)
		},
		Centre: func() (questions.Centre, error) {
			e, err := folder.Enrolment()
			if err != nil {
				return questions.Centre{}, err
			}
			if client == nil || !e.Enrolled.Equal(of.Enrolled) || e.Laptop != of.Laptop {
				key, err := folder.Key(false)
				if err != nil {
					return questions.Centre{}, err
				}
				client, of = enrolment.NewClient(e, key, nil), e
			}
			return questions.Centre{Sender: questions.Sender{Laptop: e.Laptop, Person: e.Person}, Address: e.Centre, Policy: e.PolicyKey != "", Ask: client.Ask}, nil
		},
	}).Run(ctx)
}
