//go:build real && long

package main_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// make storm: bridges are killed, frozen, cut off and ended at random, for as long as STORM
// says, while calls are made. STORM_SEED repeats the choices of another storm.
func TestStorm(t *testing.T) {
	lasts, err := time.ParseDuration(os.Getenv("STORM"))
	if err != nil {
		t.Fatalf("STORM says how long, such as 15m: %v", err)
	}
	seed := rand.Uint64()
	if text := os.Getenv("STORM_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("STORM_SEED=%d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	f := newFleet(t)
	load := f.load(6, seed)
	for until := time.Now().Add(lasts); time.Now().Before(until) && !t.Failed(); {
		down := dice.Perm(len(f.bridges))[:1+dice.IntN(2)]
		var mends []func()
		for _, i := range down {
			m, fault := f.bridges[i], faults[dice.IntN(len(faults))]
			t.Logf("%s: %s is %s", time.Now().Format(time.TimeOnly), m.name, fault.name)
			mends = append(mends, f.hurt(m, fault))
			time.Sleep(time.Duration(dice.IntN(1000)) * time.Millisecond)
		}
		time.Sleep(time.Duration(dice.IntN(14_000)) * time.Millisecond)
		for _, mend := range mends {
			mend()
		}
		time.Sleep(time.Duration(dice.IntN(5_000)) * time.Millisecond)
	}
	if done, _ := load.finish(); done == 0 {
		t.Error("nothing was done")
	}
}
