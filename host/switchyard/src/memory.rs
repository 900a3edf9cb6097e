//! Returns unused memory to the system.
//!
//! `unsafe` is needed to call the allocator's C functions.
#![allow(unsafe_code, reason = "FFI calls to the allocator")]

/// Returns memory freed by this thread and by ended threads to the system. Otherwise the allocator keeps it, and
/// compiling a plugin takes up to a hundred megabytes.
pub(crate) fn release_free_memory() {
    // SAFETY: takes no pointers and can be called on any thread at any time.
    unsafe { libmimalloc_sys::mi_collect(true) }
}
