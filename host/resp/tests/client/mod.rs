//! A session and what a client and an owner do with it.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;

use model::{PoolName, PoolNumber, PoolOutcome, PoolTicket};
use resp::{Event, Limits, Options, Reply, Request, Scripts, Session, Sum, Ticket};

/// A configured sum.
pub const SUM: &str = "0123456789abcdef0123456789abcdef01234567";

pub struct Client {
    pub session: Session,
}

impl Client {
    pub fn mapped() -> Self {
        Self::new(false, false)
    }

    pub fn new(any_loaded: bool, accounts: bool) -> Self {
        Self::with(any_loaded, accounts, Limits::default())
    }

    /// With the plain forms in place of the older system's.
    pub fn plain() -> Self {
        let scripts = Arc::new(Scripts::new(Sum::parse(SUM.as_bytes()), false));
        let options = Options {
            limits: Limits::default(),
            accounts: false,
            scripts,
            plain_replies: true,
            version: "7.2.0".into(),
        };
        Self { session: Session::new(Arc::new(options), 7) }
    }

    pub fn with(any_loaded: bool, accounts: bool, limits: Limits) -> Self {
        let scripts = Arc::new(Scripts::new(Sum::parse(SUM.as_bytes()), any_loaded));
        let options = Options { limits, accounts, scripts, plain_replies: false, version: "7.2.0".into() };
        Self { session: Session::new(Arc::new(options), 7) }
    }

    pub fn request(&mut self) -> (Ticket, Request) {
        match self.session.poll_event() {
            Some(Event::Request { ticket, request, .. }) => (ticket, request),
            other => panic!("no request but {other:?}"),
        }
    }

    pub fn read(&mut self) -> String {
        String::from_utf8(self.octets()).unwrap()
    }

    pub fn octets(&mut self) -> Vec<u8> {
        let octets = self.session.output().to_vec();
        self.session.written(octets.len());
        octets
    }
}

pub fn number(text: &str) -> PoolNumber {
    text.parse().unwrap()
}

pub fn pool(name: &str) -> PoolName {
    name.parse().unwrap()
}

/// A number is given.
pub fn given(text: &str, ticket: u64) -> Reply {
    Reply::Outcome(PoolOutcome::Given { number: number(text), ticket: PoolTicket(ticket) })
}

pub fn command(words: &[&str]) -> Vec<u8> {
    let mut octets = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        octets.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
    }
    octets
}
