//! Whether the sender of an MO is at the MSC that says so. A proxy sees every location update, and asks the HLR for what it
//! has not seen.

use super::Desk;
use crate::mo;
use crate::mt::ConnId;
use crate::register::Located;
use crate::subscribers::Sign;
use capabilities::HlrFailure;
use gsup::{Imsi, RpCause};
use tpdu::FailureCause;

/// What is known of a sender.
#[derive(Debug, PartialEq, Eq)]
enum Sender {
    /// It is at this MSC, or nobody wants to know.
    Here,
    /// It is at another MSC that is connected under the same name.
    AtDouble,
    /// Only the HLR can tell.
    Unknown,
}

const NOT_HERE: mo::No = mo::No {
    cause: RpCause::UNIDENTIFIED_SUBSCRIBER,
    failure: FailureCause::NO_SC_SUBSCRIPTION,
    why: "its sender is not located at this MSC (check-sender)",
};

const NOBODY_TO_ASK: mo::No = mo::No {
    cause: RpCause::TEMPORARY_FAILURE,
    failure: FailureCause::SC_FAILURE,
    why: "its sender has not been seen at this MSC, and the HLR does not answer (check-sender)",
};

impl Desk {
    /// An MO: looked at when its sender is known to be where it says.
    pub(super) fn incoming(&mut self, conn: ConnId, request: gsup::Message) {
        if self.link.is_none() {
            return self.mos.early(conn, request);
        }
        match self.sender_at(conn, &request.imsi) {
            Sender::Here => self.take_located(conn, request),
            Sender::AtDouble => self.refuse_mo(conn, &request, NOT_HERE),
            Sender::Unknown => {
                if let Err(request) = self.whereabouts.ask_of_sender(conn, request) {
                    self.refuse_mo(conn, &request, NOBODY_TO_ASK);
                }
            }
        }
    }

    /// The HLR's answer about the sender of an MO.
    pub(super) fn sender_looked_up(&mut self, conn: ConnId, request: gsup::Message, answer: Located) {
        // Its MSC may have gone meanwhile, or the sender may have moved.
        let Some(name) = self.conns.get(&conn).and_then(|conn| conn.name.clone()) else { return };
        let here = self.sender_at(conn, &request.imsi) == Sender::Here;
        match answer {
            _ if here => self.take_located(conn, request),
            Ok(found) if found.vlr_number.as_deref() == Some(&*name) => self.take_located(conn, request),
            Ok(_) | Err(HlrFailure::Unknown) => self.refuse_mo(conn, &request, NOT_HERE),
            Err(HlrFailure::Unreachable) => self.refuse_mo(conn, &request, NOBODY_TO_ASK),
        }
    }

    fn take_located(&mut self, conn: ConnId, request: gsup::Message) {
        self.seen_at(conn, &request.imsi, Sign::Message);
        self.reachable(request.imsi);
        self.submission(conn, request);
    }

    fn sender_at(&self, conn: ConnId, imsi: &Imsi) -> Sender {
        let Some(name) = self.conns.get(&conn).and_then(|conn| conn.name.as_ref()) else {
            return Sender::Here;
        };
        if !self.options.check_sender {
            return Sender::Here;
        }
        match self.shared.subscribers.place_of(imsi) {
            Some((_, Some(seen))) if seen == conn => Sender::Here,
            Some((msc, seen)) if msc == *name => {
                let double = seen.is_some_and(|seen| self.conns.contains_key(&seen));
                if double { Sender::AtDouble } else { Sender::Here }
            }
            _ => Sender::Unknown,
        }
    }

    /// An alert of a handset's own. It wakes what waits for the handset; where that is, only a location update tells if senders
    /// are checked.
    pub(super) fn alerted(&mut self, conn: ConnId, imsi: Imsi) {
        if self.sender_at(conn, &imsi) == Sender::Here {
            self.seen_at(conn, &imsi, Sign::ReadyForSm);
        }
        self.reachable(imsi);
    }
}
