//! Pages of the messages of all partitions. The cursor contains a position for each partition.

use super::with_partition;
use crate::problem::{Problem, ProblemKind};
use axum::extract::Query;
use axum::http::Uri;
use model::MessageId;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use std::collections::BTreeMap;

/// Number of messages in a page without `limit`.
const DEFAULT_LIMIT: usize = 100;

/// Position in the list of one partition, which is listed from the newest message to the oldest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// All messages with this id or a higher one are listed.
    Before(MessageId),
    /// All messages are listed.
    End,
}

impl Position {
    /// Position before the first page: after the last id of the partition, since an archive also has the higher ids of other
    /// partitions.
    fn start(partition: u8) -> Self {
        let behind = MessageId::first_of(partition.saturating_add(1)).0 - MessageId::FIRST.0;
        Self::Before(MessageId(behind))
    }

    /// Position after a page with this `next`.
    fn after(partition: u8, next: Option<MessageId>) -> Self {
        next.filter(|next| next.partition() == partition).map_or(Self::End, Self::Before)
    }
}

/// Messages of one partition that may go into the page, newest first.
struct Found {
    rows: std::iter::Peekable<std::vec::IntoIter<(u64, MessageId, Value)>>,
    /// The position when all these messages are listed.
    end: Position,
}

/// A page of the messages of all partitions.
#[derive(Debug)]
pub(super) struct MessagePages {
    limit: usize,
    /// Query parameters of the request, except the cursor.
    parameters: Vec<(String, String)>,
    positions: BTreeMap<u8, Position>,
    /// Whether a partition that has answered has more messages.
    has_more: bool,
}

impl MessagePages {
    /// The page of a request.
    pub(super) fn of(uri: &Uri, partitions: impl Iterator<Item = u8>) -> Result<Self, Problem> {
        let bad = |what: String| Problem::new(ProblemKind::BadRequest, what);
        let query = Query::<Vec<(String, String)>>::try_from_uri(uri);
        let Query(mut parameters) = query.map_err(|error| bad(error.body_text()))?;
        let cursor =
            parameters.iter().position(|(name, _)| name == "cursor").map(|at| parameters.remove(at).1);
        let limit = parameters.iter().find(|(name, _)| name == "limit");
        // The leaders refuse an invalid value.
        let limit = limit.and_then(|(_, limit)| limit.parse().ok()).unwrap_or(DEFAULT_LIMIT);
        let mut positions: BTreeMap<_, _> =
            partitions.map(|partition| (partition, Position::start(partition))).collect();
        if let Some(cursor) = cursor {
            let known = positions_of(&cursor).ok_or_else(|| {
                bad(format!("cursor: {cursor:?} is not the `next` of a page of all partitions"))
            })?;
            // A partition that is no longer known has left the cluster.
            let known = known.into_iter().filter(|(partition, _)| positions.contains_key(partition));
            positions.extend(known.collect::<Vec<_>>());
        }
        Ok(Self { limit, parameters, positions, has_more: false })
    }

    /// The query for the leader of a partition; `None` if all messages of the partition are listed.
    pub(super) fn query(&self, partition: u8) -> Option<String> {
        let Some(Position::Before(id)) = self.positions.get(&partition) else { return None };
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let mut query: Vec<String> = self
            .parameters
            .iter()
            .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)))
            .collect();
        query.push(format!("cursor={id}"));
        Some(query.join("&"))
    }

    /// Takes the newest messages from the pages of these partitions, and moves the positions past them.
    pub(super) fn merge(&mut self, answers: BTreeMap<u8, Value>) -> Vec<Value> {
        let mut found: BTreeMap<u8, Found> =
            answers.into_iter().map(|(partition, answer)| (partition, found(partition, answer))).collect();
        let mut page = Vec::new();
        while page.len() < self.limit {
            // Ordered by time, not by id: all ids of a partition are higher than those of lower partitions.
            let newest = found
                .iter_mut()
                .filter_map(|(partition, found)| found.rows.peek().map(|(at, id, _)| (*at, *id, *partition)))
                .max();
            let Some((_, id, partition)) = newest else { break };
            if let Some((_, _, row)) = found.get_mut(&partition).and_then(|found| found.rows.next()) {
                page.push(with_partition(row, partition));
            }
            self.positions.insert(partition, Position::Before(id));
        }
        for (partition, mut found) in found {
            if found.rows.peek().is_none() {
                self.positions.insert(partition, found.end);
            }
            self.has_more |= self.positions.get(&partition) != Some(&Position::End);
        }
        page
    }

    /// The cursor of the next page; `None` if no partition that has answered has more messages.
    pub(super) fn next(&self) -> Option<String> {
        let part = |(partition, position): (&u8, &Position)| match position {
            Position::Before(id) => format!("{partition}-{id}"),
            Position::End => format!("{partition}-end"),
        };
        let parts: Vec<String> = self.positions.iter().map(part).collect();
        self.has_more.then(|| parts.join("."))
    }
}

/// Parses a cursor; `None` if it is invalid.
fn positions_of(cursor: &str) -> Option<Vec<(u8, Position)>> {
    let part = |part: &str| -> Option<(u8, Position)> {
        let (partition, position) = part.split_once('-')?;
        let partition = partition.parse().ok().filter(|number| *number <= MessageId::LAST_PARTITION)?;
        let position = match position {
            "end" => Position::End,
            id => Position::Before(id.parse().ok()?),
        };
        Some((partition, position))
    };
    cursor.split('.').map(part).collect()
}

/// The partition's own messages in the page of its leader, which also has those of other partitions if there is an archive.
fn found(partition: u8, mut answer: Value) -> Found {
    let id = |value: &Value| value.as_str().and_then(|id| id.parse::<MessageId>().ok());
    let end = Position::after(partition, id(&answer["next"]));
    let rows = match answer["messages"].take() {
        Value::Array(rows) => rows,
        _ => Vec::new(),
    };
    let own = rows.into_iter().filter_map(|row| {
        let id = id(&row["id"]).filter(|id| id.partition() == partition)?;
        Some((row["at"].as_u64().unwrap_or_default(), id, row))
    });
    Found { rows: own.collect::<Vec<_>>().into_iter().peekable(), end }
}
