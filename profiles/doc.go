// Package profiles decides what becomes of one call: allow, ask or deny. It is a
// pure function from plain facts to a [Decision] with all its reasons: no I/O,
// no clock, no randomness, and always the same answer for the same policy
// revision and the same [Call].
//
//	Spec ── Parse ──> Set ── Profile(name) ──> Profile ── Decide(Call) ──> Decision
//	(as decoded)      (immutable)                            │
//	                                                         └─ Explain: with everything tried
//
// # How a call is decided
//
// Every list entry and every rule is tried, whatever the others say, and the
// strictest match wins. Their order never matters:
//
//  1. an entry of the denylist or a rule with deny: deny;
//  2. an entry of the asklist or a rule with ask or manual: ask;
//  3. an entry of the allowlist or a rule with allow or notify: allow;
//  4. nothing matched and there is an allowlist: deny;
//  5. nothing matched and there is none: the profile's default.
//
// Two things apply besides the profile: arguments that name the bridge's own
// files are denied, and nothing lifts that ([Options]); and a call of a changed
// tool that would be allowed asks instead. A denial for want of an allowlist
// entry (step 4) is weaker than a denial by name: an entry on the asklist turns
// it into ask.
//
// # Three values
//
// A condition is true, false or undecided. An undecided one (the parameter is
// missing or of the wrong type, the evaluation fails or costs too much) counts
// as true for deny and ask and as false for allow and notify. A rule that might
// have matched can raise the risk and tighten how people are asked, but it
// loosens nothing. In the plain form {"param", "matches"}, all elements of an
// array must agree, and so must a path before and after lexical cleaning;
// otherwise the condition is undecided, so that "any" is enough to deny and only
// "all" allows. An error in deciding itself denies too, as [KindPolicyError].
//
// # Risk
//
// The risk of a call is the strictest that a matching rule states. If none does,
// it is guessed from the tool's annotations and the words in its name, title and
// description, again the strictest. Nothing goes below a destructiveHint. What an
// upstream says of itself can raise the risk but, unless the server's annotations
// are trusted, never lower it. See risk.go for the words. Whether a call may be
// made twice is a separate fact: [Decision.Repeatable].
//
// # Inheritance
//
// A profile that extends another adds to its lists and rules. Because the
// strictest match wins, what the parent denies by name or asks stays that way.
// Settings that could undo this (default, elicitationFallback, remember,
// requireReason, quorum) are refused by [Parse] if they are looser than the
// inherited ones. Allowlists add up as well: the child may name more tools.
//
// # On trial
//
// A rule, a flow, a list or a whole profile may be only observed ([Observe]): it decides
// nothing, and [Decision.Would] says what it would have come to.
package profiles
