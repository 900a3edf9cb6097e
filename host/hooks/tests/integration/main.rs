//! Integration tests of the hooks with real guests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step fails the test")]

mod batches;
mod call_counts;
mod call_replay;
mod candidates;
mod concurrent_changes;
mod cpu_contention;
mod fault_handling;
mod front_ends;
mod host_services;
mod host_time;
mod instances;
mod lifecycle;
mod lookups;
mod message_details;
mod pace_limits;
mod peers;
mod previous_contracts;
mod profile;
mod receipts;
mod recorded_calls;
mod refusals;
mod screening;
mod sender_requests;
mod support;
mod tenants;
mod versions;
mod wasi_pollables;
