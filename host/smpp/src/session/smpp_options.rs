use crate::Bind;
use bytes::Bytes;
use std::time::Duration;

/// The handling of requests of the peer beyond `window_in`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WindowFullPolicy {
    /// The request waits in the session. At [`SmppOptions::backlog`] octets the session takes no more input.
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
    /// Maximum number of unanswered requests of the peer; for further ones see `window_full_policy`.
    pub window_in: usize,
    /// The handling of requests beyond `window_in`.
    pub window_full_policy: WindowFullPolicy,
    /// Octets of waiting requests beyond `window_in` at which the session takes no more input.
    pub backlog: usize,
    /// Maximum number of unanswered requests of ours.
    pub window_out: usize,
    /// Time without a PDU of the peer after which an enquire_link is sent; zero: never.
    pub enquire_interval: Duration,
    /// Maximum time from an enquire_link to the next PDU of the peer.
    pub enquire_timeout: Duration,
    /// Number of consecutive enquire_links without a PDU of the peer after which the session ends.
    pub enquire_misses: u32,
    /// Maximum time for the answer to a request of ours.
    pub response_timeout: Duration,
    /// Maximum time for the bind, or for the answer to our bind.
    pub init_timeout: Duration,
    /// Time without a PDU of the peer after which the session ends; zero: never.
    pub inactivity: Duration,
    /// Maximum time for the rest of a PDU after its first octet.
    pub partial_timeout: Duration,
    /// Maximum time for the answer to our unbind, and for our answers before the peer's unbind.
    pub unbind_timeout: Duration,
    /// Maximum length of a received PDU before the bind, in octets.
    pub limit_before_bind: u32,
    /// Maximum length of a received PDU after the bind, in octets; message_payload alone may have 65,535.
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
    /// The options of both roles.
    pub options: SmppOptions,
    /// The bind to send.
    pub bind: Bind,
    /// The password of the outbind to wait for before the bind; `None`: the bind is sent at once.
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
