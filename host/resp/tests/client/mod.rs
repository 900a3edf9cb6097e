//! A session and what a client and an owner do with it.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;

use resp::{Event, Limits, Options, Request, Scripts, Session, Sum, Ticket};

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

    pub fn with(any_loaded: bool, accounts: bool, limits: Limits) -> Self {
        let scripts = Arc::new(Scripts::new(Sum::parse(SUM.as_bytes()), any_loaded));
        let options = Options { limits, accounts, scripts, version: "7.2.0".into() };
        Self { session: Session::new(Arc::new(options), 7) }
    }

    pub fn request(&mut self) -> (Ticket, Request) {
        match self.session.poll_event() {
            Some(Event::Request { ticket, request }) => (ticket, request),
            other => panic!("no request but {other:?}"),
        }
    }

    pub fn read(&mut self) -> String {
        String::from_utf8(self.session.transmit().to_vec()).unwrap()
    }
}

pub fn command(words: &[&str]) -> Vec<u8> {
    let mut octets = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        octets.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
    }
    octets
}
