package replica

import "time"

// started is where a clock that counts by itself begins; it has a monotonic reading.
var started = time.Now()
