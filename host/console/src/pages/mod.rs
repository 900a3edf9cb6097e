//! The pages, one module each.

pub(crate) mod archive;
pub(crate) mod audit;
pub(crate) mod compose;
pub(crate) mod configuration;
pub(crate) mod faults;
pub(crate) mod hook;
pub(crate) mod ledger;
pub(crate) mod login;
pub(crate) mod machine;
pub(crate) mod maintenance;
pub(crate) mod messages;
pub(crate) mod networks;
pub(crate) mod opt_outs;
pub(crate) mod orders;
pub(crate) mod overview;
pub(crate) mod own;
pub(crate) mod peer;
pub(crate) mod peers;
pub(crate) mod people;
pub(crate) mod plugins;
pub(crate) mod policies;
pub(crate) mod pools;
pub(crate) mod queues;
pub(crate) mod standing;
pub(crate) mod subscribers;
pub(crate) mod tables;
pub(crate) mod trace;
pub(crate) mod uncertain;
pub(crate) mod versions;

/// What stands behind the question mark.
pub(crate) type Asked = axum::extract::Query<Vec<(String, String)>>;
