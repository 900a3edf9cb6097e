// Package runtime manages memory for the generated bindings. Memory that the host reads or writes must neither be moved nor
// collected meanwhile.
package runtime

import (
	"runtime"
	"unsafe"
)

// The memory that the host has written arguments or results to, until they are Go values.
var received runtime.Pinner

// Unpin releases the memory that the host has written to, for the garbage collector.
func Unpin() {
	received.Unpin()
}

// Allocate returns memory that is not moved until the pinner is unpinned. Alignments are at most eight octets.
func Allocate(pinner *runtime.Pinner, size, align uintptr) unsafe.Pointer {
	if size == 0 {
		return unsafe.Pointer(align)
	}
	// Of words, which are aligned to eight octets. The collector does not look for pointers in it.
	words := make([]uint64, (size+7)/8)
	memory := unsafe.Pointer(unsafe.SliceData(words))
	pinner.Pin(memory)
	return memory
}

// The host's allocator (Canonical ABI, `realloc`).
//
//go:wasmexport cabi_realloc
func reallocate(old unsafe.Pointer, oldSize, align, size uintptr) unsafe.Pointer {
	memory := Allocate(&received, size, align)
	if kept := min(oldSize, size); kept > 0 {
		copy(unsafe.Slice((*byte)(memory), kept), unsafe.Slice((*byte)(old), kept))
	}
	return memory
}
