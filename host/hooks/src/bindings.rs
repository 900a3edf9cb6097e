//! What wasmtime makes of `wit/`.
#![allow(missing_docs, unreachable_pub, reason = "generated; the WIT files carry the documentation")]

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "router",
});
