//! The appliance image.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `GET /v1/appliance`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = ImageStatus)]
pub struct ImageStatusView {
    /// Version of the running system.
    #[schema(example = "0.1.0")]
    pub version: String,
    /// The slot of the running system: `A` or `B`.
    pub slot: String,
    /// The slot that the next boot uses.
    pub next: String,
    /// Both slots.
    pub slots: Vec<SystemSlotView>,
    /// Whether the running system has not been found healthy yet. If it never is, the host boots the other slot again.
    pub on_trial: bool,
    /// Seconds since boot.
    pub up_seconds: u64,
    /// Whether the clock is synchronised with a time server.
    pub clock_synchronised: bool,
    /// Used octets of the data partition.
    pub data_used: u64,
    /// Size of the data partition, in octets.
    pub data_size: u64,
}

/// A slot that holds a system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = SystemSlot)]
pub struct SystemSlotView {
    /// `A` or `B`.
    pub name: String,
    /// The version last found healthy in this slot; null if none was.
    #[schema(required)]
    pub healthy: Option<String>,
}

/// The result of an operation on the appliance image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OperateResult {
    /// The message of the operate program.
    pub message: String,
    /// Whether the host reboots now.
    pub restarts: bool,
}

/// Options of a factory reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FactoryResetRequest {
    /// The treatment of messages, balances, number pools and the archive.
    pub state: StateRetention,
}

/// The treatment of the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StateRetention {
    /// The state is kept. Configuration, users, tokens and keys are deleted.
    Keep,
    /// Everything is deleted.
    Drop,
}
