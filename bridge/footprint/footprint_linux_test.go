package footprint

import (
	"io"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// resident returns how much of files this process has in memory, in kB.
func resident(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(string(regexp.MustCompile(`RssFile:\s+(\d+) kB`).FindSubmatch(text)[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestGiveBack(t *testing.T) {
	memory, err := os.Open("/proc/self/mem")
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	size := int64(0)
	for _, m := range unchanged() {
		n := int64(m.end - m.start)
		if _, err := io.Copy(io.Discard, io.NewSectionReader(memory, int64(m.start), n)); err != nil { // so that it is in memory
			t.Fatal(err)
		}
		size += n
	}
	if size < 1<<20 {
		t.Fatalf("%d bytes of the program are unchanged", size)
	}
	before := resident(t)
	giveBack()
	if after := resident(t); after > before*3/4 {
		t.Errorf("%d kB of files in memory, before %d", after, before)
	}
}

// What was written to, or may be, is not given back: it would be lost.
func TestUnchanged(t *testing.T) {
	smaps := "00400000-00401000 r-xp 00000000 fe:00 10 /bin/program\nSize: 4 kB\nPrivate_Dirty: 0 kB\nAnonymous: 0 kB\nVmFlags: rd ex\n" +
		"00402000-00403000 r--p 00000000 fe:00 10 /bin/program\nAnonymous: 4 kB\n" +
		"00404000-00405000 rw-p 00000000 fe:00 10 /bin/program\nAnonymous: 0 kB\n" +
		"00406000-00407000 r--s 00000000 fe:00 10 /bin/program\nAnonymous: 0 kB\n" +
		"00408000-00409000 r--p 00000000 fe:00 11 /lib/other /bin/program2\nAnonymous: 0 kB\n" +
		"0040a000-0040b000 r--p 00000000 00:00 0\nAnonymous: 0 kB\n" +
		"0040c000-0040d000 r--p 00002000 fe:00 10                  /bin/program\nAnonymous:             0 kB\n"
	if got, want := unchangedIn(smaps, "/bin/program"), []mapping{{0x400000, 0x401000}, {0x40c000, 0x40d000}}; !slices.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
}

// collections counts the forced collections of garbage until now.
func collections() uint32 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NumForcedGC
}

func TestAfterStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := collections()
		AfterStart()
		time.Sleep(rest)
		synctest.Wait()
		if n := collections() - before; n == 0 {
			t.Error("nothing was given back")
		}
	})
}
