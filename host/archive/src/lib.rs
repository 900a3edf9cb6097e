//! The archive of finished messages in SQL: pump, history queries, statistics, retention and export.
//!
//! The owner of the queues implements [`FinishedSource`]; [`Archive::pump`] moves its messages into the database. The
//! first connection creates or migrates the tables.
//!
//! * `messages`: one row per message, keyed by its id. Ids grow with time and define the order: pages are by descending
//!   id, and a cursor is an id.
//! * `hours`: the smallest and largest id per hour of acceptance. It maps a time range to a range of ids, so times need
//!   no index.
//! * `statistics`: counts by hour of acceptance, account, peer, direction, measure and code, updated in the transaction
//!   that inserts the messages.
//! * `audit`: the audit logs of the nodes of a cluster.
//!
//! The back ends for SQLite, MySQL/MariaDB and PostgreSQL are in `backend/`.
#![forbid(unsafe_code)]

mod archive;
mod archived_message;
mod audit;
mod backend;
mod content_erasure;
mod decision;
mod erased_trace;
mod error;
mod export;
mod finished_source;
mod history;
mod latency;
mod measures;
mod number_erasure;
mod options;
mod pump;
mod pump_status;
mod raw_batch;
mod record;
mod replay_source;
mod retention;
mod row;
mod row_redaction;
mod sealed_row;
mod shown_trace;
mod sql;
mod statistics;
mod text_retention;
mod trace;
mod write;

pub use archive::Archive;
pub use archived_message::{ArchivedMessage, ArchivedPrice, ArchivedScreening, MissingData};
pub use audit::AuditLog;
pub use decision::DecisionDecoder;
pub use error::{ArchiveError, SourceError};
pub use export::{ExportFormat, HistoryExport};
pub use finished_source::{FinishedSource, PeerDirectory};
pub use history::{ArchiveFilter, ArchivePage, RecordFields, Side};
pub use number_erasure::{ERASED_NUMBER, NumberErasure};
pub use options::ArchiveOptions;
pub use pump::{Pump, RunningPump};
pub use raw_batch::RawBatch;
pub use record::Record;
pub use replay_source::{ReplayRange, ReplaySource};
pub use retention::TrimReport;
pub use row::{IdTooLarge, Row};
pub use row_redaction::{ArchiveRedaction, TextRule};
pub use statistics::{Period, Span};
pub use trace::{DecodedTrace, TracePrice, TraceScreening};
