package worker

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The parent gets to know small calls at once, and begins no more than the limit; large
// ones wait here beyond the limit.
func TestCallsBeyondTheLimit(t *testing.T) {
	args := regexp.MustCompile(`\{"s":"x+"\}`)
	for name, row := range map[string]struct{ script, want string }{
		"large": {`return (await Promise.all([1, 2, 3].map(() => codemode.time__now({s: "x".repeat(600000)})))).length`,
			"call 1 tool time__now ARGS (1:47)\ncall 2 tool time__now ARGS (1:47)\nidle made 2 taken 0\ncall 3 tool time__now ARGS (1:47)\nidle made 3 taken 1\nidle made 3 taken 2\nresult 3\n"},
		"large, and the script ends": {`[1, 2, 3].map(() => codemode.time__now({s: "x".repeat(600000)})); return 1`,
			"call 1 tool time__now ARGS (1:21)\ncall 2 tool time__now ARGS (1:21)\nnote: 1 call was never sent: the script ended while waiting for the limit of 2 parallel calls\nresult 1\n"},
	} {
		limits := testLimits()
		limits.Parallel = 2
		got := args.ReplaceAllString(start(t).run(scriptedRun{script: row.script, limits: limits, idle: true}), "ARGS")
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
