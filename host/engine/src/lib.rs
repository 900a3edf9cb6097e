//! The life of a message: queues, timers, windows, retries, receipts. Pure: no I/O, no clock, no randomness of its own.
//!
//! The owner feeds [`Event`]s and the time into [`Engine::apply`], calls [`Engine::settle`] once per run of events and
//! [`Engine::seal`] once per batch, and finds in [`Output`] a [`Batch`] of writes and the [`Command`]s that may leave **only after that batch is
//! durable**. That order is the promise of the whole appliance: nobody is told anything that a power cut could undo.
#![forbid(unsafe_code)]

mod accept;
mod batch;
mod command;
mod consent;
mod counts;
mod custody;
mod deciding;
mod dispatch;
mod ending;
mod engine;
mod event;
mod groups;
mod index;
mod keys;
mod lane;
mod ledger;
mod money;
mod obeying;
mod order_work;
mod orders;
mod outcome;
mod pace;
mod peer;
mod pools;
mod random;
mod receipts;
mod recover;
mod replacing;
mod requests;
mod resolving;
mod senders;
mod settings;
mod slab;
mod status;
mod strangers;
mod submissions;
mod subscriber_survey;
mod subscribers;
mod survey;
mod timer;
mod turns;

pub use batch::{
    Batch, Consent, Handed, JournalPart, KeyRecord, OperationRecord, ParkedRecord, Part, PoolRecord,
    Progress, Recovered, Remembered, Waiting,
};
pub use command::{Answer, Command, LedgerAnswer, OrderRefusal, Output, QueriedState, RefusedSubmission};
pub use counts::{ANSWER_BOUNDS, Counts};
pub use engine::{Engine, Totals};
pub use event::{Event, ReplyTo};
pub use obeying::{Hand, OrderWish};
pub use pools::{Pool, PoolBatch, PoolLimits, Purge, Reply, step};
pub use resolving::ResolvingStatus;
pub use settings::{PeerSettings, Settings, Uncertainty};
pub use status::{Before, Brake, Doing, MessageStatus, PeerStatus};
pub use subscriber_survey::{SubscriberNames, SubscriberSurvey, SubscriberTurn};
pub use survey::Survey;
