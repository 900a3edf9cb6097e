//! The peers: links that come and go, their answers, and their DLRs.

use super::{FEW, OnLink, PEERS, SERIAL, World};
use crate::simulation::plugins;
use crate::simulation::serial_delivery::{Witness, is_text, subscriber};
use engine::{EngineCommand, Event, ReplyTo};
use model::{
    AddressBytes, Dlr, DlrState, ErrorClass, LinkId, Message, MessageKind, Outcome, PeerId, PeerMessageId,
    Timestamp,
};

impl World {
    pub(super) fn report_dlr(&mut self, peer: PeerId, dlr: Dlr) {
        let token = self.token();
        self.unanswered.insert(token, (peer, dlr.clone()));
        self.apply(Event::Dlr { peer, dlr, reply: ReplyTo { link: LinkId(0), token } });
    }

    pub(super) fn receipt_of(&self, message: &Message, id: PeerMessageId, state: DlrState) -> Dlr {
        Dlr {
            id,
            state,
            intermediate: false,
            error: 0,
            network_error: None,
            done_at: Some(Timestamp(self.wall)),
            from: message.destination.value.clone(),
            to: message.source.value.clone(),
        }
    }

    pub(super) fn link_up(&mut self, peer: PeerId) {
        let link = LinkId(self.next_link);
        self.next_link += 1;
        self.links.push((link, peer));
        let window = 1 + self.random.below(8) as u32;
        self.apply(Event::LinkUp { link, peer, window });
    }

    pub(super) fn link_down(&mut self, index: usize) {
        let (link, _) = self.links.remove(index);
        let (gone, kept): (Vec<OnLink>, Vec<OnLink>) =
            std::mem::take(&mut self.on_links).into_iter().partition(|flight| flight.link == link);
        self.on_links = kept;
        for flight in gone {
            // Sent and never answered; the peer may have taken it.
            self.possibly_duplicated.insert(flight.message.id);
            if self.random.chance(50) {
                self.take(&flight);
            }
        }
        self.apply(Event::LinkDown { link });
    }

    /// The peer takes a message; returns its id.
    pub(super) fn take(&mut self, flight: &OnLink) -> PeerMessageId {
        let id = PeerMessageId::new(format!("p{}", self.next_peer_id).as_bytes());
        self.next_peer_id += 1;
        if let MessageKind::Dlr(text) = &flight.message.kind {
            if !text.intermediate {
                *self.final_dlrs.entry(text.of).or_default() += 1;
            }
            return id;
        }
        *self.taken.entry(flight.message.id).or_default() += 1;
        *self.accepted_on_leg.entry((flight.message.id, flight.leg)).or_default() += 1;
        if flight.want_dlr {
            let peer = self.links.iter().find(|(link, _)| *link == flight.link).map(|(_, peer)| *peer);
            let peer = peer.unwrap_or(PEERS[0]);
            self.dlrs.push((peer, id.clone(), flight.message.clone()));
        }
        id
    }

    pub(super) fn answer(&mut self, index: usize) {
        let flight = self.on_links.swap_remove(index);
        let (link, id) = (flight.link, flight.message.id);
        let kind = if self.healthy { 100 } else { self.random.below(100) };
        if self.is_serial(link) && !self.healthy && kind < 50 {
            self.answer_of_serial(&flight, kind);
            return;
        }
        let outcome = match kind {
            0..8 => Outcome::Refused { class: ErrorClass::Throttled, code: 0x58, taken: Vec::new() },
            8..16 => Outcome::Refused { class: ErrorClass::Temporary, code: 8, taken: Vec::new() },
            // An ESME that refuses a DLR permanently has received it; only the others are repeated.
            16..20 if flight.message.kind == MessageKind::Text => {
                Outcome::Refused { class: ErrorClass::Permanent, code: 0x0B, taken: Vec::new() }
            }
            20..24 => Outcome::NotSent,
            24..32 if self.plan.silence => {
                self.possibly_duplicated.insert(id);
                if self.random.chance(50) {
                    self.take(&flight);
                }
                Outcome::Unanswered { taken: Vec::new(), known: Vec::new() }
            }
            _ => {
                let peer_id = self.take(&flight);
                // A DLR that overtakes the submit response.
                if self.random.chance(20) && !self.dlrs.is_empty() {
                    let last = self.dlrs.len() - 1;
                    self.send_receipt(last);
                }
                Outcome::Accepted { ids: vec![peer_id] }
            }
        };
        self.apply(Event::Outcome { link, id, outcome });
    }

    pub(super) fn is_serial(&self, link: LinkId) -> bool {
        self.plan.serial && self.links.contains(&(link, SERIAL))
    }

    /// Checks serial delivery from the peer's view.
    pub(super) fn one_at_a_time(&self, message: &Message, leg: u8, link: LinkId) {
        if !self.is_serial(link) {
            return;
        }
        let name = subscriber(message, leg);
        let other = self
            .on_links
            .iter()
            .find(|flight| self.is_serial(flight.link) && subscriber(&flight.message, flight.leg) == name);
        let other = other.map(|flight| flight.message.id);
        assert_eq!(other, None, "seed {}: {:?} comes to {name:?} as well", self.seed, message.id);
    }

