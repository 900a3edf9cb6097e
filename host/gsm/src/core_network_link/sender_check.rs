//! Checks that the sender of an MO is located at the MSC that forwards it. A proxy sees every location update, and
//! queries the HLR for subscribers that it has not seen.

use super::CoreNetworkLink;
use crate::hlr_lookup::HlrLookupResult;
use crate::mo;
use crate::mt::ConnId;
use api::PresenceSign;
use capabilities::HlrFailure;
use gsup::{GsupImsi, RpCause};
use tpdu::FailureCause;

/// The known location of a sender.
#[derive(Debug, PartialEq, Eq)]
enum SenderLocation {
    /// At this MSC, or the check is disabled.
    ThisMsc,
    /// At another MSC that is connected under the same name.
    DuplicateMscName,
    /// Unknown; the HLR must be queried.
    Unknown,
}

const SENDER_NOT_HERE: mo::MoRefusal = mo::MoRefusal {
    cause: RpCause::UNIDENTIFIED_SUBSCRIBER,
    failure: FailureCause::NO_SC_SUBSCRIPTION,
    reason: "sender is not located at this MSC (check-sender)",
};

const HLR_UNREACHABLE: mo::MoRefusal = mo::MoRefusal {
    cause: RpCause::TEMPORARY_FAILURE,
    failure: FailureCause::SC_FAILURE,
    reason: "sender was not seen at this MSC, and the HLR does not answer (check-sender)",
};

impl CoreNetworkLink {
    /// Handles an MO after its sender's location is confirmed.
    pub(super) fn handle_mo(&mut self, conn: ConnId, request: gsup::GsupMessage) {
        if self.handle.is_none() {
            return self.mo_transactions.queue_before_link_up(conn, request);
        }
        match self.sender_location(conn, &request.imsi) {
            SenderLocation::ThisMsc => self.submit_located(conn, request),
            SenderLocation::DuplicateMscName => self.refuse_mo(conn, &request, SENDER_NOT_HERE),
            SenderLocation::Unknown => {
                if let Err(request) = self.location_lookups.find_sender(conn, request) {
                    self.refuse_mo(conn, &request, HLR_UNREACHABLE);
                }
            }
        }
    }

    /// Handles the HLR's answer about the sender of an MO.
    pub(super) fn handle_sender_lookup(
        &mut self,
        conn: ConnId,
        request: gsup::GsupMessage,
        answer: HlrLookupResult,
    ) {
        // Meanwhile the MSC may have disconnected, or the sender may have moved.
        let Some(name) = self.conns.get(&conn).and_then(|conn| conn.name.clone()) else { return };
        let here = self.sender_location(conn, &request.imsi) == SenderLocation::ThisMsc;
        match answer {
            _ if here => self.submit_located(conn, request),
            Ok(found) if found.vlr_number.as_deref() == Some(&*name) => self.submit_located(conn, request),
            Ok(_) | Err(HlrFailure::Unknown) => self.refuse_mo(conn, &request, SENDER_NOT_HERE),
            Err(HlrFailure::Unreachable) => self.refuse_mo(conn, &request, HLR_UNREACHABLE),
        }
    }

    fn submit_located(&mut self, conn: ConnId, request: gsup::GsupMessage) {
        self.note_presence(conn, &request.imsi, PresenceSign::Message);
        self.subscriber_reachable(request.imsi);
        self.submit_mo(conn, request);
    }

    fn sender_location(&self, conn: ConnId, imsi: &GsupImsi) -> SenderLocation {
        let Some(name) = self.conns.get(&conn).and_then(|conn| conn.name.as_ref()) else {
            return SenderLocation::ThisMsc;
        };
        if !self.options.check_sender {
            return SenderLocation::ThisMsc;
        }
        match self.shared.subscribers.location_of(imsi) {
            Some((_, Some(seen))) if seen == conn => SenderLocation::ThisMsc,
            Some((msc, seen)) if msc == *name => {
                let duplicate = seen.is_some_and(|seen| self.conns.contains_key(&seen));
                if duplicate { SenderLocation::DuplicateMscName } else { SenderLocation::ThisMsc }
            }
            _ => SenderLocation::Unknown,
        }
    }

    /// Handles an alert from a handset: messages for it are retried. If senders are checked, only a location update
    /// changes the subscriber's location.
    pub(super) fn handle_ready_for_sm(&mut self, conn: ConnId, imsi: GsupImsi) {
        if self.sender_location(conn, &imsi) == SenderLocation::ThisMsc {
            self.note_presence(conn, &imsi, PresenceSign::ReadyForSm);
        }
        self.subscriber_reachable(imsi);
    }
}
