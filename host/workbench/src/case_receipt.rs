//! Questions to receipt policies in cases: submissions, events and decisions.

use model::{AcceptedSubmission, DlrFacts, DlrState, PeerId, ReceiptDecision, ReceiptEvent, ReceiptVerdict};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::time::Duration;

/// A submission that a peer has accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CaseAcceptedSubmission {
    /// Attempts so far, over all legs.
    #[serde(default = "first")]
    pub attempts: u16,
    /// The leg's index.
    #[serde(default)]
    pub leg: u8,
    /// Number of legs.
    #[serde(default = "single")]
    pub legs: u8,
    /// The peer.
    pub peer: String,
    /// Time since the message was accepted.
    #[serde(default)]
    pub age_ms: u64,
    /// Remaining validity.
    #[serde(default = "day")]
    pub left_ms: u64,
}

fn first() -> u16 {
    1
}

fn single() -> u8 {
    1
}

fn day() -> u64 {
    86_400_000
}

/// An event of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaseEvent {
    /// The peer has accepted it.
    Accepted,
    /// A DLR came.
    Dlr(CaseDlr),
    /// The wait has passed.
    Timeout,
}

/// A DLR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CaseDlr {
    /// The state.
    pub state: CaseDlrState,
    /// Whether it is final; default: yes, unless the state is scheduled, enroute or accepted.
    #[serde(default, rename = "final", skip_serializing_if = "Option::is_none")]
    pub is_final: Option<bool>,
    /// The operator's error code.
    #[serde(default)]
    pub error: u16,
    /// SMPP network_error_code, as a number of three octets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_error: Option<u32>,
    /// Time since the submit attempt.
    #[serde(default)]
    pub latency_ms: u64,
}

/// The state of a DLR, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaseDlrState(pub DlrState);

impl CaseDlrState {
    /// All states.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..=u8::MAX).map_while(DlrState::from_octet).map(Self)
    }
}

impl Serialize for CaseDlrState {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.0.name())
    }
}

impl<'de> Deserialize<'de> for CaseDlrState {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        let found = Self::all().find(|state| state.0.name() == name);
        found.ok_or_else(|| {
            let all: Vec<_> = Self::all().map(|state| state.0.name()).collect();
            serde::de::Error::custom(format!(
                "{name:?} is not a DLR state; the states are {}",
                all.join(", ")
            ))
        })
    }
}

/// A receipt policy's step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaseReceiptStep {
    /// The DLR counts as it is.
    Accept,
    /// Try the next leg.
    NextLeg,
    /// The DLR counts as one with another state and error code.
    Remap(CaseRemap),
    /// The DLR is ignored.
    Suspect,
}

/// Another state and error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CaseRemap {
    /// The state.
    pub state: CaseDlrState,
    /// The error code.
    #[serde(default)]
    pub error: u16,
}

/// At most the largest integer of a file of cases, which is TOML.
fn milliseconds(time: Duration) -> u64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX).unsigned_abs()
}

impl CaseAcceptedSubmission {
    pub(crate) fn to_model(&self, peer: PeerId) -> AcceptedSubmission {
        AcceptedSubmission {
            attempts: self.attempts,
            leg: (self.leg, self.legs),
            peer,
            age: Duration::from_millis(self.age_ms),
            left: Duration::from_millis(self.left_ms),
        }
    }

    pub(crate) fn of(submission: AcceptedSubmission, peer: String) -> Self {
        Self {
            attempts: submission.attempts,
            leg: submission.leg.0,
            legs: submission.leg.1,
            peer,
            age_ms: milliseconds(submission.age),
            left_ms: milliseconds(submission.left),
        }
    }
}

impl CaseEvent {
    pub(crate) fn to_model(self) -> ReceiptEvent {
        match self {
            Self::Accepted => ReceiptEvent::Accepted,
            Self::Timeout => ReceiptEvent::Timeout,
            Self::Dlr(dlr) => {
                let state = dlr.state.0;
                ReceiptEvent::Dlr(DlrFacts {
                    is_final: dlr.is_final.unwrap_or(state.is_final() && state != DlrState::Accepted),
                    state,
                    error: dlr.error,
                    network_error: dlr.network_error.map(|code| {
                        let [_, one, two, three] = code.to_be_bytes();
                        [one, two, three]
                    }),
                    latency: Duration::from_millis(dlr.latency_ms),
                })
            }
        }
    }

    pub(crate) fn of(event: ReceiptEvent) -> Self {
        match event {
            ReceiptEvent::Accepted => Self::Accepted,
            ReceiptEvent::Timeout => Self::Timeout,
            ReceiptEvent::Dlr(dlr) => Self::Dlr(CaseDlr {
                state: CaseDlrState(dlr.state),
                is_final: Some(dlr.is_final),
                error: dlr.error,
                network_error: dlr
                    .network_error
                    .map(|[one, two, three]| u32::from_be_bytes([0, one, two, three])),
                latency_ms: milliseconds(dlr.latency),
            }),
        }
    }
}

/// The step and the wait of a decision.
pub(crate) fn step_and_wait(decision: &ReceiptDecision) -> (CaseReceiptStep, Option<u64>) {
    let step = match decision.verdict {
        ReceiptVerdict::Accept => CaseReceiptStep::Accept,
        ReceiptVerdict::NextLeg => CaseReceiptStep::NextLeg,
        ReceiptVerdict::Suspect => CaseReceiptStep::Suspect,
        ReceiptVerdict::Remap { state, error } => {
            CaseReceiptStep::Remap(CaseRemap { state: CaseDlrState(state), error })
        }
    };
    (step, decision.wait.map(milliseconds))
}
