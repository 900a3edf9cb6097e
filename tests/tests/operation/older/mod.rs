//! State files of older formats, octet by octet as their versions documented them above the records of the store
//! (`git log -G 'FORMAT: u8 =' -- host/store/src/record.rs host/codec/src/format.rs` leads there). Today's encoders have no part in it.

use redb::{Database, TableDefinition};
use std::path::Path;

/// The id of the first message.
pub(crate) const FIRST: u64 = 1_000_000_000;
/// Acceptance time of all messages.
pub(crate) const ACCEPTED: u64 = 1_700_000_000_000;
/// A time in the year 2100: when waiting messages are due, and when uncertain ones are given up.
const FAR: u64 = 4_102_444_700_000;

const ACME: u32 = 0;
const UPSTREAM: u32 = 1;

const SCHEDULED: u8 = 1 << 4;
const NOTE: u8 = 1 << 7;

type Rows<'a> = TableDefinition<'a, u64, &'static [u8]>;

fn short(out: &mut Vec<u8>, octets: &[u8]) {
    out.push(u8::try_from(octets.len()).unwrap_or(u8::MAX));
    out.extend_from_slice(octets);
}

fn text(out: &mut Vec<u8>, words: &str) {
    out.extend_from_slice(&u16::try_from(words.len()).unwrap_or(u16::MAX).to_le_bytes());
    out.extend_from_slice(words.as_bytes());
}

fn message(format: u8, id: u64, is_scheduled: bool) -> Vec<u8> {
    let mut out = vec![format, NOTE | if is_scheduled { SCHEDULED } else { 0 }];
    out.extend_from_slice(&ACME.to_le_bytes());
    // Protocol id, esm_class, priority, receipts on success and on failure, data coding.
    out.extend_from_slice(&[0, 0, 1, 3, 0]);
    out.extend_from_slice(&ACCEPTED.to_le_bytes());
    out.extend_from_slice(&(FAR + 100_000).to_le_bytes());
    if is_scheduled {
        out.extend_from_slice(&FAR.to_le_bytes());
    }
    out.extend_from_slice(&[5, 0]);
    short(&mut out, b"Switchyard");
    out.extend_from_slice(&[1, 1]);
    short(&mut out, format!("86130{id}").as_bytes());
    let words = format!("text of message {id}");
    out.extend_from_slice(&u32::try_from(words.len()).unwrap_or(0).to_le_bytes());
    out.extend_from_slice(words.as_bytes());
    // To be forwarded, by one leg: peer, rank, weight, cost, flags.
    out.extend_from_slice(&[0, 1]);
    out.extend_from_slice(&UPSTREAM.to_le_bytes());
    out.extend_from_slice(&[0, 1, 0, 0, 0, 0, 0, 0]);
    text(&mut out, "prefix-router");
    text(&mut out, "0123456789ab");
    text(&mut out, "everything upstream");
    if format >= 3 {
        // No price, no host answers, no sender request.
        out.push(0);
    }
    out
}

/// The wait state of a message after one attempt; its only step is that attempt.
fn progress(format: u8, waiting: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut out = vec![format];
    out.extend_from_slice(waiting);
    out.extend_from_slice(&[1, 0, 0]);
    out.push(u8::try_from(parts.len()).unwrap_or(0));
    for part in parts {
        short(&mut out, part);
        out.push(255);
    }
    steps(&mut out);
    out
}

fn steps(out: &mut Vec<u8>) {
    out.push(1);
    out.extend_from_slice(&(ACCEPTED + 1000).to_le_bytes());
    out.push(1);
    out.extend_from_slice(&UPSTREAM.to_le_bytes());
    out.extend_from_slice(&[1, 0]);
}

fn waiting(kind: u8, number: u64) -> Vec<u8> {
    [&[kind][..], &number.to_le_bytes()].concat()
}

/// Writes a file with seven messages in different states: queued and never attempted, deferred, submitted and never
/// answered, uncertain, accepted and waiting for its DLR, scheduled, delivered.
pub(crate) fn write(path: &Path, format: u8) -> Result<(), redb::Error> {
    let database = Database::create(path)?;
    let transaction = database.begin_write()?;
    {
        let mut meta = transaction.open_table(TableDefinition::<&str, u64>::new("meta"))?;
        for (key, value) in [("format", u64::from(format)), ("next_id", FIRST + 7), ("next_handed", 10)] {
            meta.insert(key, value)?;
        }
        let mut names = transaction.open_table(TableDefinition::<u32, &str>::new("names"))?;
        names.insert(ACME, "acme")?;
        names.insert(UPSTREAM, "upstream")?;
        let mut messages = transaction.open_table(Rows::new("messages"))?;
        for number in 0..6 {
            messages.insert(FIRST + number, &*message(format, FIRST + number, number == 5))?;
        }
        let mut rows = transaction.open_table(Rows::new("progress"))?;
        rows.insert(FIRST + 1, &*progress(format, &waiting(1, FAR), &[]))?;
        rows.insert(FIRST + 3, &*progress(format, &waiting(3, FAR), &[]))?;
        let receipt = [&[4][..], &UPSTREAM.to_le_bytes(), &FAR.to_le_bytes()].concat();
        rows.insert(FIRST + 4, &*progress(format, &receipt, &[b"peer-5"]))?;
        // Id, attempt, leg, time. The format of these rows never changed.
        let handed =
            [&[1][..], &(FIRST + 2).to_le_bytes(), &[1, 0, 0], &(ACCEPTED + 1000).to_le_bytes()].concat();
        transaction.open_table(Rows::new("handed"))?.insert(9, &*handed)?;
        let mut ended = message(format, FIRST + 6, false);
        // Delivered, when, no error, by whom, under which id.
        ended.extend_from_slice(&[format, 1]);
        ended.extend_from_slice(&(ACCEPTED + 2000).to_le_bytes());
        ended.extend_from_slice(&0_u32.to_le_bytes());
        ended.extend_from_slice(&UPSTREAM.to_le_bytes());
        short(&mut ended, b"peer-7");
        steps(&mut ended);
        transaction.open_table(Rows::new("finished"))?.insert(FIRST + 6, &*ended)?;
        if format >= 2 {
            let mut pair = Vec::new();
            short(&mut pair, b"10655");
            pair.extend_from_slice(b"8613000000009");
            transaction.open_table(TableDefinition::<&[u8], ()>::new("optouts"))?.insert(&*pair, ())?;
        }
    }
    transaction.commit()?;
    Ok(())
}
