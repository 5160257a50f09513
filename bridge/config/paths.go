package config

import "codemode-bridge/bridge/userfiles"

// Locations are where things are kept for one user.
type Locations = userfiles.Locations

// Paths returns the default locations. Nothing is created.
func Paths(env Env) (Locations, error) { return userfiles.Of(env) }

// Home returns the home folder of the user.
func Home(env Env) (string, bool) { return userfiles.Home(env) }
