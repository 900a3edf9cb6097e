//! The door of subscribers who have an account on the machine, or come to it by ssh: a Unix socket, and `switchyard sms`, the
//! command that speaks to it.
//!
//! * **The system says who calls** (`SO_PEERCRED`), the configuration what that user may do: act as some numbers, or as any
//!   for an ssh server's forced commands, or look on as an operator. A connection acts as one number.
//! * **A submission is answered after it is durable**, and may be repeated under its key.
//! * **A subscriber reads what is from it or for it, and nothing else**; an operator sees all messages, and no text.
//!
//! Nothing here holds messages: what lives is in the store, what has ended there or in the archive, and an inbox is only the
//! list of what was for a number.
#![forbid(unsafe_code)]

mod command;
mod connection;
mod door;
mod inbox;
mod number;
mod options;
mod permit;
mod records;
mod segments;
mod submission;
#[cfg(test)]
mod tests;
mod watch;
pub mod wire;

pub use command::Command;
pub use door::{Ports, Shell, ShellError, ShellState};
pub use number::{AsTyped, Number, Numbering, ParseNumberError, bare};
pub use options::{
    Deliver, Inboxes, NumberRange, Numbers, ParseNumberRangeError, Principal, ShellOptions, UserOptions,
};
pub use records::{Asked, Ended, Kept, Older, Records};
pub use watch::Watch;
