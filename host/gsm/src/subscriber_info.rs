//! Information about one subscriber, for the API.

use crate::gsm_network::GsmNetwork;
use crate::hlr_lookup::HlrLookupResult;
use crate::options::GsmRole;
use api::PresenceSign;
use capabilities::HlrFailure;
use gsup::GsupImsi;
use gsup::ctrl::{LookupSubject, Msisdn};
use model::Timestamp;

/// Identifies a subscriber.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubscriberKey {
    /// By IMSI.
    Imsi(GsupImsi),
    /// By MSISDN: digits without a plus sign.
    Msisdn(String),
}

/// Information about a subscriber.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriberInfo {
    /// The IMSI.
    pub imsi: GsupImsi,
    /// The MSISDN, digits without a plus sign.
    pub msisdn: Option<String>,
    /// The name of the current or last MSC.
    pub msc: Option<String>,
    /// Whether messages can be sent to the subscriber: the MSC is connected, or for a client the HLR.
    pub connected: bool,
    /// The last sign of presence since the start of the daemon.
    pub presence: Option<Presence>,
}

/// A sign of a handset's presence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Presence {
    /// Time of the sign.
    pub at: Timestamp,
    /// Kind of sign.
    pub sign: PresenceSign,
}

/// The HLR does not answer, and the subscriber is not known otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the HLR does not answer")]
pub struct HlrUnreachable;

impl GsmNetwork {
    /// Looks up a subscriber; `None` if the network has no such subscriber. The HLR's answer takes precedence over
    /// signalling. The call blocks up to the CTRL timeout; do not call it on a runtime thread.
    ///
    /// # Errors
    /// If the HLR does not answer and the subscriber was not learnt from signalling.
    pub fn subscriber(&self, key: &SubscriberKey) -> Result<Option<SubscriberInfo>, HlrUnreachable> {
        let subscribers = &self.shared.subscribers;
        let observed = match key {
            SubscriberKey::Imsi(imsi) => subscribers.is_known(imsi).then_some(*imsi),
            SubscriberKey::Msisdn(digits) => subscribers.imsi_of(digits.as_bytes()),
        };
        let subject = match key {
            SubscriberKey::Imsi(imsi) => Some(LookupSubject::Imsi(*imsi)),
            SubscriberKey::Msisdn(digits) => Msisdn::new(digits).ok().map(LookupSubject::from),
        };
        let answered: Option<HlrLookupResult> = subject
            .and_then(|subject| self.hlr_lookup.query(subject))
            .map(|answer| answer.blocking_recv().unwrap_or(Err(HlrFailure::Unreachable)));
        let record = match answered {
            Some(Ok(record)) => Some(record),
            Some(Err(HlrFailure::Unknown)) => return Ok(None),
            Some(Err(HlrFailure::Unreachable)) if observed.is_none() => return Err(HlrUnreachable),
            Some(Err(HlrFailure::Unreachable)) | None => None,
        };
        let Some(imsi) = record.as_ref().map(|record| record.imsi).or(observed) else { return Ok(None) };
        let is_client = self.options.role == GsmRole::Client;
        // A client sees no location updates, so its learnt location may be outdated.
        let hlr_msc = record.as_ref().and_then(|record| record.vlr_number.clone()).filter(|_| is_client);
        let msc = hlr_msc.or_else(|| subscribers.msc_of(&imsi).map(|msc| msc.to_string()));
        let connections = self.shared.connections.lock();
        let connected = connections.values().any(|connection| {
            connection.ready && (connection.name.is_none() || msc.is_some() && connection.name == msc)
        });
        drop(connections);
        let msisdn = record.and_then(|record| record.msisdn).or_else(|| {
            subscribers.msisdn_of(&imsi).map(|digits| String::from_utf8_lossy(&digits).into_owned())
        });
        let presence = subscribers.presence_of(&imsi).map(|(at, sign)| Presence { at: Timestamp(at), sign });
        Ok(Some(SubscriberInfo { imsi, msisdn, msc, connected, presence }))
    }

    /// The peer id of the network.
    #[must_use]
    pub fn peer(&self) -> model::PeerId {
        self.options.peer
    }

    /// The number of the service centre in this network.
    #[must_use]
    pub fn service_centre(&self) -> &model::Address {
        &self.options.service_centre
    }
}
