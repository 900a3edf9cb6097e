//! What a core network knows of one subscriber, for those who look at it.

use crate::network::Network;
use crate::options::Role;
use crate::register::Located;
use crate::subscribers::Sign;
use capabilities::HlrFailure;
use gsup::Imsi;
use gsup::ctrl::{Msisdn, Subject};
use model::Timestamp;

/// By what a subscriber is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubscriberKey {
    /// The IMSI.
    Imsi(Imsi),
    /// The number: its digits, without a plus sign.
    Msisdn(String),
}

/// A subscriber, as far as its network knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriberInfo {
    /// The IMSI.
    pub imsi: Imsi,
    /// The number, digits without a plus sign.
    pub msisdn: Option<String>,
    /// The name of the MSC that serves the subscriber, or did last.
    pub msc: Option<String>,
    /// Whether messages can go there now: that MSC is connected, or the HLR, for a client of it.
    pub connected: bool,
    /// The last sign of the handset's presence since the daemon's start.
    pub presence: Option<Presence>,
}

/// A sign of a handset's presence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Presence {
    /// When.
    pub at: Timestamp,
    /// What the sign was: `location-update`, `message` (it sent one), `ready-for-sm` or `delivery` (it took one).
    pub sign: &'static str,
}

/// Nothing is known of the subscriber, and the HLR cannot be asked now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the HLR does not answer")]
pub struct HlrSilent;

impl Sign {
    fn name(self) -> &'static str {
        match self {
            Self::LocationUpdate => "location-update",
            Self::Message => "message",
            Self::ReadyForSm => "ready-for-sm",
            Self::Delivery => "delivery",
        }
    }
}

impl Network {
    /// What is known of a subscriber; `None` where the network has no such subscriber. The HLR's word goes before what was
    /// learnt from signalling. Waits for the HLR's answer, at most the timeout of its CTRL interface: not to be called on a
    /// thread of the runtime.
    ///
    /// # Errors
    /// When nothing was learnt of the subscriber and the HLR does not answer.
    pub fn subscriber(&self, key: &SubscriberKey) -> Result<Option<SubscriberInfo>, HlrSilent> {
        let known = &self.shared.subscribers;
        let learnt = match key {
            SubscriberKey::Imsi(imsi) => known.is_known(imsi).then_some(*imsi),
            SubscriberKey::Msisdn(digits) => known.imsi_of(digits.as_bytes()),
        };
        let subject = match key {
            SubscriberKey::Imsi(imsi) => Some(Subject::Imsi(*imsi)),
            SubscriberKey::Msisdn(digits) => Msisdn::new(digits).ok().map(Subject::from),
        };
        let asked: Option<Located> = subject
            .and_then(|subject| self.register.ask(subject))
            .map(|answer| answer.blocking_recv().unwrap_or(Err(HlrFailure::Unreachable)));
        let found = match asked {
            Some(Ok(found)) => Some(found),
            Some(Err(HlrFailure::Unknown)) => return Ok(None),
            Some(Err(HlrFailure::Unreachable)) if learnt.is_none() => return Err(HlrSilent),
            Some(Err(HlrFailure::Unreachable)) | None => None,
        };
        let Some(imsi) = found.as_ref().map(|found| found.imsi).or(learnt) else { return Ok(None) };
        let is_client = matches!(self.options.role, Role::Client { .. });
        // A client sees no location update, so what it learnt of the place once may be old.
        let told = found.as_ref().and_then(|found| found.vlr_number.clone()).filter(|_| is_client);
        let msc = told.or_else(|| known.msc_of(&imsi).map(|msc| msc.to_string()));
        let connections = self.shared.connections.lock();
        let connected = connections.values().any(|connection| {
            connection.ready && (connection.name.is_none() || msc.is_some() && connection.name == msc)
        });
        drop(connections);
        let msisdn = found
            .and_then(|found| found.msisdn)
            .or_else(|| known.msisdn_of(&imsi).map(|digits| String::from_utf8_lossy(&digits).into_owned()));
        let presence =
            known.presence_of(&imsi).map(|(at, sign)| Presence { at: Timestamp(at), sign: sign.name() });
        Ok(Some(SubscriberInfo { imsi, msisdn, msc, connected, presence }))
    }

    /// The peer that the network is for the engine.
    #[must_use]
    pub fn peer(&self) -> model::PeerId {
        self.options.peer
    }

    /// The number of our service centre in this network.
    #[must_use]
    pub fn service_centre(&self) -> &model::Address {
        &self.options.service_centre
    }
}
