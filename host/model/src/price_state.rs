use crate::{FinalRecord, Quote, StepKind};
use serde::{Deserialize, Serialize};

/// The settlement of a finished message's price.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum PriceState {
    /// The message is free.
    Free = 0,
    /// Captured.
    Captured = 1,
    /// Refunded.
    Refunded = 2,
    /// The trace contains no settlement.
    Open = 3,
}

impl PriceState {
    /// All states, in the order of their octets.
    pub const ALL: [Self; 4] = [Self::Free, Self::Captured, Self::Refunded, Self::Open];

    /// The name in the archive and the API.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Captured => "captured",
            Self::Refunded => "refunded",
            Self::Open => "open",
        }
    }

    /// The state of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// From the octet on disk.
    #[must_use]
    pub fn from_octet(octet: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| *state as u8 == octet)
    }

    /// Reads the settlement from the trace of a finished message.
    #[must_use]
    pub fn of(quote: &Quote, ended: &FinalRecord) -> Self {
        if quote.charge.is_none() {
            return Self::Free;
        }
        let settled = ended.steps.iter().rev().find_map(|step| match step.kind {
            StepKind::Charged { .. } => Some(Self::Captured),
            StepKind::Refunded { .. } => Some(Self::Refunded),
            _ => None,
        });
        settled.unwrap_or(Self::Open)
    }
}
