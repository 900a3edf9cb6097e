//! The data model that all crates share: messages, addresses, peers, DLRs, queue actions, ledger and number pools.
//!
//! Nothing here does I/O, reads a clock or knows a protocol. A word means one thing in the whole project; see the
//! glossary in docs/glossary.md.
#![forbid(unsafe_code)]

mod address;
mod admin_action;
mod age_clock;
mod batch;
mod content_erasure;
mod delivery_decision;
mod directory;
mod dlr;
mod hex;
mod id;
mod ledger;
mod lookup;
mod message;
mod message_changes;
mod notice;
mod number_display;
mod observation;
mod outcome;
mod pace;
mod plugin;
mod pool_number;
mod pool_operation;
mod pool_record;
mod pool_request;
mod price_state;
mod queue_action;
mod random;
mod receipt;
mod recorded_call;
mod remote_attempt;
mod resolution;
mod screening;
mod sealed_content;
mod segment;
mod sender_request;
mod tenants;
mod text_escape;
mod time;
mod tlv;
mod trace;
mod trace_form;
mod verdict;
mod wording;

pub use address::{Address, AddressBytes};
pub use admin_action::AdminActionKind;
pub use age_clock::AgeClock;
pub use batch::{
    Batch, EarlierLeg, IdempotencyKeyRecord, JournalPart, MessageProgress, OperationRecord, OptOut,
    OrphanDlrRecord, PaceDay, PoolBatch, PoolPurge, PoolRecord, RecoveredMessage, RecoveredRecord,
    SubmitAttempt, SubmittedSegment, WaitState,
};
pub use content_erasure::ContentErasure;
pub use delivery_decision::{Attempt, DeliveryDecision, NextStep, PeerAdvice};
pub use directory::{Directory, DirectoryFull};
pub use dlr::{Dlr, DlrState};
pub use hex::{from_hex, hex};
pub use id::{IdempotencyKey, LinkId, MessageId, ParseMessageIdError, PeerId, PeerMessageId};
pub use ledger::{Balance, Charge, LedgerChange, LedgerOperation, Quote, Settlement, parse_millionths};
pub use lookup::{Lookup, LookupNumber, LookupResult};
pub use message::{Direction, DlrContent, DlrRequest, Message, MessageKind, Priority, SUBMISSION_IDS, Text};
pub use message_changes::MessageChanges;
pub use notice::{Notice, NoticeKind};
pub use number_display::NumberDisplay;
pub use observation::{ObservationKind, PeerObservation};
pub use outcome::{ErrorClass, Outcome, Refusal, SubmitTicket};
pub use pace::{
    DefinedPeriod, PaceBucketDefinition, PaceBucketUse, PaceUnit, SendHours, SendWindowDefinition,
    SendWindowUse, parse_minute_of_day,
};
pub use plugin::{Hook, PluginVersion};
pub use pool_number::{NumberEvent, NumberState, ParsePoolNumberError, PoolNumber};
pub use pool_operation::{
    AcquireRequest, LeaseTicket, ParseStrategyError, PoolOperation, PoolOutcome, PoolRefusal, PoolSettings,
    Strategy,
};
pub use pool_record::{JournalEntry, NumberRow, ParsePoolNameError, PoolChange, PoolId, PoolName};
pub use pool_request::{NumberStatus, PoolAnswer, PoolCounts, PoolRequest, PoolSummary};
pub use price_state::PriceState;
pub use queue_action::{QueueAction, QueueActionId, QueueActionKind, QueueActionScope, QueueActionState};
pub use random::Random;
pub use receipt::{AcceptedSubmission, DlrFacts, ReceiptDecision, ReceiptEvent, ReceiptVerdict};
pub use recorded_call::{CallRecord, RecordedReceiptCall, RecordedSubmitCall, SubmitResult};
pub use remote_attempt::RemoteAttempt;
pub use resolution::{Imsi, Resolution, Subscriber};
pub use screening::{ScreenVerdict, Screening};
pub use sealed_content::SealedContent;
pub use segment::Segment;
pub use sender_request::{SenderFallback, SenderRequest};
pub use tenants::{AccountScope, ConfiguredLimits, HIDDEN_PEER, MAX_TENANT_DEPTH, TenantBranch, TenantTree};
pub use text_escape::{escape, replace_nul, unescape};
pub use time::{Moment, Now, Timestamp, parse_duration};
pub use tlv::{parse_tlv_tag, put_tlv, tlvs};
pub use trace::{FinalRecord, FinalState, Step, StepKind, content_erased_at};
pub use verdict::{DroppedAs, Leg, RejectReason, RoutingDecision, Verdict};
