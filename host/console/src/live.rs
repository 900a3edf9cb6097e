//! Live regions of pages as server-sent events: the server renders the regions, and sends those that changed.

use crate::api_caller::ApiError;
use crate::form::Form;
use crate::pages;
use crate::request_context::RequestContext;
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

/// The path of the event stream.
pub(crate) const PATH: &str = "/live";
/// The interval between updates.
const REFRESH_INTERVAL: Duration = Duration::from_secs(2);
/// The maximum number of live pages at a time. Further pages are static.
pub(crate) const MAX_STREAMS: usize = 64;

/// A region of a page: the id of its element, and its content.
pub(crate) type Region = (&'static str, Markup);

struct Stream {
    context: RequestContext,
    of: String,
    id: String,
    clock: Interval,
    sent: HashMap<&'static str, String>,
    ended: bool,
    _permit: OwnedSemaphorePermit,
}

impl Stream {
    async fn regions(&self) -> Result<Vec<Region>, ApiError> {
        let context = &self.context;
        match self.of.as_str() {
            "overview" => pages::overview::regions(context, &self.id).await,
            "messages" => pages::messages::regions(context, &self.id).await,
            "message" => pages::trace::regions(context, &self.id).await,
            "hook" => pages::hook::regions(context, &self.id).await,
            kind @ ("peer" | "plugin-peer" | "gateway" | "account") => {
                pages::peer::regions(context, kind, &self.id).await
            }
            "networks" => pages::networks::regions(context).await,
            "subscriber" => pages::subscribers::regions(context, &self.id).await,
            "queues" => pages::queues::regions(context, &self.id).await,
            _ => Err(ApiError::new(StatusCode::NOT_FOUND, "there is no live region with this name")),
        }
    }

    async fn next(&mut self) -> Option<Event> {
        while !self.ended {
            self.clock.tick().await;
            let regions = match self.regions().await {
                Ok(regions) => regions,
                // The session ended (logout, timeout, user removed), or its permission was revoked: the page
                // reloads, and the stream ends.
                Err(error) if matches!(error.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                    self.ended = true;
                    return Some(reload_event());
                }
                // The appliance may be starting; the page keeps its content.
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

/// The last event of a stream: the page reloads, and so redirects to the login without a session.
fn reload_event() -> Event {
    Event::default().event("reload").data("{}")
}

pub(crate) async fn stream(
    context: Result<RequestContext, Response>,
    Query(query): Query<Vec<(String, String)>>,
) -> Response {
    let context = match context {
        Ok(context) => context,
        // A redirect would not help: the browser would expect events at the login page.
        Err(refused) if refused.status().is_redirection() => {
            return Sse::new(stream::iter([Ok::<_, Infallible>(reload_event())])).into_response();
        }
        Err(refused) => return refused,
    };
    let query = Form::of(query);
    let Ok(permit) = context.console.streams.clone().try_acquire_owned() else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let mut clock = tokio::time::interval(REFRESH_INTERVAL);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let stream = Stream {
        of: query.text("of").to_owned(),
        id: query.text("id").to_owned(),
        context,
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
