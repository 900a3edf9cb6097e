//! How long the allocator keeps unused memory.
//!
//! `unsafe` is needed to call the allocator's C functions.
#![allow(unsafe_code, reason = "FFI calls to the allocator")]

use libmimalloc_sys::mi_option_t;
use std::ffi::c_long;

/// `mi_option_purge_delay` in mimalloc.h, version 3, for which the crate has no constant.
const PURGE_DELAY: mi_option_t = 15;
/// Memory that has been unused for this time is returned to the system, in milliseconds. Much of the memory of a batch is
/// used again when the tables have been written, which takes longer than the allocator's default of a second; the system
/// clears each page that it gives out again.
const PURGE_DELAY_MS: c_long = 10_000;

/// Keeps unused memory for ten seconds before it is returned to the system, or for the time in the environment variable
/// MIMALLOC_PURGE_DELAY.
pub(crate) fn keep_unused_memory() {
    // SAFETY: takes no pointers and can be called on any thread at any time.
    unsafe { libmimalloc_sys::mi_option_set_default(PURGE_DELAY, PURGE_DELAY_MS) }
}

/// Returns memory freed by this thread and by ended threads to the system. Otherwise the allocator keeps it, and
/// compiling a plugin takes up to a hundred megabytes.
pub(crate) fn release_free_memory() {
    // SAFETY: takes no pointers and can be called on any thread at any time.
    unsafe { libmimalloc_sys::mi_collect(true) }
}

#[cfg(test)]
mod tests {
    use super::{PURGE_DELAY, PURGE_DELAY_MS, keep_unused_memory};

    #[test]
    fn the_option_is_the_purge_delay() {
        // SAFETY: takes no pointers.
        let get = || unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
        // No other option has this default.
        assert_eq!(get(), 1_000);
        keep_unused_memory();
        assert_eq!(get(), PURGE_DELAY_MS);
    }
}
