//! The message engine: queues, timers, windows, retries, DLRs. It performs no I/O, reads no clock and holds no
//! randomness of its own.
//!
//! The owner passes [`Event`]s and the time to [`Engine::apply`], calls [`Engine::advance`] once per run of events
//! and [`Engine::seal`] once per batch. [`Output`] then holds a [`model::Batch`] of writes and the [`EngineCommand`]s, which
//! may leave **only after that batch is durable**: so the appliance never confirms anything that a power failure could undo.
#![forbid(unsafe_code)]

mod accept;
mod admin_actions;
mod charging;
mod command;
mod counts;
mod day_quotas;
mod decision_limits;
mod delivery_policy;
mod delivery_policy_state;
mod dispatch;
mod dlrs;
mod engine;
mod event;
mod finish;
mod idempotency_keys;
mod index;
mod lane;
mod ledger;
mod leg_subscriber;
mod lookups;
mod lost_content;
mod observations;
mod opt_out;
mod outcome;
mod pace;
mod pace_limit;
mod pace_limits;
mod pacing;
mod peer;
mod peer_groups;
mod pools;
mod quarantine;
mod queue_actions;
mod receipt_state;
mod receipts;
mod recorded_calls;
mod recover;
mod remote_attempt_index;
mod remote_attempts;
mod replace_if_present;
mod requery;
mod resolver;
mod resolver_queue;
mod retry_schedule;
mod sender_numbers;
mod serial_delivery;
mod settings;
mod slab;
mod status;
mod submissions;
mod submitter_requests;
mod subscriber_cache;
mod subscriber_lock;
mod subscriber_survey;
mod timer;
mod token_bucket;
mod uncertain;

pub use command::{
    EngineAnswer, EngineCommand, LedgerAnswer, Output, QueriedState, QueueActionRefusal, RefusedSubmission,
};
pub use counts::{ANSWER_BOUNDS, PeerCounts};
pub use day_quotas::DayQuotaStatus;
pub use engine::{Engine, Totals};
pub use event::{AdminAction, Event, NewQueueAction, ReplyTo};
pub use lookups::LookupStatus;
pub use lost_content::CONTENT_LOST_ERROR;
pub use pacing::{PaceBucketStatus, PacedBy};
pub use pools::{Pool, PoolLimits, StepReply, step};
pub use queue_actions::QueueActionSurvey;
pub use resolver_queue::ResolverStatus;
pub use settings::{
    BranchLimits, DayQuotaSettings, PaceBucketSettings, PaceNames, PacePeriod, PaceSettings, PeerSettings,
    SendWindowSettings, Settings, UncertainPolicy,
};
pub use status::{BlockedBy, LockHolder, MessageState, MessageStatus, PeerStatus};
pub use subscriber_survey::{SubscriberIdentity, SubscriberLockStatus, SubscriberSurvey};