    /// A failed attempt, with an error of a mobile network.
    pub(super) fn answer_of_serial(&mut self, flight: &OnLink, kind: usize) {
        let (link, id) = (flight.link, flight.message.id);
        let refused = |class| Outcome::Refused { class, code: 9, taken: Vec::new() };
        let outcome = match kind {
            0..4 => refused(ErrorClass::Throttled),
            4..14 => refused(ErrorClass::Absent),
            14..22 => refused(ErrorClass::MemoryFull),
            22..25 => refused(ErrorClass::Temporary),
            25..28 => refused(ErrorClass::ThisMessage),
            28..31 if is_text(&flight.message) => refused(ErrorClass::Permanent),
            31..34 => refused(ErrorClass::UnknownSubscriber),
            34..37 => refused(ErrorClass::NumberMoved),
            37..50 if self.plan.silence => {
                self.possibly_duplicated.insert(id);
                if self.random.chance(50) {
                    self.take(flight);
                    if self.random.chance(50) {
                        self.late.push((link, id));
                    }
                }
                Outcome::Unanswered { taken: Vec::new(), known: Vec::new() }
            }
            _ => Outcome::NotSent,
        };
        if self.random.chance(20) {
            self.alert_addressee(&flight.message, flight.leg);
        }
        self.apply(Event::Outcome { link, id, outcome });
        if self.random.chance(20) {
            self.alert_addressee(&flight.message, flight.leg);
        }
    }

    /// An alert for the addressee of a message.
    pub(super) fn alert_addressee(&mut self, message: &Message, leg: u8) {
        match subscriber(message, leg) {
            Some((true, imsi)) => {
                let imsi = model::Imsi(imsi);
                self.apply(Event::SubscriberReachable { network: SERIAL, imsi });
            }
            Some((false, msisdn)) => self.apply(Event::Alert { msisdn }),
            None => {}
        }
    }

    /// An alert for a random subscriber, or an unknown one.
    pub(super) fn random_alert(&mut self) {
        let number = format!("861{}", self.random.below(FEW + 2));
        let (alerted, event) = if self.plan.plugins && self.random.chance(70) {
            let imsi = plugins::imsi(&mut self.random, number.as_bytes());
            ((true, imsi.0.clone()), Event::SubscriberReachable { network: SERIAL, imsi })
        } else {
            let msisdn = AddressBytes::from_slice(number.as_bytes());
            ((false, msisdn.clone()), Event::Alert { msisdn })
        };
        self.settle();
        self.apply(event);
        Witness::check_alerted(&self.engine, &self.disk, &self.out, SERIAL, &alerted, self.seed);
    }

    /// A number is assigned to a subscriber; the previous one may be known.
    pub(super) fn number_learnt(&mut self) {
        let msisdn = AddressBytes::from_slice(format!("861{}", self.random.below(FEW + 2)).as_bytes());
        let imsi = plugins::imsi(&mut self.random, &msisdn);
        let before = self.random.chance(50).then(|| plugins::imsi(&mut self.random, &msisdn));
        self.settle();
        self.apply(Event::SubscriberLearned { msisdn: msisdn.clone(), imsi: imsi.clone(), before });
        for (message, leg) in Witness::waiting_for_alert(&self.engine, &self.disk, &self.out, SERIAL) {
            let Some(leg) = message.routed.verdict.leg(leg) else { continue };
            let other = leg.imsi.as_ref().is_some_and(|other| *other != imsi);
            let under = plugins::number_on(&message, leg) == msisdn;
            assert!(
                !(other && under),
                "seed {}: {:?} waits for the previous subscriber",
                self.seed,
                message.id
            );
        }
    }

    /// A late answer. The network matches it by the subscriber: if the message is on a link again, to that attempt.
    pub(super) fn late_answer(&mut self) {
        let index = self.random.below(self.late.len());
        let (link, id) = self.late.swap_remove(index);
        if self.links.iter().any(|(known, _)| *known == link) {
            self.on_links.retain(|flight| flight.message.id != id || flight.link != link);
            let leaves_so = |command: &EngineCommand| match command {
                EngineCommand::Send { link: to, message, .. } => (*to, message.id) == (link, id),
                _ => false,
            };
            if self.out.commands.iter().any(leaves_so) {
                self.answered_late.insert((link, id));
            }
            self.apply(Event::Outcome { link, id, outcome: Outcome::Accepted { ids: Vec::new() } });
        }
    }

    pub(super) fn send_receipt(&mut self, index: usize) {
        let (peer, id, message) = self.dlrs.swap_remove(index);
        // At times on another bind of the same group.
        let peer = if self.random.chance(30) { PEERS[self.random.below(2)] } else { peer };
        let state = if self.healthy || self.random.chance(80) {
            DlrState::Delivered
        } else {
            DlrState::Undeliverable
        };
        let dlr = self.receipt_of(&message, id, state);
        let twice = self.random.chance(10);
        if twice {
            self.report_dlr(peer, dlr.clone());
        }
        self.report_dlr(peer, dlr);
    }
}
