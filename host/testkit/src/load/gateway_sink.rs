//! A gateway that accepts numbered messages over CMPP 3.0 or SMGP 3.0.

use super::tally::Tally;
use super::wire;
use anyhow::{Context, Result};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

/// The protocol of a [`GatewaySink`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GatewayProtocol {
    /// CMPP 3.0.
    Cmpp,
    /// SMGP 3.0.
    Smgp,
}

/// Offsets of the fields that the sink reads and writes; it ignores all others. Offsets count from the header on.
struct Layout {
    submit: u32,
    link_test: u32,
    logout: u32,
    /// Offset of the content's length in a Submit with one number.
    content_length: usize,
    /// Octets of a message's id.
    id: usize,
    /// Octets of the answer to a link test.
    link_test_answer: usize,
}

const CMPP: Layout =
    Layout { submit: 4, link_test: 8, logout: 2, content_length: 174, id: 8, link_test_answer: 13 };
const SMGP: Layout =
    Layout { submit: 2, link_test: 4, logout: 6, content_length: 138, id: 10, link_test_answer: 12 };

impl GatewayProtocol {
    fn layout(self) -> &'static Layout {
        match self {
            Self::Cmpp => &CMPP,
            Self::Smgp => &SMGP,
        }
    }

    /// The protocol's name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cmpp => "cmpp",
            Self::Smgp => "smgp",
        }
    }
}

/// A running gateway. Its threads end with the connections.
#[derive(Debug)]
pub struct GatewaySink {
    address: SocketAddr,
}

impl GatewaySink {
    /// Listens on a free loopback port.
    pub fn start(protocol: GatewayProtocol, tally: &Arc<Tally>) -> Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).context("listening")?;
        let address = listener.local_addr()?;
        let tally = Arc::clone(tally);
        let next_id = Arc::new(AtomicU64::new(1));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (tally, next_id) = (tally.clone(), next_id.clone());
                thread::spawn(move || serve(stream, protocol.layout(), &tally, &next_id));
            }
        });
        Ok(Self { address })
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Ends with the connection.
fn serve(mut stream: TcpStream, layout: &Layout, tally: &Tally, next_id: &AtomicU64) {
    let (mut input, mut filled) = (vec![0; 1 << 18], 0);
    let mut output = Vec::with_capacity(1 << 16);
    let _ = stream.set_nodelay(true);
    while let Ok(read @ 1..) = stream.read(&mut input[filled..]) {
        filled += read;
        let now = tally.micros(Instant::now());
        let mut at = 0;
        while let Some(pdu) = next(&input[at..filled]) {
            answer(pdu, layout, tally, next_id, now, &mut output);
            at += pdu.len();
        }
        input.copy_within(at..filled, 0);
        filled -= at;
        if stream.write_all(&output).is_err() {
            return;
        }
        output.clear();
    }
}

/// The next whole PDU.
fn next(octets: &[u8]) -> Option<&[u8]> {
    let length = u32::from_be_bytes(octets.get(..4)?.try_into().ok()?) as usize;
    octets.get(..length.max(12))
}

fn answer(pdu: &[u8], layout: &Layout, tally: &Tally, next_id: &AtomicU64, now: u64, output: &mut Vec<u8>) {
    let word =
        |at: usize| pdu.get(at..at + 4).and_then(|octets| octets.try_into().ok()).map(u32::from_be_bytes);
    let (Some(command), Some(sequence)) = (word(4), word(8)) else { return };
    let mut put = |length: usize, body: &[u8]| {
        output.extend_from_slice(&(length as u32).to_be_bytes());
        output.extend_from_slice(&(command | wire::ANSWER).to_be_bytes());
        output.extend_from_slice(&sequence.to_be_bytes());
        output.extend_from_slice(body);
        output.resize(output.len() + length - 12 - body.len(), 0);
    };
    if command == 1 {
        // Status 0, no proof, version 3.0.
        put(33, &[&[0; 20][..], &[0x30]].concat());
    } else if command == layout.submit {
        let start = layout.content_length + 1;
        let length = pdu.get(layout.content_length).copied().map_or(0, usize::from);
        match pdu.get(start..start + length).and_then(wire::parse_number) {
            Some((number, lane)) => {
                tally.arrived(number, lane, now);
            }
            None => tally.count_unknown(),
        }
        let mut id = [0; 10];
        id[2..].copy_from_slice(&next_id.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        put(12 + layout.id + 4, &id[10 - layout.id..]);
    } else if command == layout.link_test {
        put(layout.link_test_answer, &[]);
    } else if command == layout.logout {
        put(12, &[]);
    }
}
