//! The policy document of `second-chance`: the step after a DLR, or after its absence.

mod document;

use document::{Document, RemapEntry, RuleEntry};
use policy_values::{Names, check_prefix, digits_of, line, read};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::time::Duration;

/// A final state of a DLR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DlrState {
    /// Delivered.
    Delivered,
    /// Its validity has expired.
    Expired,
    /// Deleted.
    Deleted,
    /// Cannot be delivered.
    Undeliverable,
    /// Unknown.
    Unknown,
    /// Rejected.
    Rejected,
}

impl DlrState {
    /// The name in the document and in notes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Expired => "expired",
            Self::Deleted => "deleted",
            Self::Undeliverable => "undeliverable",
            Self::Unknown => "unknown",
            Self::Rejected => "rejected",
        }
    }
}

/// An event of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The peer has accepted it.
    Accepted,
    /// The wait has passed.
    Timeout,
    /// A final DLR came.
    Dlr {
        /// Its state.
        state: DlrState,
        /// Its error code.
        error: u16,
        /// From the submit attempt to the DLR.
        latency: Duration,
    },
}

/// A submission.
#[derive(Debug, Clone, Copy)]
pub struct Submission<'a> {
    /// The destination of the message, as submitted.
    pub destination: &'a str,
    /// The peer.
    pub peer: &'a str,
    /// Whether the message has another leg.
    pub has_next_leg: bool,
}

/// The next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The DLR counts as it is.
    Accept,
    /// Try the next leg.
    NextLeg,
    /// The DLR counts as one with this state and error code.
    Remap(DlrState, u16),
    /// The DLR is ignored.
    Suspect,
}

/// A step, the time until the next call of the policy, and a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The step.
    pub step: Step,
    /// Without a final DLR, the policy is called again after this time.
    pub wait: Option<Duration>,
    /// The reason.
    pub note: Option<String>,
}

impl Decision {
    fn accept() -> Self {
        Self { step: Step::Accept, wait: None, note: None }
    }
}

/// The checked document.
#[derive(Debug, Clone)]
pub struct Policy {
    rules: Vec<Rule>,
    remaps: Vec<Remap>,
}

#[derive(Debug, Clone)]
struct Rule {
    prefixes: Vec<String>,
    peers: Vec<String>,
    attribute: Option<(String, String)>,
    wait: Option<Duration>,
    next_leg: Vec<DlrState>,
    suspect_below: Option<Duration>,
    last_leg: Option<DlrState>,
}

#[derive(Debug, Clone)]
struct Remap {
    peers: Vec<String>,
    state: Option<DlrState>,
    errors: Option<Vec<u16>>,
    to_state: Option<DlrState>,
    to_error: Option<u16>,
}

impl Policy {
    /// Parses and checks a document.
    ///
    /// # Errors
    /// The line, the mistake, and the correction.
    pub fn parse(text: &str) -> Result<Self, String> {
        let document: Document = read(text)?;
        if document.rule.is_empty() && document.remap.is_empty() {
            return Err("the document does nothing: add a [[rule]] or a [[remap]]".to_owned());
        }
        let mut rules = Vec::new();
        for entry in document.rule {
            let at = line(text, entry.span());
            rules.push(Rule::check(entry.into_inner()).map_err(|what| format!("line {at}: {what}"))?);
        }
        let mut remaps = Vec::new();
        for entry in document.remap {
            let at = line(text, entry.span());
            remaps.push(Remap::check(entry.into_inner()).map_err(|what| format!("line {at}: {what}"))?);
        }
        Ok(Self { rules, remaps })
    }

    /// The peers that the document names, each once.
    #[must_use]
    pub fn peers(&self) -> BTreeSet<&str> {
        let of_rules = self.rules.iter().flat_map(|rule| &rule.peers);
        of_rules.chain(self.remaps.iter().flat_map(|remap| &remap.peers)).map(String::as_str).collect()
    }

    /// Decides the next step. `attribute` returns the value of an attribute of the message.
    pub fn decide(
        &self,
        submission: Submission<'_>,
        event: Event,
        attribute: impl Fn(&str) -> Option<String>,
    ) -> Decision {
        let rule = self.rules.iter().find(|rule| rule.fits(submission, &attribute));
        match event {
            Event::Accepted => {
                let useful = |rule: &&Rule| submission.has_next_leg || rule.last_leg.is_some();
                let wait = rule.filter(useful).and_then(|rule| rule.wait);
                Decision { wait, ..Decision::accept() }
            }
            Event::Timeout => rule.map_or_else(Decision::accept, |rule| rule.overdue(submission)),
            Event::Dlr { state, error, latency } => self.dlr(rule, submission, (state, error), latency),
        }
    }

