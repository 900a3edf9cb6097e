//! A session with a test client and owner.

use std::sync::Arc;

use model::{LeaseTicket, PoolName, PoolNumber, PoolOutcome};
use resp::{
    Event, ReplyTicket, RespLimits, RespOptions, RespReply, RespRequest, ScriptSha1, Scripts, Session,
};

/// The configured SHA-1 sum.
pub(crate) const SUM: &str = "0123456789abcdef0123456789abcdef01234567";

pub(crate) struct Client {
    pub(crate) session: Session,
}

impl Client {
    pub(crate) fn mapped() -> Self {
        Self::new(false, false)
    }

    pub(crate) fn new(any_loaded: bool, accounts: bool) -> Self {
        Self::with(any_loaded, accounts, RespLimits::default())
    }

    /// With plain replies instead of legacy ones.
    pub(crate) fn plain() -> Self {
        let scripts = Arc::new(Scripts::new(ScriptSha1::parse(SUM.as_bytes()), false));
        let options = RespOptions {
            limits: RespLimits::default(),
            accounts: false,
            scripts,
            plain_replies: true,
            version: "7.2.0".into(),
        };
        Self { session: Session::new(Arc::new(options), 7) }
    }

    pub(crate) fn with(any_loaded: bool, accounts: bool, limits: RespLimits) -> Self {
        let scripts = Arc::new(Scripts::new(ScriptSha1::parse(SUM.as_bytes()), any_loaded));
        let options =
            RespOptions { limits, accounts, scripts, plain_replies: false, version: "7.2.0".into() };
        Self { session: Session::new(Arc::new(options), 7) }
    }

    pub(crate) fn request(&mut self) -> (ReplyTicket, RespRequest) {
        match self.session.poll_event() {
            Some(Event::Request { ticket, request, .. }) => (ticket, request),
            other => panic!("no request but {other:?}"),
        }
    }

    pub(crate) fn read(&mut self) -> String {
        String::from_utf8(self.octets()).unwrap()
    }

    pub(crate) fn octets(&mut self) -> Vec<u8> {
        let octets = self.session.output().to_vec();
        self.session.mark_written(octets.len());
        octets
    }
}

pub(crate) fn number(text: &str) -> PoolNumber {
    text.parse().unwrap()
}

pub(crate) fn pool(name: &str) -> PoolName {
    name.parse().unwrap()
}

/// The reply for an acquired number.
pub(crate) fn given(text: &str, ticket: u64) -> RespReply {
    RespReply::Outcome(PoolOutcome::Acquired { number: number(text), ticket: LeaseTicket(ticket) })
}

pub(crate) fn command(words: &[&str]) -> Vec<u8> {
    let mut octets = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        octets.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
    }
    octets
}
