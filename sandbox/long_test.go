//go:build long

package sandbox

import "testing"

// TestLongAnswers is TestAnswersAreNotKept with 10,000 answers of 2 MB of each kind.
func TestLongAnswers(t *testing.T) { answersAreNotKept(t, 10_000) }