    fn dlr(
        &self,
        rule: Option<&Rule>,
        submission: Submission<'_>,
        (state, error): (DlrState, u16),
        latency: Duration,
    ) -> Decision {
        let least = rule.and_then(|rule| rule.suspect_below);
        if state == DlrState::Delivered && least.is_some_and(|least| latency < least) {
            let note = format!("delivered after {} ms", latency.as_millis());
            return Decision { step: Step::Suspect, wait: None, note: Some(note) };
        }
        let remap = self.remaps.iter().find(|remap| remap.fits(submission.peer, state, error));
        let (new_state, new_error) = remap.map_or((state, error), |remap| {
            (remap.to_state.unwrap_or(state), remap.to_error.unwrap_or(error))
        });
        let leaves = rule.is_some_and(|rule| rule.next_leg.contains(&new_state));
        if leaves && submission.has_next_leg {
            let note = format!("{} from {}, error {error}", state.name(), submission.peer);
            return Decision { step: Step::NextLeg, wait: None, note: Some(note) };
        }
        if (new_state, new_error) == (state, error) {
            return Decision::accept();
        }
        let note = format!("{}, error {error}", state.name());
        Decision { step: Step::Remap(new_state, new_error), wait: None, note: Some(note) }
    }
}

impl Rule {
    fn check(entry: RuleEntry) -> Result<Self, String> {
        let RuleEntry { prefix, peer, attribute, wait, next_leg, suspect_below, last_leg } = entry;
        let wait = wait.map(|time| time.0);
        if wait.is_some_and(|wait| wait < MIN_WAIT) {
            return Err("`wait` is shorter than 1s: most DLRs take longer".to_owned());
        }
        if next_leg.contains(&DlrState::Delivered) {
            return Err("`next-leg` has \"delivered\": the subscriber would get the message twice".to_owned());
        }
        if last_leg.is_some() && wait.is_none() {
            return Err("`last-leg` counts when `wait` has passed; add `wait`".to_owned());
        }
        if wait.is_none() && next_leg.is_empty() && suspect_below.is_none() {
            return Err("the rule does nothing: add `wait`, `next-leg` or `suspect-below`".to_owned());
        }
        let prefixes = prefix.map(|Names(prefixes)| prefixes).unwrap_or_default();
        prefixes.iter().try_for_each(|prefix| check_prefix(prefix))?;
        Ok(Self {
            prefixes,
            peers: names(peer)?,
            attribute: attribute.map(|attribute| (attribute.name, attribute.value)),
            wait,
            next_leg,
            suspect_below: suspect_below.map(|time| time.0),
            last_leg,
        })
    }

    fn fits(&self, submission: Submission<'_>, attribute: impl Fn(&str) -> Option<String>) -> bool {
        let digits = digits_of(submission.destination).unwrap_or(submission.destination);
        (self.prefixes.is_empty() || self.prefixes.iter().any(|prefix| digits.starts_with(prefix.as_str())))
            && fits_peer(&self.peers, submission.peer)
            && self
                .attribute
                .as_ref()
                .is_none_or(|(name, value)| attribute(name).as_deref() == Some(value.as_str()))
    }

    fn overdue(&self, submission: Submission<'_>) -> Decision {
        let seconds = self.wait.unwrap_or_default().as_secs_f32();
        let note = Some(format!("no DLR from {} in {seconds} s", submission.peer));
        let step = match self.last_leg {
            _ if submission.has_next_leg => Step::NextLeg,
            Some(state) => Step::Remap(state, 0),
            None => Step::Accept,
        };
        Decision { step, wait: None, note }
    }
}

impl Remap {
    fn check(entry: RemapEntry) -> Result<Self, String> {
        let RemapEntry { peer, state, errors, to_state, to_error } = entry;
        if to_state.is_none() && to_error.is_none() {
            return Err("the remap changes nothing: add `to-state` or `to-error`".to_owned());
        }
        if errors.as_ref().is_some_and(Vec::is_empty) {
            return Err("`errors` is empty; leave it out for every error code".to_owned());
        }
        Ok(Self { peers: names(peer)?, state, errors, to_state, to_error })
    }

    fn fits(&self, peer: &str, state: DlrState, error: u16) -> bool {
        fits_peer(&self.peers, peer)
            && self.state.is_none_or(|own| own == state)
            && self.errors.as_ref().is_none_or(|errors| errors.contains(&error))
    }
}

/// The shortest wait: most networks need longer for a DLR.
const MIN_WAIT: Duration = Duration::from_secs(1);

fn names(entry: Option<Names>) -> Result<Vec<String>, String> {
    let names = entry.map(|Names(names)| names).unwrap_or_default();
    if names.iter().any(String::is_empty) {
        return Err("`peer` has an empty name; leave `peer` out for every peer".to_owned());
    }
    Ok(names)
}

fn fits_peer(peers: &[String], peer: &str) -> bool {
    peers.is_empty() || peers.iter().any(|one| one == peer)
}

#[cfg(test)]
mod tests;
