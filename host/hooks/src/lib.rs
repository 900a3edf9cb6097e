//! Plugin host: runs WebAssembly components that implement the appliance's hooks.
//!
//! [`Hooks`] stores plugin versions, activates bindings and calls the hooks on the caller's thread: screen (whether a message may
//! pass), lookup (facts about its number), router (its next step), resolver (the subscriber of a number), delivery policy
//! (the step after a failed attempt), biller (the price of a message) and peer (its submission).
//!
//! A plugin that traps, exceeds its deadline or exhausts its memory costs one call and one instance; the binding's
//! `on-fault` decides what happens to the message. A candidate chain can run in addition to the live chain, in shadow or as
//! a canary. A chain with too many faults is rolled back automatically.

mod artefact;
mod batch;
mod binding;
mod bindings;
mod call_counts;
mod call_observer;
mod chain;
mod chain_positions;
mod compile;
mod contract;
mod deadline;
mod debug_info;
mod dry_run;
mod error;
mod fault;
mod fault_examples;
mod fault_reporter;
mod front_end_calls;
mod generation;
mod guest_function;
mod hook_slot;
mod hook_state;
mod hook_status;
mod hooks;
mod host_answer;
mod host_call_log;
mod host_calls;
mod host_time;
mod library;
mod linked_component;
mod lookup_cache;
mod memory_limits;
mod message_text;
mod new_component;
mod peer_calls;
mod policy_reference;
mod profile;
mod recorded_calls;
mod running_generations;
mod runtime;
mod shadow;
mod signature;
mod stack;
mod tenant_bindings;
mod tenant_costs;
mod tenant_instances;
mod tenant_lines;
mod text_limits;
mod used_grants;
mod version_lookup;
mod warm_instances;
mod wasi;
mod worlds;

pub use crate::host_calls::numbers::{PoolSnapshots, PoolState};
pub use crate::host_calls::peers::{PeerSnapshots, PeerState};
pub use crate::host_calls::tables::PrefixTable;
pub use crate::host_calls::{AccountAttributes, HostInterface, HostServices, PeerSecrets};
pub use crate::policy_reference::{ActivationConditions, PolicyReference};
pub use api::{Binding, BindingChange, BindingRecord, Comparison, Grants, InstanceUse, OnFault, Tolerance};
pub use binding::{CandidateRecord, TrialMode};
pub use call_counts::CallCounts;
pub use call_observer::{CallObserver, PluginCall};
pub use contract::WitVersion;
pub use debug_info::strip_debug_info;
pub use dry_run::{
    DryRun, DryRunOutcome, LookupOutcome, RepeatedReceiptCall, RepeatedSubmitCall, ScreenOutcome,
    TracedDryRun,
};
pub use error::HookError;
pub use fault::{Fault, FaultKind};
pub use fault_examples::{FailedQuestion, FaultDetails};
pub use front_end_calls::{
    FrontEndDlrPush, FrontEndDlrSignature, FrontEndOutcome, FrontEndReading, FrontEndRefusal,
    FrontEndRequest, FrontEndResult, FrontEndSubmission, FrontEndSubmit, RefusalReason,
};
pub use hook_status::{CandidateState, HookStatus, PluginCounts};
pub use hooks::{Hooks, HooksOptions, LookupStep, RoutingStep, ScreeningStep};
pub use host_answer::HostAnswer;
pub use library::{VersionInfo, is_plugin_name};
pub use lookup_cache::{LookupCache, LookupCacheCounts, LookupCacheOptions};
pub use new_component::NewComponent;
pub use peer_calls::{
    CallbackAnswer, CallbackRequest, IncomingMessage, PeerReceipt, PeerSubmission, Submitted,
};
pub use profile::{Profile, ProfiledFrame, ProfiledStack, Profiler};
pub use recorded_calls::policy_digest;
pub use signature::{Trust, TrustedKey};
pub use tenant_bindings::with_tenants_of;
pub use tenant_costs::TenantCalls;
pub use tenant_lines::TenantLines;
pub use worlds::{Decision, FrontEndCall, NumberAnswer, PluginResponse, ScreenDecision};
