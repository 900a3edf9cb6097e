//! One connection that leases and releases numbers.

use super::holders::Holders;
use super::wire;
use crate::load::Histogram;
use anyhow::{Result, bail};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Instant;

/// Counts of a caller.
#[derive(Debug, Clone, Default)]
pub(super) struct CallerCounts {
    /// Counted answers to calls and hangups.
    pub(super) answers: u64,
    /// Answered calls.
    pub(super) calls: u64,
    /// Calls that got no number.
    pub(super) empty: u64,
    /// Calls that got a number that another caller held.
    pub(super) doubles: u64,
    /// Calls that got a number that is not in the pool.
    pub(super) unknown: u64,
    /// Errors and unexpected answers.
    pub(super) wrong: u64,
    /// The first error or unexpected answer.
    pub(super) first_error: Option<String>,
    /// Microseconds from sending a batch to each of its answers.
    pub(super) times: Histogram,
}

impl CallerCounts {
    fn record_error(&mut self, answer: &[u8]) {
        self.wrong += 1;
        self.first_error.get_or_insert_with(|| String::from_utf8_lossy(answer).into_owned());
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.answers += other.answers;
        self.calls += other.calls;
        self.empty += other.empty;
        self.doubles += other.doubles;
        self.unknown += other.unknown;
        self.wrong += other.wrong;
        if self.first_error.is_none() {
            self.first_error.clone_from(&other.first_error);
        }
        self.times.add(&other.times);
    }
}

/// Encoded requests that all connections send.
#[derive(Debug)]
pub(super) struct EncodedRequests {
    /// A batch of calls.
    pub(super) calls: Vec<u8>,
    /// A hangup up to the digits of the number; the digits and the end of the line follow.
    pub(super) hangup: Vec<u8>,
    /// Calls per batch.
    pub(super) batch: usize,
}

/// Whether a batch of calls or of hangups is in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Calling,
    HangingUp,
    /// Nothing more is sent.
    Done,
}

#[derive(Debug)]
pub(super) struct Caller {
    socket: TcpStream,
    encoded: Arc<EncodedRequests>,
    phase: Phase,
    /// Outstanding answers of the batch.
    missing: usize,
    /// Encoded hangups of the numbers that the batch got.
    hangups: Vec<u8>,
    /// Indexes of these numbers.
    indexes: Vec<usize>,
    /// Incomplete reply at the end of the input.
    rest: Vec<u8>,
    /// Octets of the batch that were written.
    written: usize,
    sent: Instant,
}

impl Caller {
    pub(super) fn new(socket: TcpStream, encoded: Arc<EncodedRequests>) -> Self {
        Self {
            socket,
            phase: Phase::Done,
            missing: 0,
            hangups: Vec::with_capacity(encoded.batch * (encoded.hangup.len() + 16)),
            indexes: Vec::with_capacity(encoded.batch),
            encoded,
            rest: Vec::new(),
            written: 0,
            sent: Instant::now(),
        }
    }

    pub(super) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    pub(super) fn done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// Whether the socket did not take the whole batch.
    pub(super) fn wants_to_write(&self) -> bool {
        self.written < self.batch().len()
    }

    fn batch(&self) -> &[u8] {
        match self.phase {
            Phase::Calling => &self.encoded.calls,
            Phase::HangingUp => &self.hangups,
            Phase::Done => &[],
        }
    }

    /// Sends a batch of calls.
    pub(super) fn call(&mut self, now: Instant) -> Result<()> {
        (self.phase, self.missing) = (Phase::Calling, self.encoded.batch);
        self.hangups.clear();
        self.indexes.clear();
        self.send(now)
    }

    fn send(&mut self, now: Instant) -> Result<()> {
        (self.written, self.sent) = (0, now);
        self.write()
    }

    pub(super) fn write(&mut self) -> Result<()> {
        while self.wants_to_write() {
            // Field by field: the batch is borrowed from here as well.
            let batch = match self.phase {
                Phase::Calling => &self.encoded.calls,
                _ => &self.hangups,
            };
            match (&self.socket).write(&batch[self.written..]) {
                Ok(0) => bail!("the connection was closed"),
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reads replies; once the batch is answered, sends the next one, a batch of calls only if `more`.
    pub(super) fn read(
        &mut self,
        now: Instant,
        buffer: &mut [u8],
        holders: &Holders,
        more: bool,
        seen: &mut CallerCounts,
    ) -> Result<()> {
        let before = self.rest.len();
        buffer[..before].copy_from_slice(&self.rest);
        let count = match (&self.socket).read(&mut buffer[before..]) {
            Ok(0) => bail!("the connection was closed"),
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let mut rest = &buffer[..before + count];
        let time = (now - self.sent).as_micros() as u64;
        while !rest.is_empty() {
            if self.missing == 0 {
                bail!("unexpected answer: {:?}", String::from_utf8_lossy(rest));
            }
            let whole = match self.phase {
                Phase::Calling => self.called(&mut rest, holders, seen),
                _ => hung_up(&mut rest, seen),
            };
            if !whole {
                break;
            }
            self.missing -= 1;
            seen.answers += 1;
            seen.times.record(time);
        }
        self.rest.clear();
        self.rest.extend_from_slice(rest);
        if self.missing > 0 {
            return Ok(());
        }
        match self.phase {
            Phase::Calling if !self.indexes.is_empty() => {
                (self.phase, self.missing) = (Phase::HangingUp, self.indexes.len());
                // As soon as the pool has the release, it may lease the numbers to others.
                self.indexes.iter().for_each(|index| holders.release(*index));
                self.send(now)
            }
            _ if more => self.call(now),
            _ => {
                self.phase = Phase::Done;
                Ok(())
            }
        }
    }

    /// Takes the reply to a call off `rest`; `false` if it is incomplete.
    fn called(&mut self, rest: &mut &[u8], holders: &Holders, seen: &mut CallerCounts) -> bool {
        let mut input = *rest;
        let Some(line) = wire::line(&mut input) else { return false };
        match line {
            b"$-1" => {
                seen.calls += 1;
                seen.empty += 1;
            }
            [b'$', ..] => {
                let Some(number) = wire::line(&mut input) else { return false };
                seen.calls += 1;
                match holders.index_of(number) {
                    Some(index) => {
                        seen.doubles += u64::from(!holders.acquire(index));
                        self.indexes.push(index);
                        self.hangups.extend_from_slice(&self.encoded.hangup);
                        self.hangups.extend_from_slice(number);
                        self.hangups.extend_from_slice(b"\r\n");
                    }
                    None => {
                        seen.unknown += 1;
                        seen.record_error(number);
                    }
                }
            }
            other => seen.record_error(other),
        }
        *rest = input;
        true
    }
}

/// Takes the reply to a hangup off `rest`; `false` if it is incomplete.
fn hung_up(rest: &mut &[u8], seen: &mut CallerCounts) -> bool {
    let mut input = *rest;
    let Some(line) = wire::line(&mut input) else { return false };
    if line == b"$1" {
        let Some(text) = wire::line(&mut input) else { return false };
        if text != b"1" {
            seen.record_error(text);
        }
    } else {
        seen.record_error(line);
    }
    *rest = input;
    true
}
