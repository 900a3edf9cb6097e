//! Arguments of operations: query parameters, times, ids, names of peers.

use crate::problems::field_problem;
use admin::{Problem, ProblemKind};
use archive::{ArchiveFilter, Side};
use model::{Direction, Directory, FinalState, MessageId, ParseMessageIdError, PeerId, Timestamp};
use std::collections::HashMap;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Parses the id of a message.
pub(crate) fn parse_id(id: &str) -> Result<MessageId, Problem> {
    id.parse().map_err(|error: ParseMessageIdError| Problem::new(ProblemKind::BadRequest, error.to_string()))
}

/// Finds the peer or account that a field of the request's document names.
pub(crate) fn parse_peer(
    directory: &Directory,
    pointer: &str,
    name: Option<&str>,
) -> Result<Option<PeerId>, Problem> {
    let Some(name) = name else { return Ok(None) };
    let known = directory.id(name);
    known.map(Some).ok_or_else(|| field_problem(pointer, format!("{name:?} is not an account or peer"), None))
}

/// The query parameters of a request; unknown ones are rejected.
pub(crate) struct Query<'a> {
    parameters: &'a HashMap<String, String>,
    known: Vec<&'static str>,
}

impl<'a> Query<'a> {
    pub(crate) fn new(parameters: &'a HashMap<String, String>) -> Self {
        Self { parameters, known: Vec::new() }
    }

    pub(crate) fn text(&mut self, name: &'static str) -> Option<&'a str> {
        self.known.push(name);
        self.parameters.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }

    pub(crate) fn read<T>(
        &mut self,
        name: &'static str,
        what: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let wrong =
            || Problem::new(ProblemKind::BadRequest, format!("{name}: is {text:?}, and must be {what}"));
        read(text).map(Some).ok_or_else(wrong)
    }

    pub(crate) fn time(&mut self, name: &'static str) -> Result<Option<Timestamp>, Problem> {
        self.read(name, "a time such as 2026-11-20T20:32:25Z, or milliseconds since the epoch", |text| {
            time(text)
        })
    }

    pub(crate) fn flag(&mut self, name: &'static str) -> Result<bool, Problem> {
        let flag = self.read(name, "1 or 0", |text| match text {
            "1" | "true" => Some(true),
            "0" | "false" => Some(false),
            _ => None,
        });
        Ok(flag?.unwrap_or(false))
    }

    pub(crate) fn filter(&mut self) -> Result<ArchiveFilter, Problem> {
        let states: Vec<&str> = FinalState::ALL.iter().map(|state| state.name()).collect();
        let state = self.read("state", &format!("one of {}", states.join(", ")), |text| {
            FinalState::ALL.into_iter().find(|state| state.name() == text)
        })?;
        let direction = self.read("direction", "mt or mo", Direction::from_name)?;
        Ok(ArchiveFilter {
            number: self.text("number").map(str::to_owned),
            side: Side::Either,
            account: self.text("account").map(str::to_owned),
            within: None,
            peer: self.text("peer").map(str::to_owned),
            state,
            direction,
            from: self.time("from")?,
            until: self.time("until")?,
            first: None,
        })
    }

    pub(crate) fn finish(self) -> Result<(), Problem> {
        match self.parameters.keys().find(|name| !self.known.contains(&name.as_str())) {
            None => Ok(()),
            Some(unknown) => {
                let detail = format!("{unknown}: is unknown; known are {}", self.known.join(", "));
                Err(Problem::new(ProblemKind::BadRequest, detail))
            }
        }
    }
}

/// Parses a time in RFC 3339, for example 2026-11-20T20:32:25Z, or in milliseconds since the epoch. Earlier times
/// count as the epoch.
pub(crate) fn time(text: &str) -> Option<Timestamp> {
    if let Ok(ms) = text.parse() {
        return Some(Timestamp(ms));
    }
    let at = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    u64::try_from((at.unix_timestamp_nanos() / 1_000_000).max(0)).ok().map(Timestamp)
}
