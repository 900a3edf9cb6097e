//! Whether the daemon accepts traffic.

use crate::names::ReadinessStatus;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A reason why the daemon accepts no traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NotReady {
    /// The daemon recovers messages, or opens its listeners.
    Starting,
    /// Another node of the cluster leads: this one applies its records.
    Following,
    /// The daemon is shutting down.
    Stopping,
    /// Drain mode: waiting messages are delivered, submissions are refused.
    Draining,
    /// Free disk space is below the watermark: submissions are refused.
    DiskLow,
    /// The disk has not finished a commit for seconds. No request is answered until it is finished.
    StoreStalled,
    /// The majority of etcd does not answer this leader, or another node has taken its place: no request is answered.
    NoMajority,
    /// The core has not answered for seconds. No message moves until it does.
    CoreStalled,
}

/// `GET /v1/ready`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Readiness {
    /// `ready` or `not-ready`.
    #[schema(inline)]
    pub status: ReadinessStatus,
    /// All reasons; empty if the daemon is ready.
    pub reasons: Vec<NotReady>,
    /// The URL of the admin API of the node that leads the cluster; only on a node that follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<String>,
}

impl Readiness {
    /// Ready if there are no reasons.
    #[must_use]
    pub fn of(reasons: Vec<NotReady>) -> Self {
        let status = if reasons.is_empty() { ReadinessStatus::Ready } else { ReadinessStatus::NotReady };
        Self { status, reasons, leader: None }
    }
}
