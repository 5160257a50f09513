package replica

import "time"

// started is where a clock that counts by itself begins; it has a monotonic reading.
var started = time.Now()

// elapsed is a clock that nobody sets; tests have another.
var elapsed = counted
