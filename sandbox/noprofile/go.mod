// This takes the place of the module that goja's profiler writes its profiles with: see
// profile/profile.go.
module github.com/google/pprof

go 1.26
