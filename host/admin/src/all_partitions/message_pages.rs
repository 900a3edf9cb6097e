//! Pages of the messages of all partitions: each partition has a position of its own, and the cursor has them all.

use super::with_partition;
use crate::problem::{Problem, ProblemKind};
use axum::extract::Query;
use axum::http::Uri;
use model::MessageId;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use std::collections::BTreeMap;

/// Messages of a page that names no limit.
const DEFAULT_LIMIT: usize = 100;

/// How far the list of one partition has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// All messages from this id on are listed.
    Before(MessageId),
    /// All are listed.
    End,
}

impl Position {
    /// Before the first page: the archive has the messages of all partitions, and those of this one end here.
    fn start(partition: u8) -> Self {
        let behind = MessageId::first_of(partition.saturating_add(1)).0 - MessageId::FIRST.0;
        Self::Before(MessageId(behind))
    }

    /// After a page of a leader with this `next`.
    fn after(partition: u8, next: Option<MessageId>) -> Self {
        next.filter(|next| next.partition() == partition).map_or(Self::End, Self::Before)
    }
}

/// The messages of a partition that a page can have, newest first.
struct Found {
    rows: std::iter::Peekable<std::vec::IntoIter<(u64, MessageId, Value)>>,
    /// The position when all of them are listed.
    end: Position,
}

/// A page of the messages of all partitions.
#[derive(Debug)]
pub(super) struct MessagePages {
    limit: usize,
    /// The parameters of the request without its cursor.
    parameters: Vec<(String, String)>,
    positions: BTreeMap<u8, Position>,
    /// Whether a partition that has answered has more.
    has_more: bool,
}

impl MessagePages {
    /// The page that a request asks for.
    pub(super) fn of(uri: &Uri, partitions: impl Iterator<Item = u8>) -> Result<Self, Problem> {
        let bad = |what: String| Problem::new(ProblemKind::BadRequest, what);
        let query = Query::<Vec<(String, String)>>::try_from_uri(uri);
        let Query(mut parameters) = query.map_err(|error| bad(error.body_text()))?;
        let cursor =
            parameters.iter().position(|(name, _)| name == "cursor").map(|at| parameters.remove(at).1);
        let limit = parameters.iter().find(|(name, _)| name == "limit");
        // The leaders refuse another value.
        let limit = limit.and_then(|(_, limit)| limit.parse().ok()).unwrap_or(DEFAULT_LIMIT);
        let mut positions: BTreeMap<_, _> =
            partitions.map(|partition| (partition, Position::start(partition))).collect();
        if let Some(cursor) = cursor {
            let known = positions_of(&cursor).ok_or_else(|| {
                bad(format!("cursor: {cursor:?} is not the `next` of a page of all partitions"))
            })?;
            // One that is unknown by now is none of the cluster's any more.
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

    /// The newest messages of the pages of these partitions, and moves the positions behind them.
    pub(super) fn merge(&mut self, answers: BTreeMap<u8, Value>) -> Vec<Value> {
        let mut found: BTreeMap<u8, Found> =
            answers.into_iter().map(|(partition, answer)| (partition, found(partition, answer))).collect();
        let mut page = Vec::new();
        while page.len() < self.limit {
            // Time, not id: the ids of a partition are all above those of a lower one.
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

    /// The cursor of the next page; `None` if all partitions that have answered have come to their end.
    pub(super) fn next(&self) -> Option<String> {
        let part = |(partition, position): (&u8, &Position)| match position {
            Position::Before(id) => format!("{partition}-{id}"),
            Position::End => format!("{partition}-end"),
        };
        let parts: Vec<String> = self.positions.iter().map(part).collect();
        self.has_more.then(|| parts.join("."))
    }
}

/// The positions in a cursor.
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

/// What a page of one partition has of its own: with an archive, its leader finds the messages of all.
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
