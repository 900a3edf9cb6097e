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
use api::{AttentionView, NotReady, QueueView};
use axum::Json;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use configuration::Keys;
use model::{NumberDisplay, Timestamp};
use rules::{Facts, findings};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Thresholds of the attention rules: `[attention]` of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Keys)]
pub struct AttentionLimits {
    /// Maximum age of the oldest message in a queue.
    #[key(default = "10m")]
    pub queue_age: Duration,
    /// Maximum age of the oldest message to an account without links: its system may be switched off for a while.
    #[key(default = "1h")]
    pub unbound_account: Duration,
    /// Maximum time that a message is in quarantine.
    #[key(default = "4h")]
    pub quarantine_age: Duration,
    /// Maximum number of messages waiting to be archived.
    #[key(default = 100_000)]
    pub archive_backlog: u64,
    /// Time for which an automatic rollback of a plugin is reported.
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
    /// The unconfirmed version, the time when it came into force, and the time when it reverts (both in milliseconds
    /// since the epoch).
    pub unconfirmed: Option<(u64, u64, u64)>,
    /// Number of settings that apply only after a restart.
    pub restart: usize,
}

/// Source of the limits of the attention rules.
pub trait AttentionLimitsSource: Send + Sync + 'static {
    /// The limits.
    fn attention_limits(&self) -> AttentionLimits;
}

/// Defines the services that the attention rules use.
macro_rules! sources {
    ($($field:ident: $service:ident),* $(,)?) => {
        /// The services that the attention rules use.
        pub(crate) struct AttentionSources {
            $($field: Arc<dyn $service>,)*
        }

        /// A router state that has the services of the attention rules.
        pub(crate) trait ProvidesAttention: $(Provides<dyn $service> +)* {}

        impl<S: $(Provides<dyn $service> +)*> ProvidesAttention for S {}

        impl<S: ProvidesAttention> FromRequestParts<S> for AttentionSources {
            type Rejection = Infallible;

            async fn from_request_parts(_: &mut Parts, state: &S) -> Result<Self, Infallible> {
                Ok(Self { $($field: Provides::<dyn $service>::service(state),)* })
            }
        }
    };
}

sources! {
    cluster: ClusterLeader,
    configuration: Configuration,
    event_sinks: EventSinkStates,
    limits: AttentionLimitsSource,
    operation: Operation,
    overview: Overview,
    plugins: Plugins,
    quarantine: Quarantine,
    records: MessageRecords,
}

pub(crate) fn routes<S: ProvidesAttention>() -> OpenApiRouter<S> {
    OpenApiRouter::new().routes(routes!(attention))
}

/// Lists findings that need attention, errors first.
///
/// `switchyard status` and the console show this list.
#[utoipa::path(
    get,
    path = "/v1/attention",
    responses((status = 200, description = "All findings. The list is empty if nothing needs attention.", body = Vec<AttentionView>))
)]
async fn attention(sources: AttentionSources) -> Result<Json<Vec<AttentionView>>, Problem> {
    call_json(Service(Arc::new(sources)), |sources| Ok(findings(&sources.facts()?))).await
}

impl AttentionSources {
    /// The findings, and the queues from which they were derived.
    pub(crate) fn findings_and_queues(&self) -> Result<(Vec<AttentionView>, Vec<QueueView>), Problem> {
        let facts = self.facts()?;
        Ok((findings(&facts), facts.queues))
    }

    /// The input of the rules. Facts of the core are omitted while the core does not answer.
    fn facts(&self) -> Result<Facts, Problem> {
        let readiness = self.operation.readiness();
        let has_core = !readiness
            .reasons
            .iter()
            .any(|reason| matches!(reason, NotReady::Starting | NotReady::Stopping | NotReady::CoreStalled));
        Ok(Facts {
            now: Timestamp::now().0,
            limits: self.limits.attention_limits(),
            status: has_core.then(|| self.overview.status()).transpose()?,
            drain: has_core.then(|| self.operation.drain_state()).transpose()?,
            queues: if has_core { self.overview.queues()? } else { Vec::new() },
            oldest_quarantined: if has_core {
                self.quarantine.quarantine(None, None, 1, NumberDisplay::Masked)?.messages.pop()
            } else {
                None
            },
            links: self.overview.links(),
            networks: self.overview.gsm(),
            cluster: self.cluster.cluster(),
            hooks: self.plugins.hooks(),
            // An error: there is no archive.
            archive: self.records.archive().ok(),
            event_sinks: self.event_sinks.event_sinks(),
            configuration: self.configuration.pending_configuration(),
            readiness,
        })
    }
}
