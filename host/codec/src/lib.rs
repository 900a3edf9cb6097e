//! The encoding of messages, records and batches, shared by the store, the archive, and all other writers of batches.
//!
//! All numbers are little-endian, and every record begins with its format version; the encoders describe their records.
//! The same value gives the same octets on every machine. Decoders never panic.
#![forbid(unsafe_code)]

mod batch;
mod batch_format;
mod content;
mod cursor;
mod field;
mod format;
mod idempotency_keys;
mod ledger;
mod lookup;
mod message;
mod message_records;
mod orphan_dlrs;
mod pace;
mod pools;
mod progress;
mod queue_actions;
mod recorded_calls;
mod routing;
mod steps;

pub use batch::{decode_batch, decode_batch_with, encode_batch, encode_batch_as, encode_batch_with};
pub use batch_format::BatchFormat;
pub use content::{CipherError, ContentCipher, ContentPart, KEY_DESTROYED};
pub use cursor::{Cursor, put_address, put_leb128, put_long, put_short, put_text};
pub use format::{FORMAT, RecordError};
pub use idempotency_keys::{decode_idempotency_key, encode_idempotency_key};
pub use ledger::{
    decode_balance, decode_operation, decode_settlement, encode_balance, encode_operation, encode_settlement,
};
pub use lookup::{lookup, put_lookup};
pub use message::{
    RecordDecoder, RecordSummary, content_key, decode_parties, encode_message, encode_message_with,
    read_summary, split_former_tlvs,
};
pub use message_records::{MessageRecord, MessageRecordKind, message_records};
pub use orphan_dlrs::{decode_orphan_dlr, encode_orphan_dlr};
pub use pace::{decode_pace_day, encode_pace_day};
pub use pools::{decode_journal, decode_number, decode_pool, encode_journal, encode_number, encode_pool};
pub use progress::{
    decode_final, decode_progress, decode_submit_attempts, encode_final, encode_progress,
    encode_submit_attempts,
};
pub use queue_actions::{decode_queue_action, encode_queue_action};
pub use recorded_calls::{
    decode_receipt_call, decode_submit_call, encode_receipt_call, encode_submit_call, open_recorded_calls,
    seal_recorded_call,
};
pub use routing::{
    CompactLayout, FixedLayout, Layout, changes, put_changes, put_screen_verdict, put_verdict,
    screen_verdict, verdict,
};
