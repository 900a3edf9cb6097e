//! A minimal MSC that only requests authentication vectors: it measures the latency of a request and its answer.

use super::subscribers::Subscribers;
use super::wire::{self, Message};
use crate::load::Histogram;
use anyhow::{Context, Result, bail, ensure};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// A connection to an HLR or to the proxy before it.
#[derive(Debug)]
pub struct PlainMsc {
    socket: TcpStream,
    input: Vec<u8>,
    filled: usize,
}

impl PlainMsc {
    /// Connects, and answers the identity request.
    pub fn connect(hlr: SocketAddr, name: &str) -> Result<Self> {
        let socket = TcpStream::connect(hlr).with_context(|| format!("connecting to {hlr}"))?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(Duration::from_secs(10)))?;
        let mut msc = Self { socket, input: vec![0; 1 << 17], filled: 0 };
        let mut asked = false;
        while !asked {
            msc.read(|stream, payload| {
                asked |= stream == wire::CCM && payload.first() == Some(&wire::ID_GET);
            })?;
        }
        let mut output = Vec::new();
        wire::id_response(&mut output, name);
        wire::word(&mut output, wire::ID_ACK);
        msc.socket.write_all(&output)?;
        Ok(msc)
    }

    /// Sends requests one after the other and records the latency of each, in units of 10 nanoseconds.
    pub fn ask(&mut self, subscriber: u64, count: u64, times: &mut Histogram) -> Result<()> {
        let question = question(subscriber);
        for _ in 0..count {
            let began = Instant::now();
            self.socket.write_all(&question)?;
            let mut answered = false;
            while !answered {
                self.read(|_, payload| answered |= is_answer(payload))?;
            }
            times.record(began.elapsed().as_nanos() as u64 / 10);
        }
        Ok(())
    }

    /// Sends requests with this window; returns the total time.
    pub fn submit_all(&mut self, subscriber: u64, count: u64, window: u64) -> Result<Duration> {
        let (question, began) = (question(subscriber), Instant::now());
        let (mut sent, mut answered) = (0, 0);
        while answered < count {
            let due = count.min(answered + window) - sent;
            self.socket.write_all(&question.repeat(due as usize))?;
            sent += due;
            // Waits for a good part of the window, so that neither side works on single requests.
            let enough = (answered + window / 4).min(count);
            while answered < enough {
                self.read(|_, payload| answered += u64::from(is_answer(payload)))?;
            }
        }
        ensure!(answered == count, "{answered} answers to {count} questions");
        Ok(began.elapsed())
    }

    fn read(&mut self, mut each: impl FnMut(u8, &[u8])) -> Result<()> {
        let count = self.socket.read(&mut self.input[self.filled..]).context("waiting for an answer")?;
        if count == 0 {
            bail!("the connection was closed");
        }
        self.filled += count;
        let mut rest = &self.input[..self.filled];
        while let Some((stream, payload)) = wire::next(&mut rest) {
            each(stream, payload);
        }
        let left = rest.len();
        self.input.copy_within(self.filled - left..self.filled, 0);
        self.filled = left;
        Ok(())
    }
}

fn question(subscriber: u64) -> Vec<u8> {
    let mut question = Vec::new();
    let elements: [(u8, &[u8]); 2] = [(wire::CN_DOMAIN, &[2]), (wire::CLASS, &[1])];
    wire::message(&mut question, wire::SEND_AUTH_INFO, Subscribers::imsi(subscriber), &elements);
    question
}

fn is_answer(payload: &[u8]) -> bool {
    Message::read(payload).is_some_and(|message| message.kind == wire::SEND_AUTH_INFO + wire::RESULT)
}
