package profiles

import "cel.dev/cel-go/common/types"

// Masked stands in [Call.Args] for a value that is not known. Nothing that looks at it
// can be decided.
type Masked struct{}

// maskedText is why a condition that looks at a Masked value cannot be decided.
const maskedText = "a value that is not known"

// Gaps are what else is not known of a call.
type Gaps struct {
	// Args reports that some arguments are not there at all, not even as Masked.
	Args bool
	// Tool reports that nobody lists the tool: only its name is known.
	Tool bool
	// Content reports that nobody looked whether the arguments have something that was read before,
	// and Written that nobody looked whether they stand in the script.
	Content, Written bool
	// Carries reports that nobody looked whether the call carries away what another server answered.
	Carries bool
}

// gaps are the Gaps of a call with its Masked values, and which of the two decisions is made.
type gaps struct {
	Gaps
	masked []string // dotted paths
	loose  bool
}

// errMasked is what an expression gets in the place of a Masked value.
func errMasked() *types.Err { return types.NewErr(maskedText).(*types.Err) }
