//! Finished messages in SQL: the data pump, history queries, statistics, retention and export.
//!
//! The owner of the queues gives finished messages by a [`Source`] and takes back their ids once they are safe;
//! [`Archive::pump`] does the rest. Tables are made and brought up to date by whoever connects first.
//!
//! * `messages`: one row a message, under its id. Ids grow with time, so they are the order of everything: newest first is
//!   by falling id, and a page's cursor is an id.
//! * `hours`: smallest and largest id by hour of acceptance; with it a range of time is a range of ids, and time needs no
//!   index.
//! * `statistics`: counts by hour of acceptance, account, peer, direction, measure and code, added to in the transaction
//!   that puts the messages in.
//!
//! Back ends stand side by side in `backend/`: SQLite, MySQL/MariaDB and PostgreSQL.
#![forbid(unsafe_code)]

mod archive;
mod archived;
mod backend;
mod decision;
mod error;
mod export;
mod history;
mod latency;
mod measure;
mod pump;
mod record;
mod replay_source;
mod retention;
mod row;
mod source;
mod sql;
mod statistics;
mod status;
mod storable;
mod trace;
mod write;

pub use archive::{Archive, Options};
pub use archived::{ArchivedLeg, ArchivedMessage, ArchivedVerdict, Lacking, Price, PriceState};
pub use decision::Decoder;
pub use error::{ArchiveError, BoxError};
pub use export::{Export, Format};
pub use history::{Cursor, Filter, Page, Side, Wanted};
pub use latency::Latency;
pub use pump::{Pump, RunningPump};
pub use record::{Record, RecordPrice};
pub use replay_source::{RawBatch, ReplayRange, ReplaySource};
pub use retention::Trimmed;
pub use row::{Direction, IdTooLarge, Row};
pub use source::{Parties, Source};
pub use statistics::{Counts, Period, Span, Statistics};
pub use status::{PumpStatus, State};
pub use trace::{DecodedTrace, TracedPrice, decode_trace};
