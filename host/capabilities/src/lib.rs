//! Capabilities of plugins, one module each, with their limits.
//!
//! This crate does not depend on WebAssembly: the crate `hooks` puts the capabilities behind the interfaces of
//! `wit/capabilities.wit`, and the test harness for plugin authors replaces them with its own. A plugin is identified
//! by its name; its grants come from its binding and are passed as arguments.
#![forbid(unsafe_code)]

mod calendar;
mod counters;
mod dns;
mod durable_counters;
mod error;
mod fetch;
mod hlr;
mod kv_store;
mod log_budget;
mod quality;
mod table_store;

pub use api::{CounterGrant, CounterWindow, DnsGrant, QualityGrant, TableFillResult, TableKind};
pub use calendar::check_counter_grants;
pub use counters::{CounterMetrics, CounterOptions, CounterSpace, Counters};
pub use dns::{
    Dns, DnsAnswer, DnsClient, DnsFailure, DnsQuestion, DnsRecord, DnsRecordType, DnsResponse, NaptrRecord,
    check_dns_grant, parse_dns_response,
};
pub use durable_counters::{
    CounterWriter, DurableCounter, DurableCounterMetrics, DurableCounterOptions, DurableCounters,
};
pub use error::Error;
pub use fetch::{
    Fetch, FetchFailure, FetchLimits, FetchMetrics, FetchRequest, FetchResponse, Fetcher, FetcherOptions,
    HttpGrant, HttpGrants,
};
pub use hlr::{ChainHlr, Hlr, HlrFailure, HlrSubscriber, TableHlr};
pub use kv_store::{KvMetrics, KvStore, KvUsage, MemoryKvStore, RedbKvStore, RowChange, WriteThrough};
pub use log_budget::{LogBudget, LogBudgets};
pub use quality::{
    DEFAULT_QUALITY_WINDOW, Observed, PeerFigures, PeerQuality, QualityAccess, QualityDimension,
    QualityWindows, check_quality_grant,
};
pub use table_store::{Table, TableHandle, TableStore, TableStoreOptions};
