package cli

// A Hinted error says that something about the setup is wrong, and what to do.
type Hinted interface {
	error
	Hint() string
}

// A SetupError is a Hinted one.
type SetupError struct {
	Err error
	Do  string // the hint; may be empty
}

func (e *SetupError) Error() string { return e.Err.Error() }
func (e *SetupError) Unwrap() error { return e.Err }
func (e *SetupError) Hint() string  { return e.Do }
