//! Live parts of pages, as server-sent events: the parts are drawn here, and sent when they look different.

use crate::ask::Refusal;
use crate::form::Form;
use crate::pages;
use crate::visit::Visit;
use axum::extract::Query;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use maud::Markup;
use serde_json::json;
use std::collections::HashMap;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Interval, MissedTickBehavior};

/// Where live parts come from.
pub(crate) const PATH: &str = "/live";
/// How often is looked.
const EVERY: Duration = Duration::from_secs(2);
/// Pages that are kept live at a time. Whoever comes later has a page that stands still.
pub(crate) const STREAMS: usize = 64;

/// A part of a page: the id of the element that it is in, and what is in it.
pub(crate) type Region = (&'static str, Markup);

struct Stream {
    visit: Visit,
    of: String,
    id: String,
    clock: Interval,
    sent: HashMap<&'static str, String>,
    ended: bool,
    _permit: OwnedSemaphorePermit,
}

impl Stream {
    async fn regions(&self) -> Result<Vec<Region>, Refusal> {
        let visit = &self.visit;
        match self.of.as_str() {
            "overview" => pages::overview::regions(visit).await,
            "message" => pages::trace::regions(visit, &self.id).await,
            "hook" => pages::hook::regions(visit, &self.id).await,
            kind @ ("peer" | "gateway" | "account") => pages::peer::regions(visit, kind, &self.id).await,
            "networks" => pages::networks::regions(visit).await,
            "subscriber" => pages::subscribers::regions(visit, &self.id).await,
            "queues" => pages::queues::regions(visit).await,
            _ => Err(Refusal::new(StatusCode::NOT_FOUND, "nothing of that name is live")),
        }
    }

    async fn next(&mut self) -> Option<Event> {
        while !self.ended {
            self.clock.tick().await;
            let regions = match self.regions().await {
                Ok(regions) => regions,
                // The session has ended (a logout, time, a user who was removed), or the right to see this has: the page is
                // told to look where it stands, and hears no more.
                Err(refusal)
                    if matches!(refusal.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) =>
                {
                    self.ended = true;
                    return Some(gone());
                }
                // The appliance may be starting; what is shown stays.
                Err(_) => continue,
            };
            let mut changed = Vec::new();
            for (id, markup) in regions {
                let html = markup.into_string();
                if self.sent.get(id) != Some(&html) {
                    changed.push(json!({ "id": id, "html": html }));
                    self.sent.insert(id, html);
                }
            }
            if !changed.is_empty() {
                return Some(Event::default().data(json!(changed).to_string()));
            }
        }
        None
    }
}

/// The last event of a stream: the page loads itself anew, and so comes to the login where there is no session.
fn gone() -> Event {
    Event::default().event("gone").data("{}")
}

pub(crate) async fn stream(
    visit: Result<Visit, Response>,
    Query(query): Query<Vec<(String, String)>>,
) -> Response {
    let visit = match visit {
        Ok(visit) => visit,
        // A browser would follow a redirect of a stream to the login page, find no events there, and give up.
        Err(refused) if refused.status().is_redirection() => {
            return Sse::new(stream::iter([Ok::<_, Infallible>(gone())])).into_response();
        }
        Err(refused) => return refused,
    };
    let query = Form::of(query);
    let Ok(permit) = visit.console.streams.clone().try_acquire_owned() else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let mut clock = tokio::time::interval(EVERY);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let stream = Stream {
        of: query.text("of").to_owned(),
        id: query.text("id").to_owned(),
        visit,
        clock,
        sent: HashMap::new(),
        ended: false,
        _permit: permit,
    };
    let events = stream::unfold(stream, |mut stream| async move {
        let event = stream.next().await?;
        Some((Ok::<_, Infallible>(event), stream))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(15))).into_response()
}
