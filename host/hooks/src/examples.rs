//! Examples of faults: at which questions a version failed, for whoever looks into it.
//!
//! In memory and by version, not by generation: what was taken back by itself is what somebody wants to look into.

use crate::fault::Fault;
use model::{DecidedBy, Hook, MessageId, Timestamp};
use parking_lot::Mutex;
use serde::Serialize;
use std::cell::OnceCell;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

/// Versions of a hook whose faults are remembered, and examples of each: the last ones.
const VERSIONS: usize = 16;
const EXAMPLES: usize = 8;

/// Where the id of a message is found once it has one: routers and billers are asked before it is accepted.
pub(crate) type Mark = Arc<OnceLock<MessageId>>;

/// The mark of one question, made when something is to be remembered of it.
#[derive(Debug, Default)]
pub(crate) struct Met(OnceCell<Mark>);

impl Met {
    /// Goes on with the mark that a message has from the question before, if it has one.
    pub(crate) fn again(mark: Option<Mark>) -> Self {
        Self(mark.map(OnceCell::from).unwrap_or_default())
    }

    /// The mark, which holds the id at once where that is known.
    pub(crate) fn mark(&self, id: Option<MessageId>) -> Mark {
        self.0.get_or_init(|| Arc::new(id.map(OnceLock::from).unwrap_or_default())).clone()
    }

    /// The mark, if anything was remembered.
    pub(crate) fn into_mark(self) -> Option<Mark> {
        self.0.into_inner()
    }
}

/// A question at which a version failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FaultExample {
    /// When.
    pub at: Timestamp,
    /// What kind of fault: one of [`crate::FaultKind`]'s words.
    pub kind: &'static str,
    /// The fault in words.
    pub what: String,
    /// The question, numbers hidden.
    pub question: String,
    /// The id of the message; `None` where it was not accepted, or the question is not about one message.
    pub message: Option<String>,
}

/// A version that has failed since the start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FaultyVersion {
    /// The plugin.
    pub plugin: String,
    /// Its version.
    pub version: String,
    /// Faults since the start.
    pub faults: u64,
    /// The last of them, newest first.
    pub examples: Vec<FaultExample>,
}

struct Example {
    at: Timestamp,
    fault: Fault,
    question: String,
    mark: Mark,
}

struct Faulty {
    hook: Hook,
    by: Arc<DecidedBy>,
    faults: u64,
    last: VecDeque<Example>,
}

/// What is remembered, those that failed last at the end.
#[derive(Default)]
pub(crate) struct Examples(Mutex<Vec<Faulty>>);

impl Examples {
    /// Remembers a fault; one that is the house's own says nothing of the version.
    pub(crate) fn add(
        &self,
        hook: Hook,
        by: &Arc<DecidedBy>,
        at: Timestamp,
        fault: &Fault,
        question: String,
        mark: Mark,
    ) {
        if fault.is_the_houses() {
            return;
        }
        let mut all = self.0.lock();
        let known = all.iter().position(|one| one.hook == hook && *one.by == **by);
        let mut faulty = match known {
            Some(place) => all.remove(place),
            None => Faulty { hook, by: by.clone(), faults: 0, last: VecDeque::with_capacity(EXAMPLES) },
        };
        faulty.faults += 1;
        if faulty.last.len() == EXAMPLES {
            faulty.last.pop_front();
        }
        faulty.last.push_back(Example { at, fault: fault.clone(), question, mark });
        all.push(faulty);
        if all.iter().filter(|one| one.hook == hook).count() > VERSIONS
            && let Some(oldest) = all.iter().position(|one| one.hook == hook)
        {
            all.remove(oldest);
        }
    }

    /// Versions of a hook that have failed, the last one first.
    pub(crate) fn of(&self, hook: Hook) -> Vec<FaultyVersion> {
        let shown = |one: &Example| FaultExample {
            at: one.at,
            kind: one.fault.kind.name(),
            what: one.fault.what.clone(),
            question: one.question.clone(),
            message: one.mark.get().map(ToString::to_string),
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
    use crate::fault::NO_ROOM;

    fn by(version: usize) -> Arc<DecidedBy> {
        Arc::new(DecidedBy { plugin: "router".to_owned(), version: version.to_string() })
    }

    fn trap() -> Fault {
        Fault { kind: FaultKind::Trap, what: "trapped: unreachable".to_owned() }
    }

    #[test]
    fn the_last_of_a_version_are_kept_and_all_are_counted() {
        let examples = Examples::default();
        let marks: Vec<Mark> = (0..20).map(|_| Met::default().mark(None)).collect();
        for (at, mark) in marks.iter().enumerate() {
            examples.add(
                Hook::Router,
                &by(1),
                Timestamp(at as u64),
                &trap(),
                format!("question {at}"),
                mark.clone(),
            );
        }
        // It is accepted only now.
        marks[19].set(MessageId(1_000_000_007)).unwrap();
        let found = examples.of(Hook::Router);
        assert_eq!((found.len(), found[0].faults, found[0].examples.len()), (1, 20, EXAMPLES));
        let last = &found[0].examples[0];
        assert_eq!((last.question.as_str(), last.kind), ("question 19", "trap"));
        assert_eq!(last.message.as_deref(), Some("1000000007"));
        assert_eq!(found[0].examples[1].message, None);
        assert!(examples.of(Hook::Biller).is_empty());
    }

    #[test]
    fn versions_that_have_not_failed_for_longest_are_forgotten_first() {
        let examples = Examples::default();
        let add = |version| {
            examples.add(
                Hook::Router,
                &by(version),
                Timestamp(0),
                &trap(),
                String::new(),
                Met::default().mark(None),
            );
        };
        (0..VERSIONS).for_each(add);
        add(0);
        add(VERSIONS);
        let versions: Vec<String> =
            examples.of(Hook::Router).into_iter().map(|found| found.version).collect();
        assert_eq!((versions.len(), versions[0].as_str(), versions[1].as_str()), (VERSIONS, "16", "0"));
        assert!(!versions.contains(&"1".to_owned()), "{versions:?}");
    }

    #[test]
    fn a_full_house_is_no_example() {
        let examples = Examples::default();
        let full = Fault { kind: FaultKind::Instance, what: NO_ROOM.to_owned() };
        examples.add(Hook::Router, &by(1), Timestamp(0), &full, String::new(), Met::default().mark(None));
        assert!(examples.of(Hook::Router).is_empty());
    }

    #[test]
    fn one_question_has_one_mark_and_an_id_that_is_known_is_in_it() {
        let met = Met::default();
        let mark = met.mark(Some(MessageId(7)));
        assert!(Arc::ptr_eq(&mark, &met.mark(None)) && mark.get() == Some(&MessageId(7)));
        let again = Met::again(met.into_mark());
        assert!(Arc::ptr_eq(&mark, &again.mark(None)));
        assert!(Met::default().into_mark().is_none());
    }
}
