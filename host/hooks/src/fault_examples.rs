//! Fault examples: the questions at which a version failed, for diagnosis.
//!
//! They are kept in memory by version, not by generation, so that they outlive an automatic rollback.

use crate::fault::Fault;
use api::{FaultExample, FaultyVersion};
use model::{Hook, MessageId, PluginVersion, Timestamp};
use parking_lot::Mutex;
use std::cell::OnceCell;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

/// Maximum number of versions with stored faults, and of examples for each. The latest are kept.
const MAX_VERSIONS: usize = 16;
const MAX_EXAMPLES: usize = 8;

/// The message id, set when the message is accepted: routers and billers are asked before that.
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

struct StoredFault {
    at: Timestamp,
    fault: Fault,
    question: String,
    shared_id: SharedMessageId,
}

struct FaultHistory {
    hook: Hook,
    by: Arc<PluginVersion>,
    faults: u64,
    last: VecDeque<StoredFault>,
}

/// Stored faults by version; the version that failed last is at the end.
#[derive(Default)]
pub(crate) struct FaultExamples(Mutex<Vec<FaultHistory>>);

impl FaultExamples {
    /// Stores a fault, unless it is the host's own: such a fault says nothing about the version.
    pub(crate) fn add(
        &self,
        hook: Hook,
        by: &Arc<PluginVersion>,
        at: Timestamp,
        fault: &Fault,
        question: String,
        shared_id: SharedMessageId,
    ) {
        if fault.is_host_fault() {
            return;
        }
        let mut all = self.0.lock();
        let known = all.iter().position(|one| one.hook == hook && *one.by == **by);
        let mut faulty = match known {
            Some(place) => all.remove(place),
            None => {
                FaultHistory { hook, by: by.clone(), faults: 0, last: VecDeque::with_capacity(MAX_EXAMPLES) }
            }
        };
        faulty.faults += 1;
        if faulty.last.len() == MAX_EXAMPLES {
            faulty.last.pop_front();
        }
        faulty.last.push_back(StoredFault { at, fault: fault.clone(), question, shared_id });
        all.push(faulty);
        if all.iter().filter(|one| one.hook == hook).count() > MAX_VERSIONS
            && let Some(oldest) = all.iter().position(|one| one.hook == hook)
        {
            all.remove(oldest);
        }
    }

    /// The versions of a hook that have failed, latest first.
    pub(crate) fn of(&self, hook: Hook) -> Vec<FaultyVersion> {
        let shown = |one: &StoredFault| FaultExample {
            at: one.at,
            kind: one.fault.kind.name().to_owned(),
            what: one.fault.what.clone(),
            question: one.question.clone(),
            message: one.shared_id.get().map(ToString::to_string),
        };
        let all = self.0.lock();
        all.iter()
            .rev()
            .filter(|one| one.hook == hook)
            .map(|one| FaultyVersion {
                plugin: one.by.plugin.clone(),
                version: one.by.version.clone(),
                faults: one.faults,
                examples: one.last.iter().rev().map(shown).collect(),
            })
            .collect()
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
        Fault { kind: FaultKind::Trap, what: "trapped: unreachable".to_owned() }
    }

    #[test]
    fn the_newest_examples_are_kept_and_all_faults_counted() {
        let examples = FaultExamples::default();
        let message_ids: Vec<SharedMessageId> =
            (0..20).map(|_| LazyMessageId::default().shared(None)).collect();
        for (at, shared_id) in message_ids.iter().enumerate() {
            examples.add(
                Hook::Router,
                &by(1),
                Timestamp(at as u64),
                &trap(),
                format!("question {at}"),
                shared_id.clone(),
            );
        }
        // The message is accepted only now.
        message_ids[19].set(MessageId(1_000_000_007)).unwrap();
        let found = examples.of(Hook::Router);
        assert_eq!((found.len(), found[0].faults, found[0].examples.len()), (1, 20, MAX_EXAMPLES));
        let last = &found[0].examples[0];
        assert_eq!((last.question.as_str(), last.kind.as_str()), ("question 19", "trap"));
        assert_eq!(last.message.as_deref(), Some("1000000007"));
        assert_eq!(found[0].examples[1].message, None);
        assert!(examples.of(Hook::Biller).is_empty());
    }

    #[test]
    fn the_version_with_the_oldest_fault_is_evicted() {
        let examples = FaultExamples::default();
        let add = |version| {
            examples.add(
                Hook::Router,
                &by(version),
                Timestamp(0),
                &trap(),
                String::new(),
                LazyMessageId::default().shared(None),
            );
        };
        (0..MAX_VERSIONS).for_each(add);
        add(0);
        add(MAX_VERSIONS);
        let versions: Vec<String> =
            examples.of(Hook::Router).into_iter().map(|found| found.version).collect();
        assert_eq!((versions.len(), versions[0].as_str(), versions[1].as_str()), (MAX_VERSIONS, "16", "0"));
        assert!(!versions.contains(&"1".to_owned()), "{versions:?}");
    }

    #[test]
    fn host_faults_are_not_stored() {
        let examples = FaultExamples::default();
        let full = Fault { kind: FaultKind::Instance, what: INSTANCE_LIMIT_REACHED.to_owned() };
        examples.add(
            Hook::Router,
            &by(1),
            Timestamp(0),
            &full,
            String::new(),
            LazyMessageId::default().shared(None),
        );
        assert!(examples.of(Hook::Router).is_empty());
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
