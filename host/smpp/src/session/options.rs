use crate::Bind;
use bytes::Bytes;
use std::time::Duration;

/// What becomes of a request that comes while as many of the peer's are unanswered as may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WhenFull {
    /// It waits. When too much waits, the owner is told to stop reading, and the peer's own socket fills up.
    #[default]
    Wait,
    /// It is answered at once with `RTHROTTLED`.
    Throttle,
}

/// What both roles may set.
#[derive(Clone, Debug)]
pub struct Options {
    /// Our name in bind answers.
    pub system_id: Bytes,
    /// The interface version that we show; 0x34 unless a peer insists on another.
    pub interface_version: u8,
    /// Requests of the peer's that may be unanswered by our owner; more wait in the session.
    pub window_in: usize,
    /// What becomes of those beyond that window.
    pub when_full: WhenFull,
    /// Octets of requests that wait beyond that window; then nothing more is read.
    pub backlog: usize,
    /// Requests of ours that may be unanswered.
    pub window_out: usize,
    /// Silence after which an enquire_link is sent; zero for never.
    pub enquire_interval: Duration,
    /// How long its answer, or any other sign of life, may take.
    pub enquire_timeout: Duration,
    /// Enquiries in a row without a sign of life after which the session ends.
    pub enquire_misses: u32,
    /// How long the peer may take to answer a request.
    pub response_timeout: Duration,
    /// How long the peer may take to bind, or to answer our bind.
    pub init_timeout: Duration,
    /// Silence after which the session ends; zero for never.
    pub inactivity: Duration,
    /// How long the rest of a PDU may take once its first octet is there.
    pub partial_timeout: Duration,
    /// How long an unbind may take.
    pub unbind_timeout: Duration,
    /// The longest PDU before the bind.
    pub limit_before_bind: u32,
    /// The longest PDU after it; message_payload alone may hold 65,535 octets.
    pub limit_after_bind: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            system_id: Bytes::from_static(b"SWITCHYARD"),
            interface_version: 0x34,
            window_in: 100,
            when_full: WhenFull::Wait,
            backlog: 256 * 1024,
            window_out: 10,
            enquire_interval: Duration::from_secs(30),
            enquire_timeout: Duration::from_secs(10),
            enquire_misses: 2,
            response_timeout: Duration::from_secs(30),
            init_timeout: Duration::from_secs(10),
            inactivity: Duration::from_secs(300),
            partial_timeout: Duration::from_secs(30),
            unbind_timeout: Duration::from_secs(5),
            limit_before_bind: 512,
            limit_after_bind: 66_000,
        }
    }
}

/// A client's session: what it binds as.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Common settings.
    pub options: Options,
    /// The bind to send.
    pub bind: Bind,
    /// Wait for the peer's outbind with this password before binding.
    pub await_outbind: Option<Bytes>,
}

/// The interface version that a peer showed at its bind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Version(pub u8);

impl Version {
    /// 3.4.
    pub const V34: Self = Self(0x34);

    /// Whether the peer takes TLVs and long message ids: 3.4 and later, and those that show no sensible version.
    #[must_use]
    pub fn takes_tlvs(self) -> bool {
        self.0 == 0 || self.0 >= 0x34
    }

    /// Whether 5.0's meanings apply.
    #[must_use]
    pub fn is_v5(self) -> bool {
        (0x50..0x60).contains(&self.0)
    }
}
