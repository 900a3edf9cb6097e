//! Random records and the expected content, for all tests of the store.

#[path = "../../../../codec/tests/integration/generators.rs"]
#[allow(dead_code, reason = "shared with the tests of the codec")]
mod generators;
mod ledger;
pub(crate) mod reference;

pub(crate) use generators::*;
