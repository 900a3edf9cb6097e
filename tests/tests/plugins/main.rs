//! Plugins: their lifecycle, their decisions, and the data that the daemon stores for them.

mod adaptive;
mod cdr;
mod counters;
mod dlr_urls;
mod firewall;
mod foreign;
mod front_end;
mod fuzz;
mod ledger;
mod log;
mod message_details;
mod pace_limits;
mod peers;
mod policy;
mod policy_schema;
mod policy_try;
mod profile;
mod quarantine;
mod receipt;
mod replays;
mod resolver;
mod route_by_network;
mod sources;
mod tenants;
