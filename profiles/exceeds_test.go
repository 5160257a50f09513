package profiles

import "testing"

// A yes holds for a decision that asks no more than the one that was approved.
func TestExceeds(t *testing.T) {
	asks := func(risk Risk) Decision { return Decision{Disposition: Ask, Risk: risk} }
	two := Decision{Disposition: Ask, Risk: Medium, Quorums: []Quorum{{Need: 2}}}
	for name, row := range map[string]struct {
		now, approved Decision
		want          bool
	}{
		"the same":             {asks(Medium), asks(Medium), false},
		"milder":               {asks(Medium), asks(High), false},
		"for another reason":   {Decision{Disposition: Ask, Risk: Medium, Reasons: []Reason{{Kind: KindDefault}}}, asks(Medium), false},
		"allowed":              {Decision{Disposition: Allow, Risk: High}, asks(Medium), false},
		"a higher risk":        {asks(High), asks(Medium), true},
		"the name to be typed": {Decision{Disposition: Ask, Risk: Low, Manual: true}, asks(High), true},
		"a reason":             {Decision{Disposition: Ask, Risk: Low, RequireReason: true}, asks(High), true},
		"two people":           {two, asks(High), true},
		"two people, as then":  {two, two, false},
	} {
		if got := row.now.Exceeds(row.approved); got != row.want {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}
