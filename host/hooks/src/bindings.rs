//! What wasmtime makes of `wit/`.
#![allow(missing_docs, unreachable_pub, reason = "generated; the WIT files carry the documentation")]

wasmtime::component::bindgen!({
    path: "../../wit/previous",
    world: "router",
    // Texts are handed over where they stand: no copy of them is made for a call.
    ownership: Borrowing { duplicate_if_necessary: true },
});
