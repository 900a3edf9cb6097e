//! Receipt policies: plugins that choose the next step after a DLR, or after its absence.
//!
//! ```ignore
//! use std::time::Duration;
//! use switchyard_sdk::receipt::{Decision, Event, Submission, accept, next_leg};
//! use switchyard_sdk::{Message, Receipt};
//!
//! struct Minute;
//!
//! impl Receipt for Minute {
//!     fn configure(_document: &str) -> Result<Self, String> {
//!         Ok(Self)
//!     }
//!     fn decide(&self, _message: &Message, submission: &Submission, event: &Event) -> Decision {
//!         match event {
//!             Event::Accepted => accept().ask_again_after(Duration::from_secs(60)),
//!             Event::Timeout => next_leg().because(format!("no DLR from {}", submission.peer)),
//!             Event::Dlr(_) => accept(),
//!         }
//!     }
//! }
//!
//! switchyard_sdk::export_receipt!(Minute);
//! ```

use crate::Message;
use crate::bindings::receipt::exports::switchyard::hooks::receipts;
use std::time::Duration;

#[doc(hidden)]
pub use receipts::Guest;
pub use receipts::{Decision, Dlr, DlrState, Event, Remapped, Step, Submission};

/// A receipt policy. It may use [`log`](crate::log), [`clock`](crate::clock), [`tables`](crate::tables),
/// [`peers`](crate::peers), [`quality`](crate::quality) and [`details`](crate::details).
pub trait Receipt: Sized {
    /// Reads a policy document.
    ///
    /// # Errors
    /// The mistake, its position, and the correction.
    fn configure(document: &str) -> Result<Self, String>;

    /// Chooses the next step after a DLR, or after its absence.
    fn decide(&self, message: &Message, submission: &Submission, event: &Event) -> Decision;
}

fn decision(step: Step) -> Decision {
    Decision { step, wait: None, note: None }
}

/// Let the next policy decide. If all accept, the DLR counts as it is.
#[must_use]
pub fn accept() -> Decision {
    decision(Step::Accept)
}

/// Try the next leg; if there is none, as [`accept`].
#[must_use]
pub fn next_leg() -> Decision {
    decision(Step::NextLeg)
}

/// The DLR counts as one with this state and error code.
#[must_use]
pub fn remap(state: DlrState, error: u16) -> Decision {
    decision(Step::Remap(Remapped { state, error }))
}

/// Ignore the DLR; the message keeps waiting.
#[must_use]
pub fn suspect() -> Decision {
    decision(Step::Suspect)
}

impl Decision {
    /// The same decision; the policy is called again if no final DLR comes within this time.
    #[must_use]
    pub fn ask_again_after(mut self, time: Duration) -> Self {
        self.wait = Some(crate::milliseconds(time));
        self
    }

    /// The same decision, with a note for the trace.
    #[must_use]
    pub fn because(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }
}

/// Exports a type as the plugin's receipt policy.
#[macro_export]
macro_rules! export_receipt {
    ($policy:ty) => {
        const _: () = {
            $crate::__configured_guest!($policy, Receipt, ReceiptGuest, |cell| {
                fn decide(
                    message: $crate::Message,
                    submission: $crate::receipt::Submission,
                    event: $crate::receipt::Event,
                ) -> $crate::receipt::Decision {
                    PLUGIN.with(|cell| $crate::Receipt::decide(cell.get(), &message, &submission, &event))
                }
            });
            $crate::bindings::receipt::export_receipt_component!(
                Exported with_types_in $crate::bindings::receipt
            );
        };
    };
}
