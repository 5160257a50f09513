package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"

	"codemode-bridge/profiles"
	"codemode-bridge/profiles/templates"

	"github.com/tailscale/hujson"
)

// builtinProfiles are the profiles that are part of the program, for those of the
// configuration that extend one.
var builtinProfiles = sync.OnceValue(func() map[string]*profiles.ProfileSpec {
	specs := map[string]*profiles.ProfileSpec{}
	for _, t := range templates.Versions() {
		plain, err := hujson.Standardize([]byte(t.Text))
		if err != nil {
			panic(fmt.Sprintf("config: the template %s: %v", t.Key(), err)) // they are part of the program
		}
		d := json.NewDecoder(bytes.NewReader(plain))
		d.DisallowUnknownFields()
		specs[t.Key()] = &profiles.ProfileSpec{}
		if err := d.Decode(specs[t.Key()]); err != nil {
			panic(fmt.Sprintf("config: the template %s: %v", t.Key(), err))
		}
	}
	return specs
})
