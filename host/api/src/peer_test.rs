//! Connection tests of peers.

use crate::TestStepKind;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The result of a peer test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PeerTest)]
pub struct PeerTestView {
    /// Whether all steps succeeded.
    pub ok: bool,
    /// The steps. The last one is the failed one, if a step failed.
    pub steps: Vec<TestStepView>,
}

/// A step of a peer test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = TestStep)]
pub struct TestStepView {
    /// `resolve`, `connect`, `tls`, `bind` or `unbind`.
    #[schema(inline)]
    pub what: TestStepKind,
    /// Whether the step succeeded.
    pub ok: bool,
    /// Duration of the step, in milliseconds.
    pub ms: u64,
    /// The result or the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub detail: Option<String>,
}
