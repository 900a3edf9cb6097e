//! The properties of a plugin that fuzzing checks.

use super::shrink::Repeat;
use crate::WorkbenchError;
use crate::case_check::describe_answer;
use crate::local_host::{LocalHost, Session, peer_names};
use crate::plugin_host::{CaseAnswer, CaseQuestion, CaseResolution, CaseSetup, CaseVerdict};
use api::InstanceUse;

/// A violation of a property by a plugin.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Violation {
    /// It trapped, exceeded its deadline or memory, or gave an invalid answer.
    Fault {
        /// The instance: one that had served the earlier questions, or a fresh one.
        instance: InstanceUse,
        /// Kind and description, as in a case.
        what: String,
    },
    /// An instance that had served the earlier questions and a fresh one gave different answers.
    Differs {
        /// The answer after the earlier questions.
        warm: CaseAnswer,
        /// The answer of the fresh instance.
        fresh: CaseAnswer,
    },
}

impl Violation {
    /// Kind of the fault, or `differs`.
    pub(super) fn kind(&self) -> &str {
        match self {
            Self::Fault { what, .. } => what.split_once(": ").map_or(what, |(kind, _)| kind),
            Self::Differs { .. } => "differs",
        }
    }

    /// The violation in words.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Fault { what, .. } => what.clone(),
            Self::Differs { warm, fresh } => format!(
                "the answer depends on the instance: {} after other questions, {} from a fresh instance",
                describe_answer(warm),
                describe_answer(fresh)
            ),
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        let instance = |one: &Self| match one {
            Self::Fault { instance, .. } => Some(*instance),
            Self::Differs { .. } => None,
        };
        self.kind() == other.kind() && instance(self) == instance(other)
    }
}

/// A plugin under test.
pub(super) struct Target<'a> {
    pub(super) host: &'a LocalHost,
    /// The names in generated questions.
    pub(super) names: Vec<&'a str>,
}

/// Two sessions that get the same questions: in one, a single instance serves all questions; in the other, each question
/// gets a fresh instance. Counters and values of both evolve alike, so that only the state of the instance can cause a
/// difference.
pub(super) struct SessionPair {
    warm: Session,
    fresh: Session,
}

impl Target<'_> {
    /// Starts both sessions.
    pub(super) fn open(&self, setup: &CaseSetup) -> Result<SessionPair, WorkbenchError> {
        Ok(SessionPair {
            warm: self.session(setup, InstanceUse::Warm)?,
            fresh: self.session(setup, InstanceUse::PerCall)?,
        })
    }

    fn session(&self, setup: &CaseSetup, instance: InstanceUse) -> Result<Session, WorkbenchError> {
        let why = match self.host.start(setup, &self.names, instance) {
            Ok(Ok(session)) => return Ok(session),
            Ok(Err(CaseAnswer::Refused(why))) => format!("the plugin refuses it: {why}"),
            Ok(Err(answer)) => format!("the plugin fails with it: {}", describe_answer(&answer)),
            Err(why) => why,
        };
        Err(WorkbenchError::Usage(format!(
            "policy document: {why}\nGive another one with --policy, or its grants and tables in [given] of cases.toml"
        )))
    }
}

impl Repeat for Target<'_> {
    fn repeat(
        &self,
        setup: &CaseSetup,
        questions: &[CaseQuestion],
        like: &Violation,
    ) -> Result<Option<(usize, Violation)>, WorkbenchError> {
        let found = |check: &dyn Fn(&[CaseQuestion]) -> Option<Violation>| {
            (1..=questions.len()).find_map(|count| {
                let violation = check(questions.get(..count)?)?;
                violation.is_like(like).then_some((count, violation))
            })
        };
        Ok(match like {
            Violation::Fault { instance, .. } => {
                let session = self.session(setup, *instance)?;
                found(&|asked| fault(&answer(&session, setup, asked)?, *instance))
            }
            Violation::Differs { .. } => {
                let pair = self.open(setup)?;
                found(&|asked| pair.check(setup, asked))
            }
        })
    }
}

impl SessionPair {
    /// Asks both sessions the last of these questions; they have answered the others already.
    pub(super) fn check(&self, setup: &CaseSetup, asked: &[CaseQuestion]) -> Option<Violation> {
        let warm = answer(&self.warm, setup, asked)?;
        if let Some(violation) = fault(&warm, InstanceUse::Warm) {
            return Some(violation);
        }
        let fresh = answer(&self.fresh, setup, asked)?;
        if let Some(violation) = fault(&fresh, InstanceUse::PerCall) {
            return Some(violation);
        }
        // A NaN rate differs from itself.
        let differs = warm != fresh && format!("{warm:?}") != format!("{fresh:?}");
        differs.then_some(Violation::Differs { warm, fresh })
    }
}

/// The answer to the last question. A session knows all names of the generator, but a case knows only the names in its setup
/// and its questions: any other peer in an answer is a fault, as in a case.
fn answer(session: &Session, setup: &CaseSetup, asked: &[CaseQuestion]) -> Option<CaseAnswer> {
    let answer = session.ask(asked.last()?);
    let named: Vec<&str> = match &answer {
        CaseAnswer::Verdict { verdict: CaseVerdict::Forward(legs), .. } => {
            legs.iter().map(|leg| leg.peer.as_str()).collect()
        }
        CaseAnswer::Resolved { answer: CaseResolution::Found(found), .. } => {
            found.serving.iter().map(String::as_str).collect()
        }
        _ => Vec::new(),
    };
    let is_known = |name: &str| {
        setup.peers.contains_key(name) || asked.iter().flat_map(peer_names).any(|one| one == name)
    };
    Some(match named.into_iter().find(|name| !is_known(name)) {
        Some(name) => CaseAnswer::Fault(format!("verdict: names peer {name:?}, which is not in the setup")),
        None => answer,
    })
}

fn fault(answer: &CaseAnswer, instance: InstanceUse) -> Option<Violation> {
    match answer {
        CaseAnswer::Fault(what) => Some(Violation::Fault { instance, what: what.clone() }),
        _ => None,
    }
}
