// Package profiles decides what one call may do. It is a pure function from
// plain facts to a [Decision] with all its reasons: no I/O, no clock, no
// randomness, and the same answer for the same policy revision and the same
// [Call], always.
//
//	Spec ── Parse ──> Set ── Profile(name) ──> Profile ── Decide(Call) ──> Decision
//	(as decoded)      (immutable)                            │
//	                                                         └─ Explain: with everything tried
//
// # How a call is decided
//
// Every list entry and every rule is tried, none stops another, and the
// strictest match wins, so their order never matters:
//
//  1. an entry of the denylist or a rule with deny: deny;
//  2. an entry of the asklist or a rule with ask or manual: ask;
//  3. an entry of the allowlist or a rule with allow or notify: allow;
//  4. nothing matched and an allowlist exists: deny;
//  5. nothing matched and none exists: the profile's default.
//
// Beside the profile there is one built-in denial that nothing lifts, of
// arguments that name the bridge's own files ([Options]), and one raise: a
// call of a changed tool that would be allowed is asked. A denial for want of
// an allowlist entry (step 4) is not the same as a denial by name: an entry on
// the asklist makes such a call askable.
//
// # Three values
//
// A condition that cannot be decided (the parameter is missing or of the
// wrong type, the evaluation fails or costs too much) counts as true for deny
// and ask and as false for allow and notify. A rule that might have matched
// can raise the risk and tighten how people are asked; it loosens nothing. In
// the plain form {"param", "matches"} every element of an array, and a path
// before and after lexical cleaning, must agree; where they do not, the
// condition is undecided, so that "any" denies and only "all" allows. Every
// error in deciding itself denies too, as [KindPolicyError].
//
// # Risk
//
// The risk of a call is what the rules that match say, the strictest of them.
// Without one it is guessed, the strictest of the tool's annotations and the
// words in its name, title and description. Nothing goes below a
// destructiveHint. An upstream can raise the risk by what it says of itself and,
// unless its server's annotations are trusted, never lower it. See risk.go for
// the words. Whether a call may be made twice is another fact, which the risk
// has no part in: [Decision.Repeatable].
//
// # Inheritance
//
// A profile that extends another adds to it: lists and rules add up, and
// because the strictest wins, what the parent denies by name or asks stays so.
// Settings that could undo that (default, elicitationFallback, remember,
// requireReason, quorum) are refused by [Parse] when they are looser than the
// inherited ones. An allowlist adds up as well: the child may name more tools.
package profiles
