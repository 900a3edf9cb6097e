//! The words that every room of the house shares.
//!
//! Nothing here does I/O, reads a clock or knows a protocol. A word means one thing in the whole project; the
//! glossary of ARCHITECTURE.md is the authority.
#![forbid(unsafe_code)]

mod address;
mod ages;
mod delivery;
mod directory;
mod id;
mod message;
mod money;
mod order;
mod outcome;
mod pool;
mod pool_operation;
mod pool_record;
mod pool_request;
mod receipt;
mod resolution;
mod segment;
mod sender;
mod time;
mod trace;
mod verdict;

pub use address::{Address, AddressBytes};
pub use ages::AgeClock;
pub use delivery::{Attempt, Next, NextStep, PeerAdvice};
pub use directory::{Directory, DirectoryFull};
pub use id::{LinkId, MessageId, ParseMessageIdError, PeerId, PeerMessageId, SubmissionKey};
pub use message::{Kind, Message, Priority, ReceiptRequest, ReceiptText, SUBMISSION_IDS, Text};
pub use money::{Balance, Charge, LedgerChange, LedgerOperation, Quote, Settlement};
pub use order::{Deed, Order, OrderId, OrderKind, OrderState, Scope};
pub use outcome::{ErrorClass, Outcome, Refusal, Ticket};
pub use pool::{NumberEvent, NumberState, ParsePoolNumberError, PoolNumber};
pub use pool_operation::{
    ParseStrategyError, PoolCall, PoolOperation, PoolOutcome, PoolRefusal, PoolSettings, PoolTicket, Strategy,
};
pub use pool_record::{NumberRow, ParsePoolNameError, PoolChange, PoolEntry, PoolId, PoolName};
pub use pool_request::{NumberStanding, PoolAnswer, PoolCounts, PoolRequest, PoolSummary};
pub use receipt::{Receipt, ReceiptState};
pub use resolution::{Imsi, Resolution, Subscriber};
pub use segment::Segment;
pub use sender::{NoSender, SenderWish};
pub use time::{Moment, Now, Timestamp, parse_duration};
pub use trace::{Final, FinalState, Step, StepKind};
pub use verdict::{DecidedBy, Hook, Leg, RejectReason, Routed, Verdict};
