//! Watching a pool: its journal as server-sent events.
//!
//! All data comes from the journal; the feed only signals new entries. So a slow watcher misses nothing, nor does one
//! that reconnects after a restart.

use super::{Pools, bad_request, name, no_such_pool, summary, views};
use crate::problem::Problem;
use crate::request::{PathParams, QueryParams};
use crate::service::{Service, call};
use api::PoolGapView;
use api::name_schemas::PoolNameSchema;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream;
use model::{JournalEntry, PoolId};
use ports::PoolFeedUpdate;
use serde::Deserialize;
use serde_json::json;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::watch::Receiver;
use utoipa::{IntoParams, ToSchema};

/// Entries read at once.
const READ_PAGE: usize = 500;
/// Interval of keep-alive comments without events.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

struct Watcher {
    backend: Service<dyn Pools>,
    pool: PoolId,
    updates: Receiver<PoolFeedUpdate>,
    /// The id of the next entry to send.
    next: u64,
    /// The journal has all entries before this id.
    journal_end: u64,
    buffer: VecDeque<(u64, JournalEntry)>,
    /// Whether the opening comment is still to be sent.
    is_new: bool,
    is_ended: bool,
}

impl Watcher {
    /// The event about entries before `first` that the journal no longer has.
    fn gap_event(&mut self, first: u64) -> Event {
        let data = json!(PoolGapView { from: self.next, to: first - 1 }).to_string();
        self.next = first;
        Event::default().event("forgotten").data(data)
    }

    async fn event(&mut self) -> Option<Event> {
        if std::mem::take(&mut self.is_new) {
            return Some(Event::default().comment(format!("from {}", self.next)));
        }
        while !self.is_ended {
            if let Some((id, entry)) = self.buffer.front() {
                let first = *id;
                if first > self.next {
                    return Some(self.gap_event(first));
                }
                self.next = first.saturating_add(1);
                let data = json!(views::entry(first, entry)).to_string();
                let event = Event::default().id(first.to_string()).data(data);
                self.buffer.pop_front();
                return Some(event);
            }
            if self.next < self.journal_end {
                let (pool, next) = (self.pool, self.next);
                let page =
                    call(self.backend.clone(), move |backend| backend.pool_journal(pool, next, READ_PAGE));
                match page.await {
                    Ok(entries) if entries.is_empty() => return Some(self.gap_event(self.journal_end)),
                    Ok(entries) => self.buffer = entries.into(),
                    // A watcher that reconnects with the last id misses nothing.
                    Err(_) => self.is_ended = true,
                }
                continue;
            }
            if self.updates.changed().await.is_err() {
                self.is_ended = true;
                continue;
            }
            let update = *self.updates.borrow_and_update();
            match update {
                PoolFeedUpdate::Written(upto) => self.journal_end = self.journal_end.max(upto),
                PoolFeedUpdate::Gone => {
                    self.is_ended = true;
                    return Some(Event::default().event("removed").data("{}"));
                }
            }
        }
        None
    }
}

/// The id of the entry with which the watcher wants to start.
fn start_entry(from: Option<u64>, headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(last) = headers.get("last-event-id") else { return Ok(from) };
    let last = last.to_str().ok().and_then(|last| last.trim().parse::<u64>().ok());
    let last = last.ok_or_else(|| bad_request("Last-Event-ID: must be the id of an event of this pool"))?;
    Ok(Some(last.saturating_add(1)))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct WatchQuery {
    /// Start with the entry of this id. Default: the next new entry.
    from: Option<u64>,
}

/// A server-sent event.
#[derive(ToSchema)]
#[schema(as = PoolNews)]
#[expect(dead_code, reason = "only a schema")]
struct PoolNewsEvent {
    /// The entry's id.
    #[schema(nullable = false)]
    id: Option<String>,
    /// The event type; omitted for journal entries.
    #[schema(nullable = false)]
    event: Option<String>,
    /// A `PoolEntry`, as JSON.
    data: String,
}

/// Streams a pool's journal as server-sent events.
///
/// The `id` of an event is the entry's id; its data is a `PoolEntry`. An event `forgotten` (from, to) names entries that are no
/// longer kept. An event `removed` is the last one of a removed pool. All entries are durable.
#[utoipa::path(
    get,
    path = "/v1/pools/{pool}/watch",
    params(
        ("pool" = inline(PoolNameSchema), Path, description = "The pool's name."),
        WatchQuery,
        ("Last-Event-ID" = Option<u64>, Header, description = "Continue after the entry of this id."),
    ),
    responses((status = 200, description = "The event stream.", body = PoolNewsEvent, content_type = "text/event-stream")),
)]
pub(super) async fn watch(
    backend: Service<dyn Pools>,
    PathParams(pool): PathParams<String>,
    QueryParams(WatchQuery { from }): QueryParams<WatchQuery>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, Problem> {
    let pool = name(&pool)?;
    let from = start_entry(from, &headers)?;
    let id = summary(&backend, &pool).await?.id;
    let updates = backend.pool_feed().follow(id);
    // Subscribe first: the feed covers later entries, the journal earlier ones.
    let pool_summary = summary(&backend, &pool).await?;
    if pool_summary.id != id {
        return Err(no_such_pool(&pool));
    }
    let next = from.unwrap_or(pool_summary.entries);
    if next > pool_summary.entries {
        return Err(bad_request(format!(
            "the pool has had {} entries: entry {next} does not exist yet",
            pool_summary.entries
        )));
    }
    let watcher = Watcher {
        backend,
        pool: id,
        updates,
        next,
        journal_end: pool_summary.entries,
        buffer: VecDeque::new(),
        is_new: true,
        is_ended: false,
    };
    let events = stream::unfold(watcher, |mut watcher| async move {
        let event = watcher.event().await?;
        Some((Ok::<_, Infallible>(event), watcher))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}
