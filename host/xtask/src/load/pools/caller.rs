//! One connection that takes numbers and gives them back.

use super::holders::Holders;
use super::wire;
use crate::load::Histogram;
use anyhow::{Result, bail};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Instant;

/// What was seen.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// Answers to calls and hangups that are counted.
    pub(super) answers: u64,
    /// Calls that were answered.
    pub(super) calls: u64,
    /// Calls that got no number.
    pub(super) empty: u64,
    /// Calls that got a number that somebody had.
    pub(super) doubles: u64,
    /// Calls that got what is no number of the pool.
    pub(super) strangers: u64,
    /// Answers that are errors, or not what they should be.
    pub(super) wrong: u64,
    /// The first of those.
    pub(super) complaint: Option<String>,
    /// Microseconds from the sending of a batch to each answer.
    pub(super) times: Histogram,
}

impl Seen {
    fn complain(&mut self, answer: &[u8]) {
        self.wrong += 1;
        self.complaint.get_or_insert_with(|| String::from_utf8_lossy(answer).into_owned());
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.answers += other.answers;
        self.calls += other.calls;
        self.empty += other.empty;
        self.doubles += other.doubles;
        self.strangers += other.strangers;
        self.wrong += other.wrong;
        if self.complaint.is_none() {
            self.complaint.clone_from(&other.complaint);
        }
        self.times.add(&other.times);
    }
}

/// What all connections send.
#[derive(Debug)]
pub(super) struct Words {
    /// A batch of calls.
    pub(super) calls: Vec<u8>,
    /// A hangup, up to the number's digits; the digits, and the end of the line follow.
    pub(super) hangup: Vec<u8>,
    /// Calls in a batch.
    pub(super) batch: usize,
}

/// Whether a batch of calls or one of hangups is on its way.
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
    words: Arc<Words>,
    phase: Phase,
    /// Answers that the batch still waits for.
    missing: usize,
    /// Hangups of the numbers that the batch was given, ready to be sent.
    hangups: Vec<u8>,
    /// Places of those numbers.
    places: Vec<usize>,
    /// The begin of an answer whose end has not come.
    rest: Vec<u8>,
    /// Octets of the batch that were written.
    written: usize,
    sent: Instant,
}

impl Caller {
    pub(super) fn new(socket: TcpStream, words: Arc<Words>) -> Self {
        Self {
            socket,
            phase: Phase::Done,
            missing: 0,
            hangups: Vec::with_capacity(words.batch * (words.hangup.len() + 16)),
            places: Vec::with_capacity(words.batch),
            words,
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

    /// Whether the socket did not take all of the batch.
    pub(super) fn wants_to_write(&self) -> bool {
        self.written < self.batch().len()
    }

    fn batch(&self) -> &[u8] {
        match self.phase {
            Phase::Calling => &self.words.calls,
            Phase::HangingUp => &self.hangups,
            Phase::Done => &[],
        }
    }

    /// Sends a batch of calls.
    pub(super) fn call(&mut self, now: Instant) -> Result<()> {
        (self.phase, self.missing) = (Phase::Calling, self.words.batch);
        self.hangups.clear();
        self.places.clear();
        self.send(now)
    }

    fn send(&mut self, now: Instant) -> Result<()> {
        (self.written, self.sent) = (0, now);
        self.write()
    }

    pub(super) fn write(&mut self) -> Result<()> {
        while self.wants_to_write() {
            // Field by field: the batch is borrowed from here too.
            let batch = match self.phase {
                Phase::Calling => &self.words.calls,
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

    /// Reads what has come; when the batch is answered, sends the next one, a batch of calls only if there is to be `more`.
    pub(super) fn read(
        &mut self,
        now: Instant,
        buffer: &mut [u8],
        holders: &Holders,
        more: bool,
        seen: &mut Seen,
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
                bail!("an answer that nothing waits for: {:?}", String::from_utf8_lossy(rest));
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
            Phase::Calling if !self.places.is_empty() => {
                (self.phase, self.missing) = (Phase::HangingUp, self.places.len());
                // As soon as the pool hears of it, others may be given them.
                self.places.iter().for_each(|place| holders.leave(*place));
                self.send(now)
            }
            _ if more => self.call(now),
            _ => {
                self.phase = Phase::Done;
                Ok(())
            }
        }
    }

    /// Takes the answer to a call off `rest`; `false` if it is not there as a whole.
    fn called(&mut self, rest: &mut &[u8], holders: &Holders, seen: &mut Seen) -> bool {
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
                match holders.place(number) {
                    Some(place) => {
                        seen.doubles += u64::from(!holders.take(place));
                        self.places.push(place);
                        self.hangups.extend_from_slice(&self.words.hangup);
                        self.hangups.extend_from_slice(number);
                        self.hangups.extend_from_slice(b"\r\n");
                    }
                    None => {
                        seen.strangers += 1;
                        seen.complain(number);
                    }
                }
            }
            other => seen.complain(other),
        }
        *rest = input;
        true
    }
}

/// Takes the answer to a hangup off `rest`; `false` if it is not there as a whole.
fn hung_up(rest: &mut &[u8], seen: &mut Seen) -> bool {
    let mut input = *rest;
    let Some(line) = wire::line(&mut input) else { return false };
    if line == b"$1" {
        let Some(text) = wire::line(&mut input) else { return false };
        if text != b"1" {
            seen.complain(text);
        }
    } else {
        seen.complain(line);
    }
    *rest = input;
    true
}
