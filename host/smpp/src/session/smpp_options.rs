use crate::Bind;
use bytes::Bytes;
use std::time::Duration;

/// The handling of a request beyond the peer's window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WindowFullPolicy {
    /// The request waits. If too much waits, the owner stops reading, and the peer's socket fills up.
    #[default]
    Wait,
    /// The request is answered at once with `RTHROTTLED`.
    Throttle,
}

/// Options of both roles.
#[derive(Clone, Debug)]
pub struct SmppOptions {
    /// Our system_id in bind responses.
    pub system_id: Bytes,
    /// The interface version that we send; 0x34 unless a peer requires another.
    pub interface_version: u8,
    /// Requests of the peer that the owner may leave unanswered; more wait in the session.
    pub window_in: usize,
    /// The handling of requests beyond that window.
    pub window_full_policy: WindowFullPolicy,
    /// Octets of waiting requests beyond that window; then nothing more is read.
    pub backlog: usize,
    /// Requests of ours that may be unanswered.
    pub window_out: usize,
    /// The silence after which an enquire_link is sent; zero: never.
    pub enquire_interval: Duration,
    /// The time for its answer, or for any other sign of life.
    pub enquire_timeout: Duration,
    /// Consecutive enquire_links without a sign of life after which the session ends.
    pub enquire_misses: u32,
    /// The time for the answer to a request.
    pub response_timeout: Duration,
    /// The time for the bind, or for the answer to our bind.
    pub init_timeout: Duration,
    /// The silence after which the session ends; zero: never.
    pub inactivity: Duration,
    /// The time for the rest of a PDU after its first octet.
    pub partial_timeout: Duration,
    /// The time for an unbind.
    pub unbind_timeout: Duration,
    /// The longest PDU before the bind.
    pub limit_before_bind: u32,
    /// The longest PDU after the bind; message_payload alone may hold 65,535 octets.
    pub limit_after_bind: u32,
}

impl Default for SmppOptions {
    fn default() -> Self {
        Self {
            system_id: Bytes::from_static(b"SWITCHYARD"),
            interface_version: 0x34,
            window_in: 100,
            window_full_policy: WindowFullPolicy::Wait,
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

/// Options of a client session.
#[derive(Clone, Debug)]
pub struct SmppClientOptions {
    /// Common settings.
    pub options: SmppOptions,
    /// The bind to send.
    pub bind: Bind,
    /// Wait for the peer's outbind with this password before binding.
    pub await_outbind: Option<Bytes>,
}

/// The interface version of a peer, from its bind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterfaceVersion(pub u8);

impl InterfaceVersion {
    /// 3.4.
    pub const V34: Self = Self(0x34);

    /// Whether the peer takes TLVs and long message ids: 3.4 and later, and peers without a valid version.
    #[must_use]
    pub fn takes_tlvs(self) -> bool {
        self.0 == 0 || self.0 >= 0x34
    }

    /// Whether the peer follows 5.0.
    #[must_use]
    pub fn is_v5(self) -> bool {
        (0x50..0x60).contains(&self.0)
    }
}
