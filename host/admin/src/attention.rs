//! `GET /v1/attention`: findings that need attention. The CLI and the console show the same list.

mod rules;

use crate::cluster::ClusterLeader;
use crate::configuration::Configuration;
use crate::event_sinks::EventSinkStates;
use crate::operation::Operation;
use crate::overview::Overview;
use crate::plugins::Plugins;
use crate::problem::Problem;
use crate::quarantine::Quarantine;
use crate::records::MessageRecords;
use crate::service::{Provides, Service, call_json};
use api::{AttentionView, NotReady};
use axum::Json;
use configuration::Keys;
use model::{NumberDisplay, Timestamp};
use rules::{Facts, findings};
use std::time::Duration;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Thresholds of the attention rules: `[attention]` of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Keys)]
pub struct AttentionLimits {
    /// Maximum age of the oldest message in a queue.
    #[key(default = "10m")]
    pub queue_age: Duration,
    /// Maximum age of the oldest message for an account without links: its system may be switched off for a while.
    #[key(default = "1h")]
    pub unbound_account: Duration,
    /// Maximum time that a message is in quarantine.
    #[key(default = "4h")]
    pub quarantine_age: Duration,
    /// Maximum number of messages waiting to be archived.
    #[key(default = 100_000)]
    pub archive_backlog: u64,
    /// How long an automatic rollback of a plugin is reported.
    #[key(default = "1h")]
    pub plugin_event: Duration,
}

impl Default for AttentionLimits {
    fn default() -> Self {
        Self::defaults()
    }
}

/// Configuration changes that are pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PendingConfiguration {
    /// The unconfirmed version, when it came into force, and when it reverts (both in milliseconds since the epoch).
    pub unconfirmed: Option<(u64, u64, u64)>,
    /// Number of settings that apply only after a restart.
    pub restart: usize,
}

/// What the attention rules look at.
pub trait AttentionSource:
    Operation + Overview + Quarantine + ClusterLeader + Plugins + MessageRecords + EventSinkStates + Configuration
{
    /// The limits of the attention rules.
    fn attention_limits(&self) -> AttentionLimits;
}

pub(crate) fn routes<S: Provides<dyn AttentionSource>>() -> OpenApiRouter<S> {
    OpenApiRouter::new().routes(routes!(attention))
}

/// Lists what needs attention, errors first.
///
/// `switchyard status` and the console show this list.
#[utoipa::path(
    get,
    path = "/v1/attention",
    responses((status = 200, description = "All findings. The list is empty if nothing needs attention.", body = Vec<AttentionView>))
)]
async fn attention(backend: Service<dyn AttentionSource>) -> Result<Json<Vec<AttentionView>>, Problem> {
    call_json(backend, |backend| Ok(findings(&collect_facts(backend)?))).await
}

/// Collects the facts for the rules. Facts of the core are omitted while the core does not answer.
fn collect_facts(backend: &dyn AttentionSource) -> Result<Facts, Problem> {
    let readiness = backend.readiness();
    let has_core = !readiness
        .reasons
        .iter()
        .any(|reason| matches!(reason, NotReady::Starting | NotReady::Stopping | NotReady::CoreStalled));
    Ok(Facts {
        now: Timestamp::now().0,
        limits: backend.attention_limits(),
        status: has_core.then(|| backend.status()).transpose()?,
        drain: has_core.then(|| backend.drain_state()).transpose()?,
        queues: if has_core { backend.queues()? } else { Vec::new() },
        oldest_quarantined: if has_core {
            backend.quarantine(None, None, 1, NumberDisplay::Masked)?.messages.pop()
        } else {
            None
        },
        links: backend.links(),
        networks: backend.gsm(),
        cluster: backend.cluster(),
        hooks: backend.hooks(),
        // An error: there is no archive.
        archive: backend.archive().ok(),
        event_sinks: backend.event_sinks(),
        configuration: backend.pending_configuration(),
        readiness,
    })
}
