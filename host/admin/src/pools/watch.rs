//! A pool's events as they happen, as server-sent events.
//!
//! All that is told is read from the journal; the feed only says when there is more. So a watcher that is slow goes on
//! where it was, and one that comes back after a restart as well.

use super::words::NameText;
use super::{bad, name, nowhere, shown, summary};
use crate::api::{Shared, call};
use crate::problem::Problem;
use crate::request::{At, Parameters};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use doors::PoolNews;
use futures_util::stream;
use model::{PoolEntry, PoolId};
use serde::Deserialize;
use serde_json::json;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::watch::Receiver;
use utoipa::{IntoParams, ToSchema};

/// Entries that are read at a time.
const PAGE: usize = 500;
/// After so long without an event a comment tells that the connection lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

struct Watcher {
    appliance: Shared,
    pool: PoolId,
    news: Receiver<PoolNews>,
    /// The number of the entry that is told next.
    next: u64,
    /// The journal has all entries before this one.
    written: u64,
    read: VecDeque<(u64, PoolEntry)>,
    /// Not told yet that it watches.
    fresh: bool,
    ended: bool,
}

impl Watcher {
    /// The journal does not go back as far as was wanted: it begins with `first`.
    fn forgotten(&mut self, first: u64) -> Event {
        let told = json!({ "from": self.next, "to": first - 1 }).to_string();
        self.next = first;
        Event::default().event("forgotten").data(told)
    }

    async fn event(&mut self) -> Option<Event> {
        if std::mem::take(&mut self.fresh) {
            return Some(Event::default().comment(format!("from {}", self.next)));
        }
        while !self.ended {
            if let Some((id, entry)) = self.read.front() {
                let first = *id;
                if first > self.next {
                    return Some(self.forgotten(first));
                }
                self.next = first.saturating_add(1);
                let told = json!(shown::entry(first, entry)).to_string();
                let event = Event::default().id(first.to_string()).data(told);
                self.read.pop_front();
                return Some(event);
            }
            if self.next < self.written {
                let (pool, next) = (self.pool, self.next);
                let read =
                    call(self.appliance.clone(), move |appliance| appliance.pool_journal(pool, next, PAGE));
                match read.await {
                    Ok(entries) if entries.is_empty() => return Some(self.forgotten(self.written)),
                    Ok(entries) => self.read = entries.into(),
                    // Whoever comes back with the last id misses nothing.
                    Err(_) => self.ended = true,
                }
                continue;
            }
            if self.news.changed().await.is_err() {
                self.ended = true;
                continue;
            }
            let news = *self.news.borrow_and_update();
            match news {
                PoolNews::Written(upto) => self.written = self.written.max(upto),
                PoolNews::Gone => {
                    self.ended = true;
                    return Some(Event::default().event("removed").data("{}"));
                }
            }
        }
        None
    }
}

/// The entry from which on a watcher wants to know.
fn wanted(from: Option<u64>, headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(last) = headers.get("last-event-id") else { return Ok(from) };
    let last = last.to_str().ok().and_then(|last| last.trim().parse::<u64>().ok());
    let last = last.ok_or_else(|| bad("Last-Event-ID: must be the id of an event of this pool"))?;
    Ok(Some(last.saturating_add(1)))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Beginning {
    /// Begin with the entry of this number, not with the next one to come.
    from: Option<u64>,
}

/// One server-sent event.
#[derive(ToSchema)]
#[schema(as = PoolNews)]
#[expect(dead_code, reason = "it only describes")]
struct News {
    /// The entry's number.
    #[schema(nullable = false)]
    id: Option<String>,
    /// Left out where it is an entry.
    #[schema(nullable = false)]
    event: Option<String>,
    /// A `PoolEntry`, as JSON.
    data: String,
}

/// What happens to a pool's numbers, as it happens, durable.
///
/// Server-sent events whose `id` is the entry's number and whose data is a `PoolEntry`. An event `forgotten` (from, to) names
/// entries that are no longer kept, an event `removed` is the last one of a pool.
#[utoipa::path(
    get,
    path = "/v1/pools/{pool}/watch",
    params(
        ("pool" = inline(NameText), Path, description = "Its name."),
        Beginning,
        ("Last-Event-ID" = Option<u64>, Header, description = "Go on after this one."),
    ),
    responses((status = 200, description = "It does not end.", body = News, content_type = "text/event-stream")),
)]
pub(super) async fn watch(
    State(appliance): State<Shared>,
    At(pool): At<String>,
    Parameters(Beginning { from }): Parameters<Beginning>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, Problem> {
    let pool = name(&pool)?;
    let from = wanted(from, &headers)?;
    let id = summary(&appliance, &pool).await?.id;
    let news = appliance.pool_feed().follow(id);
    // Only now: what is written after this is told by the feed, and what was written before by the journal.
    let seen = summary(&appliance, &pool).await?;
    if seen.id != id {
        return Err(nowhere(&pool));
    }
    let next = from.unwrap_or(seen.entries);
    if next > seen.entries {
        return Err(bad(format!(
            "the pool has had {} entries: there is none of number {next} to begin with, and none before it to go on after",
            seen.entries
        )));
    }
    let watcher = Watcher {
        appliance,
        pool: id,
        news,
        next,
        written: seen.entries,
        read: VecDeque::new(),
        fresh: true,
        ended: false,
    };
    let events = stream::unfold(watcher, |mut watcher| async move {
        let event = watcher.event().await?;
        Some((Ok::<_, Infallible>(event), watcher))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}
