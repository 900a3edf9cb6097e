//! `GET /v1/attention`: what needs attention, by one set of rules for the command line, the console and everybody else.

mod rules;

use crate::api::{Appliance, Shared, answer};
use crate::problem::{Kind, Problem};
use crate::ready::NotReady;
use crate::view::Attention;
use axum::Json;
use axum::extract::State;
use rules::{Facts, findings};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Limits beyond which something needs attention: `[attention]` of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttentionLimits {
    /// Age of the oldest queued message.
    pub queue_age: Duration,
    /// The same for an account that has no link: its system may be off for a while.
    pub unbound_account: Duration,
    /// Messages that wait to be archived.
    pub archive_backlog: u64,
    /// How long an automatic rollback of a plugin stays in the list.
    pub plugin_event: Duration,
}

impl Default for AttentionLimits {
    fn default() -> Self {
        Self {
            queue_age: Duration::from_secs(600),
            unbound_account: Duration::from_secs(3_600),
            archive_backlog: 100_000,
            plugin_event: Duration::from_secs(3_600),
        }
    }
}

/// What of the configuration waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConfigurationWaits {
    /// The version that reverts unless it is confirmed, since when it is in force, and when it reverts; both in milliseconds
    /// since the epoch.
    pub unconfirmed: Option<(u64, u64, u64)>,
    /// Settings that are used only after a restart.
    pub restart: usize,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(attention))
}

/// What needs attention, the worst first. `switchyard status` and the console show this list.
#[utoipa::path(
    get,
    path = "/v1/attention",
    responses((status = 200, description = "All findings; an empty list when nothing needs attention.", body = Vec<Attention>))
)]
async fn attention(State(appliance): State<Shared>) -> Result<Json<Vec<Attention>>, Problem> {
    answer(appliance, |appliance| Ok(findings(&gather(appliance)?))).await
}

/// Collects the facts that the rules look at. What needs the core is left out while the core does not answer.
fn gather(appliance: &dyn Appliance) -> Result<Facts, Problem> {
    let readiness = appliance.readiness();
    let has_core = !readiness
        .reasons
        .iter()
        .any(|reason| matches!(reason, NotReady::Starting | NotReady::Stopping | NotReady::CoreStalled));
    let archive = match appliance.archive() {
        Ok(pump) => Some(typed(pump)?),
        // There is none.
        Err(_) => None,
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Facts {
        now: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
        limits: appliance.attention_limits(),
        status: has_core.then(|| appliance.status()).transpose()?,
        drain: has_core.then(|| appliance.drain_state()).transpose()?,
        queues: if has_core { appliance.queues()? } else { Vec::new() },
        links: appliance.links(),
        networks: typed(appliance.gsm())?,
        hooks: typed(appliance.hooks()?)?,
        archive,
        configuration: appliance.configuration_waits(),
        readiness,
    })
}

/// An answer as its type. The API describes each answer by the same type.
fn typed<T: DeserializeOwned>(value: Value) -> Result<T, Problem> {
    serde_json::from_value(value).map_err(|error| {
        tracing::error!(%error, "an answer is not as the API describes it");
        Problem::new(Kind::Internal, "the facts cannot be read; the log says more")
    })
}
