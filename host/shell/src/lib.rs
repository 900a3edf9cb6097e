//! The shell: SMS for subscribers with a login or ssh access to the appliance, over a Unix socket with `switchyard sms`
//! as its client.
//!
//! * **The operating system identifies the caller** (`SO_PEERCRED`), and the configuration defines the user's
//!   permissions: to act as certain numbers, as any number (for an ssh server's forced commands), or as an operator. A
//!   connection acts as one number.
//! * **A submission is answered after it is durable**, and may be repeated under its idempotency key.
//! * **A subscriber reads only messages from or for their own number**; an operator sees all messages, without text.
//!
//! The shell stores no messages. Pending messages are in the store, finished ones in the store or the archive, and an
//! inbox is the list of messages for a number.
#![forbid(unsafe_code)]

mod connection;
mod inbox;
mod mailbox_index;
mod number;
mod options;
mod records;
mod segments;
mod server;
mod sms_command;
mod submission;
#[cfg(test)]
mod tests;
mod user_permissions;
pub mod wire;

pub use mailbox_index::MailboxIndex;
pub use number::{LiteralNumbers, NumberParser, ParseNumberError, SubscriberNumber, strip_separators};
pub use options::{
    AllowedNumbers, InboxDelivery, InboxNumbers, NumberRange, ParseNumberRangeError, ShellOptions,
    ShellPrincipal, ShellUserOptions,
};
pub use records::{ShellArchivePage, ShellArchiveQuery, ShellRecord, ShellRecordEnd, ShellRecordSource};
pub use server::{ShellDeps, ShellError, ShellServer, ShellState};
pub use sms_command::SmsCommand;
