//! Fault examples: the questions on which a version failed, for diagnosis.
//!
//! They are kept in memory by version, not by generation, so that they outlive an automatic rollback.

use crate::debug_info::DebugInfo;
use crate::fault::Fault;
use crate::front_end_calls::FrontEndRequest;
use crate::host_answer::HostAnswer;
use crate::peer_calls::{CallbackRequest, PeerSubmission};
use api::{Binding, FaultExample, FaultyVersion};
use model::{
    AcceptedSubmission, Attempt, Hook, Leg, LookupNumber, Message, MessageId, PluginVersion, ReceiptEvent,
    Settlement, Timestamp,
};
use parking_lot::Mutex;
use std::cell::OnceCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Maximum number of versions with stored faults, and of examples for each. The latest are kept.
const MAX_VERSIONS: usize = 16;
const MAX_EXAMPLES: usize = 8;

/// The message id, set when the message is accepted: routers and billers are called before that.
pub(crate) type SharedMessageId = Arc<OnceLock<MessageId>>;

/// The shared message id of one question, created on first use.
#[derive(Debug, Default)]
pub(crate) struct LazyMessageId(OnceCell<SharedMessageId>);

impl LazyMessageId {
    /// Continues with the shared id of an earlier question about the same message, if any.
    pub(crate) fn resume(shared_id: Option<SharedMessageId>) -> Self {
        Self(shared_id.map(OnceCell::from).unwrap_or_default())
    }

    /// The shared id. If `id` is known, it is set at once.
    pub(crate) fn shared(&self, id: Option<MessageId>) -> SharedMessageId {
        self.0.get_or_init(|| Arc::new(id.map(OnceLock::from).unwrap_or_default())).clone()
    }

    /// The shared id, if it was used.
    pub(crate) fn into_shared(self) -> Option<SharedMessageId> {
        self.0.into_inner()
    }
}

/// The question of a call that failed, in host types.
#[derive(Debug, Clone)]
pub enum FailedQuestion {
    /// Whether a message may pass.
    Screen(Box<Message>),
    /// The lookup of a number.
    LookUp(LookupNumber),
    /// The routing of a message.
    Route(Box<Message>),
    /// The subscriber of a number.
    Resolve(String),
    /// The step after a failed attempt.
    Next(Box<(Message, Attempt)>),
    /// The step after a DLR, or after its absence.
    Receipt(Box<(Message, AcceptedSubmission, ReceiptEvent)>),
    /// The price of a message, with the leg that is tried first.
    Price(Box<(Message, Option<Leg>)>),
    /// The results of charges.
    Settle(Vec<Settlement>),
    /// A submit attempt at a peer.
    Submit(Box<PeerSubmission>),
    /// A peer's callback, without its headers.
    Callback(Box<CallbackRequest>),
    /// A request to a front end: only method and path, since the other parts may contain a password.
    Read(Box<FrontEndRequest>),
}

/// A failed call, with all its inputs.
#[derive(Debug, Clone)]
pub struct FaultDetails {
    /// The version that failed.
    pub by: Arc<PluginVersion>,
    /// Its binding, with the policy document.
    pub binding: Arc<Binding>,
    /// The time of the call.
    pub at: Timestamp,
    /// The fault.
    pub fault: Fault,
    /// The question, with unmasked numbers and texts.
    pub question: FailedQuestion,
    /// The host's answers, as far as they were recorded.
    pub host_answers: Vec<HostAnswer>,
}

/// A fault to store.
pub(crate) struct NewFault {
    pub(crate) details: FaultDetails,
    /// The question with masked numbers.
    pub(crate) description: String,
    pub(crate) shared_id: SharedMessageId,
}

#[derive(Clone)]
struct StoredFault {
    id: u64,
    details: FaultDetails,
    question: String,
    shared_id: SharedMessageId,
}

#[derive(Clone)]
struct FaultHistory {
    hook: Hook,
    by: Arc<PluginVersion>,
    faults: u64,
    last: VecDeque<StoredFault>,
}

/// Stored faults by version; the version that failed last is at the end.
#[derive(Default)]
pub(crate) struct FaultExamples {
    histories: Mutex<Vec<FaultHistory>>,
    /// The number of the last fault of each hook.
    last_id: [AtomicU64; Hook::ALL.len()],
}

impl FaultExamples {
    /// Stores a fault, unless it is the host's own and so not caused by the version.
    pub(crate) fn add(&self, hook: Hook, new: NewFault) {
        let NewFault { details, description, shared_id } = new;
        if details.fault.is_host_fault() {
            return;
        }
        let index = Hook::ALL.iter().position(|one| *one == hook).unwrap_or_default();
        let id = self.last_id[index].fetch_add(1, Relaxed) + 1;
        let mut all = self.histories.lock();
        let known = all.iter().position(|one| one.hook == hook && *one.by == *details.by);
        let mut faulty = match known {
            Some(place) => all.remove(place),
            None => {
                let by = details.by.clone();
                FaultHistory { hook, by, faults: 0, last: VecDeque::with_capacity(MAX_EXAMPLES) }
            }
        };
        faulty.faults += 1;
        if faulty.last.len() == MAX_EXAMPLES {
            faulty.last.pop_front();
        }
        faulty.last.push_back(StoredFault { id, details, question: description, shared_id });
        all.push(faulty);
        if all.iter().filter(|one| one.hook == hook).count() > MAX_VERSIONS
            && let Some(oldest) = all.iter().position(|one| one.hook == hook)
        {
            all.remove(oldest);
        }
    }

