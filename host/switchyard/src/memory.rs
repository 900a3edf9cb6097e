//! Memory that nobody uses any more.
//!
//! `unsafe`: the allocator's own functions are C.
#![allow(unsafe_code, reason = "the allocator is asked in its own language")]

/// Gives back to the system what this thread and those that have ended have freed. The allocator keeps it else until it needs some
/// again, and what compiling a plugin took, up to a hundred megabytes, nobody needs for a long time.
pub(crate) fn give_back() {
    // SAFETY: it takes no pointers, and may be called on any thread at any time.
    unsafe { libmimalloc_sys::mi_collect(true) }
}
