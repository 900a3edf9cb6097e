//! An ESME that submits one message at a time and returns its id, so that a test can look at that message's trace.

use super::wire;
use anyhow::{Context, Result, ensure};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Command id, status, sequence number, body.
type Arrived = (u32, u32, u32, Vec<u8>);

/// An ESME that submits one message and waits for its answer.
#[derive(Debug)]
pub struct Probe {
    socket: TcpStream,
    sequence: u32,
    input: Vec<u8>,
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
        socket.set_read_timeout(Some(Duration::from_secs(20)))?;
        let template = wire::SubmitTemplate::new("10655", prefix, 999, 40, receipts);
        let mut probe = Self { socket, sequence: 0, input: Vec::new(), template, delivered: Vec::new() };
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

    /// Reads up to the answer to the last request.
    fn answer(&mut self, id: u32) -> Result<(u32, Vec<u8>)> {
        loop {
            if let Some((found, status, sequence, body)) = self.next()? {
                if found == id | wire::ANSWER && sequence == self.sequence {
                    return Ok((status, body));
                }
                continue;
            }
            self.read()?;
        }
    }

    fn read(&mut self) -> Result<()> {
        let mut some = [0; 4096];
        let count = self.socket.read(&mut some)?;
        ensure!(count > 0, "the connection was closed");
        self.input.extend_from_slice(&some[..count]);
        Ok(())
    }

    /// The next complete PDU; requests of the SMSC are answered.
    fn next(&mut self) -> Result<Option<Arrived>> {
        let input = std::mem::take(&mut self.input);
        let mut rest = input.as_slice();
        let found = wire::next(&mut rest)?.map(|pdu| (pdu.id, pdu.status, pdu.sequence, pdu.body.to_vec()));
        self.input = rest.to_vec();
        if let Some((id, _, sequence, body)) = &found
            && id & wire::ANSWER == 0
        {
            if *id == wire::DELIVER_SM {
                let text = wire::parse_submit(body)
                    .map(|message| String::from_utf8_lossy(message.text).into_owned());
                self.delivered.push(text.unwrap_or_default());
            }
            let mut out = Vec::new();
            let answer: &[u8] = if *id == wire::DELIVER_SM { &[0] } else { &[] };
            wire::put(&mut out, id | wire::ANSWER, 0, *sequence, answer);
            self.socket.write_all(&out)?;
        }
        Ok(found)
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
            if self.next()?.is_none() {
                ensure!(
                    Instant::now() < deadline,
                    "only {} were delivered within {time:?}",
                    self.delivered.len()
                );
                self.read()?;
            }
        }
        Ok(())
    }
}
