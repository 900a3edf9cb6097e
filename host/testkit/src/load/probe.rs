//! An ESME that submits one message at a time and returns its id, so that a test can look at that message's trace.

use super::wire;
use anyhow::{Context, Result, bail, ensure};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Command id, status, sequence number, body.
type Arrived = (u32, u32, u32, Vec<u8>);

/// Maximum time for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// An ESME that submits one message and waits for its answer.
///
/// A thread of its own reads the connection and answers each `enquire_link`, so that the session lives on however
/// long the test does something else.
#[derive(Debug)]
pub struct Probe {
    socket: TcpStream,
    sequence: u32,
    input: Receiver<Result<Arrived>>,
    template: wire::SubmitTemplate,
    /// Texts of the delivery receipts and messages that were delivered to it.
    pub delivered: Vec<String>,
}

impl Probe {
    /// Connects and binds as a transceiver. Destinations are `prefix` and ten digits.
    pub fn bind(
        address: SocketAddr,
        system_id: &str,
        password: &str,
        prefix: &str,
        receipts: bool,
    ) -> Result<Self> {
        let socket = TcpStream::connect(address).with_context(|| format!("connecting to {address}"))?;
        socket.set_nodelay(true)?;
        let (arrived, input) = channel();
        let reader = socket.try_clone()?;
        std::thread::Builder::new().name("probe".into()).spawn(move || read(reader, &arrived))?;
        let template = wire::SubmitTemplate::new("10655", prefix, 999, 40, receipts);
        let mut probe = Self { socket, sequence: 0, input, template, delivered: Vec::new() };
        let body = wire::bind(system_id, password);
        let (status, _) = probe.ask(wire::BIND_TRANSCEIVER, &body)?;
        ensure!(status == 0, "the bind was answered with status {status:#x}");
        Ok(probe)
    }

    fn ask(&mut self, id: u32, body: &[u8]) -> Result<(u32, Vec<u8>)> {
        self.sequence += 1;
        let mut out = Vec::new();
        wire::put(&mut out, id, 0, self.sequence, body);
        self.socket.write_all(&out)?;
        self.answer(id)
    }

    /// Reads PDUs up to the answer to the last request.
    fn answer(&mut self, id: u32) -> Result<(u32, Vec<u8>)> {
        let deadline = Instant::now() + ANSWER_TIMEOUT;
        loop {
            let (found, status, sequence, body) = self.next(deadline)?.context("no answer came in 20 s")?;
            if found == id | wire::ANSWER && sequence == self.sequence {
                return Ok((status, body));
            }
        }
    }

    /// The next PDU, or `None` after `deadline`. A message or receipt is answered and kept.
    fn next(&mut self, deadline: Instant) -> Result<Option<Arrived>> {
        let arrived = match self.input.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(arrived) => arrived?,
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            Err(RecvTimeoutError::Disconnected) => bail!("the connection was closed"),
        };
        let (id, _, sequence, body) = &arrived;
        if *id == wire::DELIVER_SM {
            let text =
                wire::parse_submit(body).map(|message| String::from_utf8_lossy(message.text).into_owned());
            self.delivered.push(text.unwrap_or_default());
            let mut out = Vec::new();
            wire::put(&mut out, id | wire::ANSWER, 0, *sequence, &[0]);
            self.socket.write_all(&out)?;
        }
        Ok(Some(arrived))
    }

    /// Submits the message with this number; returns its id, or the command status of the refusal.
    pub fn submit(&mut self, number: u64) -> Result<Result<String, u32>> {
        let mut out = Vec::new();
        self.template.write(self.sequence + 1, number, &mut out);
        self.submitted(&out)
    }

    /// Submits the message with this number to a destination that ends in these digits.
    pub fn submit_to(&mut self, digits: u64, number: u64) -> Result<Result<String, u32>> {
        let mut out = Vec::new();
        self.template.write_to(self.sequence + 1, digits, number, &mut out);
        self.submitted(&out)
    }

    fn submitted(&mut self, out: &[u8]) -> Result<Result<String, u32>> {
        self.sequence += 1;
        self.socket.write_all(out)?;
        let (status, body) = self.answer(wire::SUBMIT_SM)?;
        if status != 0 {
            return Ok(Err(status));
        }
        Ok(Ok(String::from_utf8_lossy(body.strip_suffix(&[0]).unwrap_or(&body)).into_owned()))
    }

    /// Waits until this many receipts and messages were delivered to it.
    pub fn wait_for_delivered(&mut self, count: usize, time: Duration) -> Result<()> {
        let deadline = Instant::now() + time;
        while self.delivered.len() < count {
            let next = self.next(deadline)?;
            ensure!(next.is_some(), "only {} were delivered within {time:?}", self.delivered.len());
        }
        Ok(())
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        // The reading thread has the socket, too: without this, the connection would outlive the probe.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

/// Reads until the connection ends: answers the SMSC's requests except `deliver_sm`, and passes everything else on.
fn read(mut socket: TcpStream, arrived: &Sender<Result<Arrived>>) {
    let mut input = Vec::new();
    let mut some = [0; 4096];
    loop {
        match socket.read(&mut some) {
            Ok(0) => return,
            Ok(count) => input.extend_from_slice(&some[..count]),
            Err(error) => {
                let _ = arrived.send(Err(error.into()));
                return;
            }
        }
        let mut rest = input.as_slice();
        loop {
            let (id, status, sequence, body) = match wire::next(&mut rest) {
                Ok(Some(pdu)) => (pdu.id, pdu.status, pdu.sequence, pdu.body.to_vec()),
                Ok(None) => break,
                Err(error) => {
                    let _ = arrived.send(Err(error.into()));
                    return;
                }
            };
            if id & wire::ANSWER == 0 && id != wire::DELIVER_SM {
                let mut out = Vec::new();
                wire::put(&mut out, id | wire::ANSWER, 0, sequence, &[]);
                if socket.write_all(&out).is_err() {
                    return;
                }
            } else if arrived.send(Ok((id, status, sequence, body))).is_err() {
                return;
            }
        }
        input = rest.to_vec();
    }
}
