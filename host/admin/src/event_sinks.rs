//! The API of event sinks.

use crate::problem::Problem;
use crate::service::{Provides, Service, call_json};
use api::EventSinkView;
use axum::Json;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The backend of event sinks.
pub trait EventSinkStates: Send + Sync + 'static {
    /// The state of each event sink, in the order of the configuration.
    fn event_sinks(&self) -> Vec<EventSinkView>;
}

pub(crate) fn routes<S: Provides<dyn EventSinkStates>>() -> OpenApiRouter<S> {
    OpenApiRouter::new().routes(routes!(event_sinks))
}

/// Lists the configured event sinks with their state and backlog.
#[utoipa::path(get, path = "/v1/event-sinks", responses((status = 200, description = "All event sinks; empty if there are none.", body = Vec<EventSinkView>)))]
async fn event_sinks(backend: Service<dyn EventSinkStates>) -> Result<Json<Vec<EventSinkView>>, Problem> {
    call_json(backend, |backend| Ok(backend.event_sinks())).await
}
