//! The pages, one module each.

pub(crate) mod appliance_image;
pub(crate) mod archive;
pub(crate) mod audit;
pub(crate) mod cluster;
pub(crate) mod configuration;
pub(crate) mod fault_case;
pub(crate) mod faults;
pub(crate) mod help;
pub(crate) mod hook;
pub(crate) mod ledger;
pub(crate) mod login;
pub(crate) mod maintenance;
pub(crate) mod message_cases;
pub(crate) mod messages;
pub(crate) mod networks;
pub(crate) mod opt_outs;
pub(crate) mod outdated_plugins;
pub(crate) mod overview;
pub(crate) mod peer;
pub(crate) mod peers;
pub(crate) mod playground;
pub(crate) mod plugin_peer;
pub(crate) mod plugin_pull;
pub(crate) mod plugin_setup;
pub(crate) mod plugins;
pub(crate) mod policies;
pub(crate) mod pools;
pub(crate) mod profile;
pub(crate) mod quarantine;
pub(crate) mod queue_actions;
pub(crate) mod queues;
pub(crate) mod search;
pub(crate) mod subscribers;
pub(crate) mod tables;
pub(crate) mod tenants;
pub(crate) mod test_message;
pub(crate) mod trace;
pub(crate) mod uncertain;
pub(crate) mod users;
pub(crate) mod versions;

/// The query of a request.
pub(crate) type QueryParams = axum::extract::Query<Vec<(String, String)>>;
