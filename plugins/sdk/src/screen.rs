//! Screens: plugins that decide whether a message may pass.
//!
//! ```ignore
//! use switchyard_sdk::screen::{Decision, pass, quarantine};
//! use switchyard_sdk::{Message, Screen, details};
//!
//! struct Word(String);
//!
//! impl Screen for Word {
//!     fn configure(document: &str) -> Result<Self, String> {
//!         Ok(Self(document.trim().to_owned()))
//!     }
//!     fn screen(&self, _message: &Message) -> Decision {
//!         match details::text() {
//!             Some(text) if text.contains(&self.0) => quarantine().because("the word"),
//!             _ => pass(),
//!         }
//!     }
//! }
//!
//! switchyard_sdk::export_screen!(Word);
//! ```

use crate::bindings::screen::exports::switchyard::hooks::{batch_screening, screening};
use crate::decision_changes::changes_of_decisions;
use crate::{Attribute, Change, Message, RejectReason};

#[doc(hidden)]
pub use batch_screening::Guest as BatchGuest;
#[doc(hidden)]
pub use screening::Guest;
pub use screening::{Decision, DroppedAs, Verdict};

/// A screen. It may use [`log`](crate::log), [`clock`](crate::clock), [`tables`](crate::tables),
/// [`counters`](crate::counters), [`body`](crate::body) and [`details`](crate::details).
pub trait Screen: Sized {
    /// Reads a policy document.
    ///
    /// # Errors
    /// The mistake, its position, and the correction.
    fn configure(document: &str) -> Result<Self, String>;

    /// Decides about one message. The decision must depend only on the document, the message and the host's answers.
    fn screen(&self, message: &Message) -> Decision;
}

fn decision(verdict: Verdict) -> Decision {
    Decision { verdict, note: None, changes: Vec::new(), text: None }
}

/// Let the next screen decide. A message that all screens pass continues to the routers.
#[must_use]
pub fn pass() -> Decision {
    decision(Verdict::Pass)
}

/// Refuse the message.
#[must_use]
pub fn reject(reason: RejectReason) -> Decision {
    decision(Verdict::Reject(reason))
}

/// Accept the message, and keep it until an admin releases or purges it, or its validity ends.
#[must_use]
pub fn quarantine() -> Decision {
    decision(Verdict::Quarantine)
}

/// Accept the message, charge nothing, and do not deliver it. The DLR, if the submitter wants one, has this state.
#[must_use]
pub fn drop_as(reported: DroppedAs) -> Decision {
    decision(Verdict::Drop(reported))
}

changes_of_decisions!(Decision);

impl Decision {
    /// The same decision, and later plugins see this attribute of the message.
    #[must_use]
    pub fn tag(mut self, name: &str, value: &str) -> Self {
        self.changes.push(Change::SetAttribute(Attribute { name: name.to_owned(), value: value.to_owned() }));
        self
    }

    /// The same decision, but the message continues with this text.
    #[must_use]
    pub fn with_text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }
}

/// Exports a type as the plugin's screen.
#[macro_export]
macro_rules! export_screen {
    ($screen:ty) => {
        const _: () = {
            $crate::__configured_guest!($screen, Screen, ScreenGuest, |cell| {
                fn screen(message: $crate::Message) -> $crate::screen::Decision {
                    PLUGIN.with(|cell| $crate::Screen::screen(cell.get(), &message))
                }
            });
            impl $crate::screen::BatchGuest for Exported {
                fn load(batch: $crate::MessageBatch) {
                    LOADED.with_borrow_mut(|loaded| loaded.load(batch));
                }
                fn screen_loaded(index: u32) -> $crate::screen::Decision {
                    LOADED.with_borrow_mut(|loaded| {
                        PLUGIN.with(|cell| $crate::Screen::screen(cell.get(), loaded.message(index).0))
                    })
                }
            }
            std::thread_local! {
                static LOADED: std::cell::RefCell<$crate::loaded::LoadedMessages> = std::cell::RefCell::default();
            }
            $crate::bindings::screen::export_screen_component!(Exported with_types_in $crate::bindings::screen);
        };
    };
}
