//! The API of pace buckets.

use crate::problem::Problem;
use crate::service::{Provides, Service, call_json};
use axum::Json;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The backend of pace buckets.
pub trait PaceBuckets: Send + Sync + 'static {
    /// The pace buckets of the configuration and of plugins, by name.
    ///
    /// # Errors
    /// If the daemon is shutting down.
    fn pace_buckets(&self) -> Result<Vec<api::PaceBucketView>, Problem>;
}

pub(crate) fn routes<S: Provides<dyn PaceBuckets>>() -> OpenApiRouter<S> {
    OpenApiRouter::new().routes(routes!(pace_buckets))
}

/// Lists the pace buckets with their tokens and the number of messages that wait for each: all configured buckets, and
/// at most 1,000 of plugins.
#[utoipa::path(get, path = "/v1/pace-buckets", responses((status = 200, description = "All pace buckets.", body = Vec<api::PaceBucketView>)))]
async fn pace_buckets(backend: Service<dyn PaceBuckets>) -> Result<Json<Vec<api::PaceBucketView>>, Problem> {
    call_json(backend, PaceBuckets::pace_buckets).await
}
