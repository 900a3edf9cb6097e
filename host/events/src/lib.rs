//! Event sinks and CDR files: readers of the journal that inform other systems.
//!
//! Each reader has a thread and a durable position. It reads journal records that are on disk, translates them into
//! events, and advances its position when the sink has accepted them. The core never waits for a sink. Nothing is lost
//! while a sink or the daemon is down, as long as the journal keeps the records. An event may be sent twice; both have
//! the same id. See decision 66.
#![forbid(unsafe_code)]

mod amqp;
mod cdr;
mod cloud_event;
mod cursor;
mod error;
mod event_data;
mod held_positions;
mod http;
mod kafka;
mod message_facts;
mod nats;
mod options;
mod position_store;
mod record_source;
mod server_connection;
mod sink_status;
mod sink_storage;
mod sink_thread;
mod sinks;
mod translator;
mod transport;

pub use amqp::{AmqpProtocolError, AmqpServerFrame, decode_amqp_frame};
pub use cdr::{CdrFormat, CdrOptions};
pub use cloud_event::EventType;
pub use error::EventsError;
pub use message_facts::{DirectoryError, MessageDirectory};
pub use nats::{NatsProtocolError, NatsServerMessage, decode_nats_message};
pub use options::{EventMode, EventNumbers, EventSinkOptions, SaslMechanism};
pub use position_store::PositionStore;
pub use sink_storage::SinkStorage;
pub use sinks::{EventSinks, SinkCursors};
