package sandbox

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

var globalMemoryStatus = windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx")

// machineMemory returns all that the machine has.
func machineMemory() (int64, bool) {
	var status struct { // MEMORYSTATUSEX
		length, load                                                                uint32
		total, free, totalPage, freePage, totalVirtual, freeVirtual, freeExtVirtual uint64
	}
	status.length = uint32(unsafe.Sizeof(status))
	ok, _, _ := globalMemoryStatus.Call(uintptr(unsafe.Pointer(&status)))
	return int64(status.total), ok != 0 && status.total > 0
}
