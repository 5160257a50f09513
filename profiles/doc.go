// Package profiles decides what one call may do, from plain facts.
package profiles