    /// The fault of a hook with this number, if it is still stored.
    pub(crate) fn details(&self, hook: Hook, id: u64) -> Option<FaultDetails> {
        let all = self.histories.lock();
        let of_hook = all.iter().filter(|one| one.hook == hook);
        of_hook.flat_map(|one| &one.last).find(|one| one.id == id).map(|one| one.details.clone())
    }

    /// The versions of a hook that have failed, latest first. `debug_info` finds the debug information of a version.
    pub(crate) fn of(
        &self,
        hook: Hook,
        debug_info: impl Fn(&PluginVersion) -> Option<Vec<u8>>,
    ) -> Vec<FaultyVersion> {
        // Calls add faults while debug information is read.
        let found: Vec<FaultHistory> =
            self.histories.lock().iter().rev().filter(|one| one.hook == hook).cloned().collect();
        let described = found.into_iter().map(|history| {
            let octets = debug_info(&history.by);
            let debug_info = octets.as_deref().and_then(DebugInfo::read);
            let shown = |one: &StoredFault| FaultExample {
                id: one.id,
                at: one.details.at,
                kind: one.details.fault.kind.name().to_owned(),
                what: one.details.fault.what.clone(),
                report: one.details.fault.report.as_deref().map(str::to_owned),
                stack: one.details.fault.stack(debug_info.as_ref()),
                question: one.question.clone(),
                message: one.shared_id.get().map(ToString::to_string),
            };
            FaultyVersion {
                plugin: history.by.plugin.clone(),
                version: history.by.version.clone(),
                faults: history.faults,
                examples: history.last.iter().rev().map(shown).collect(),
            }
        });
        described.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FaultKind;
    use crate::fault::INSTANCE_LIMIT_REACHED;

    fn by(version: usize) -> Arc<PluginVersion> {
        Arc::new(PluginVersion { plugin: "router".to_owned(), version: version.to_string() })
    }

    fn trap() -> Fault {
        Fault::new(FaultKind::Trap, "trapped: unreachable")
    }

    fn fault_of(version: usize, fault: Fault, at: u64, shared_id: SharedMessageId) -> NewFault {
        NewFault {
            details: FaultDetails {
                by: by(version),
                binding: Arc::new(Binding::new("router", "1", "")),
                at: Timestamp(at),
                fault,
                question: FailedQuestion::Resolve(at.to_string()),
                host_answers: Vec::new(),
            },
            description: format!("question {at}"),
            shared_id,
        }
    }

    fn no_id() -> SharedMessageId {
        LazyMessageId::default().shared(None)
    }

    #[test]
    fn the_newest_examples_are_kept_and_all_faults_counted() {
        let examples = FaultExamples::default();
        let message_ids: Vec<SharedMessageId> = (0..20).map(|_| no_id()).collect();
        for (at, shared_id) in message_ids.iter().enumerate() {
            examples.add(Hook::Router, fault_of(1, trap(), at as u64, shared_id.clone()));
        }
        // The message is not accepted before this point.
        message_ids[19].set(MessageId(1_000_000_007)).unwrap();
        let found = examples.of(Hook::Router, |_| None);
        assert_eq!((found.len(), found[0].faults, found[0].examples.len()), (1, 20, MAX_EXAMPLES));
        let last = &found[0].examples[0];
        assert_eq!((last.id, last.question.as_str(), last.kind.as_str()), (20, "question 19", "trap"));
        assert_eq!(last.message.as_deref(), Some("1000000007"));
        assert_eq!(found[0].examples[1].message, None);
        let details = examples.details(Hook::Router, 20).unwrap();
        assert!(matches!(details.question, FailedQuestion::Resolve(number) if number == "19"));
        assert!(examples.details(Hook::Router, 1).is_none() && examples.details(Hook::Biller, 20).is_none());
        assert!(examples.of(Hook::Biller, |_| None).is_empty());
    }

    #[test]
    fn the_version_with_the_oldest_fault_is_evicted() {
        let examples = FaultExamples::default();
        let add = |version| examples.add(Hook::Router, fault_of(version, trap(), 0, no_id()));
        (0..MAX_VERSIONS).for_each(add);
        add(0);
        add(MAX_VERSIONS);
        let versions: Vec<String> =
            examples.of(Hook::Router, |_| None).into_iter().map(|found| found.version).collect();
        assert_eq!((versions.len(), versions[0].as_str(), versions[1].as_str()), (MAX_VERSIONS, "16", "0"));
        assert!(!versions.contains(&"1".to_owned()), "{versions:?}");
    }

    #[test]
    fn host_faults_are_not_stored() {
        let examples = FaultExamples::default();
        let full = Fault::new(FaultKind::Instance, INSTANCE_LIMIT_REACHED);
        examples.add(Hook::Router, fault_of(1, full, 0, no_id()));
        assert!(examples.of(Hook::Router, |_| None).is_empty());
    }

    #[test]
    fn a_question_has_one_shared_message_id() {
        let message_id = LazyMessageId::default();
        let shared_id = message_id.shared(Some(MessageId(7)));
        assert!(Arc::ptr_eq(&shared_id, &message_id.shared(None)) && shared_id.get() == Some(&MessageId(7)));
        let again = LazyMessageId::resume(message_id.into_shared());
        assert!(Arc::ptr_eq(&shared_id, &again.shared(None)));
        assert!(LazyMessageId::default().into_shared().is_none());
    }
}
