//! The admin's HTTP API: routes, authentication, permissions, audit, and metrics.
//!
//! Each operation calls one of the services of an [`ApiBackend`]. This crate handles HTTP, tokens, errors and documents; it knows nothing of queues.
#![forbid(unsafe_code)]

mod appliance_image;
mod attention;
mod authenticator;
mod authz;
mod backend;
mod backup;
mod cluster;
mod configuration;
mod export;
mod health;
mod known_parameters;
mod ledger;
mod messages;
pub mod metrics;
mod openapi;
mod operation;
mod overview;
mod pace_buckets;
mod permissions;
mod plugin_sources;
mod plugins;
mod pools;
mod problem;
mod quarantine;
mod queue_actions;
mod ready;
mod recent_metrics;
mod records;
mod request;
mod request_audit;
mod root_token;
mod security_headers;
mod service;
mod subscribers;
mod tables;
mod testing;
mod trace;
mod users;

pub use appliance_image::{ApplianceImage, OperateClient};
pub use attention::{AttentionLimits, AttentionSource, PendingConfiguration};
pub use authenticator::Authenticator;
pub use backend::{ApiBackend, router};
pub use backup::Backup;
pub use cluster::{ClusterFollower, ClusterLeader, follower_router, no_cluster};
pub use configuration::{ChangeOptions, Configuration, ConfigurationEdit};
pub use export::Export;
pub use ledger::Ledger;
pub use messages::{MessageAction, Messages};
pub use openapi::document;
pub use operation::Operation;
pub use overview::Overview;
pub use pace_buckets::PaceBuckets;
pub use plugin_sources::PluginSources;
pub use plugins::Plugins;
pub use pools::{PoolFillResult, PoolJournalPage, Pools};
pub use problem::{Problem, ProblemKind};
pub use quarantine::{Quarantine, QuarantineDecision};
pub use queue_actions::QueueActions;
pub use records::Records;
pub use root_token::{RootToken, RootTokenError};
pub use subscribers::{GsmSubscribers, SubscriberName};
pub use testing::Testing;
pub use trace::Traces;
