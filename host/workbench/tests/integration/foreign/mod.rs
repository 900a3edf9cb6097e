//! Tests that build plugins in other languages than Rust: they need Node.js or Python.

mod faults;
mod wasi;
