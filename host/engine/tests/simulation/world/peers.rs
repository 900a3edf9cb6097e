//! The far ends: links that come and go, what they answer, and the receipts that they send.

use super::{FEW, OnLink, PEERS, SERIAL, World};
use crate::custody::{Witness, is_text, subscriber};
use crate::plugins;
use engine::{Command, Event, ReplyTo};
use model::{
    AddressBytes, ErrorClass, Kind, LinkId, Message, Outcome, PeerId, PeerMessageId, Receipt, ReceiptState,
    Timestamp,
};

impl World {
    pub(super) fn give_receipt(&mut self, peer: PeerId, receipt: Receipt) {
        let token = self.token();
        self.unanswered.insert(token, (peer, receipt.clone()));
        self.apply(Event::Receipt { peer, receipt, reply: ReplyTo { link: LinkId(0), token } });
    }

    pub(super) fn receipt_of(&self, message: &Message, id: PeerMessageId, state: ReceiptState) -> Receipt {
        Receipt {
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
            // Written, and nobody will ever know; the peer may have taken it all the same.
            self.doubted.insert(flight.message.id);
            if self.random.chance(50) {
                self.take(&flight);
            }
        }
        self.apply(Event::LinkDown { link });
    }

    /// The peer takes a message; gives back its id for it.
    pub(super) fn take(&mut self, flight: &OnLink) -> PeerMessageId {
        let id = PeerMessageId::new(format!("p{}", self.next_peer_id).as_bytes());
        self.next_peer_id += 1;
        if let Kind::Receipt(text) = &flight.message.kind {
            if !text.intermediate {
                *self.told_final.entry(text.of).or_default() += 1;
            }
            return id;
        }
        *self.taken.entry(flight.message.id).or_default() += 1;
        if flight.want_receipt {
            let peer = self.links.iter().find(|(link, _)| *link == flight.link).map(|(_, peer)| *peer);
            let peer = peer.unwrap_or(PEERS[0]);
            self.receipts.push((peer, id.clone(), flight.message.clone()));
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
            // An ESME that refuses a receipt for good has been told; only the others must be told again.
            16..20 if flight.message.kind == Kind::Text => {
                Outcome::Refused { class: ErrorClass::Permanent, code: 0x0B, taken: Vec::new() }
            }
            20..24 => Outcome::NotSent,
            24..32 if self.plan.silence => {
                self.doubted.insert(id);
                if self.random.chance(50) {
                    self.take(&flight);
                }
                Outcome::Unanswered { taken: Vec::new(), known: Vec::new() }
            }
            _ => {
                let peer_id = self.take(&flight);
                // A receipt that overtakes its answer.
                if self.random.chance(20) && !self.receipts.is_empty() {
                    let last = self.receipts.len() - 1;
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

    /// As the peer itself sees it.
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

    /// An attempt that fails, in one of the ways of a mobile network.
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
                self.doubted.insert(id);
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
            self.heard_of(&flight.message, flight.leg);
        }
        self.apply(Event::Outcome { link, id, outcome });
        if self.random.chance(20) {
            self.heard_of(&flight.message, flight.leg);
        }
    }

    /// The addressee of a message is heard of.
    pub(super) fn heard_of(&mut self, message: &Message, leg: u8) {
        match subscriber(message, leg) {
            Some((true, imsi)) => self.apply(Event::Reachable { imsi: model::Imsi(imsi) }),
            Some((false, msisdn)) => self.apply(Event::Alert { msisdn }),
            None => {}
        }
    }

    /// Somebody is heard of: one of the few, or nobody.
    pub(super) fn somebody_heard_of(&mut self) {
        let number = format!("861{}", self.random.below(FEW + 2));
        let (heard, event) = if self.plan.plugins && self.random.chance(70) {
            let imsi = plugins::imsi(&mut self.random, number.as_bytes());
            ((true, imsi.0.clone()), Event::Reachable { imsi })
        } else {
            let msisdn = AddressBytes::from_slice(number.as_bytes());
            ((false, msisdn.clone()), Event::Alert { msisdn })
        };
        self.settle();
        self.apply(event);
        Witness::check_heard(&self.engine, &self.disk, &self.out, SERIAL, &heard, self.seed);
    }

    /// A number is seen to be somebody's, of whom it may have been before; perhaps nobody knows whose it was.
    pub(super) fn number_learnt(&mut self) {
        let msisdn = AddressBytes::from_slice(format!("861{}", self.random.below(FEW + 2)).as_bytes());
        let imsi = plugins::imsi(&mut self.random, &msisdn);
        let before = self.random.chance(50).then(|| plugins::imsi(&mut self.random, &msisdn));
        self.settle();
        self.apply(Event::Numbered { msisdn: msisdn.clone(), imsi: imsi.clone(), before });
        for (message, leg) in Witness::waiting_for_alert(&self.engine, &self.disk, &self.out, SERIAL) {
            let Some(leg) = plugins::leg_of(&message, leg) else { continue };
            let other = leg.imsi.as_ref().is_some_and(|other| *other != imsi);
            let under = plugins::number_on(&message, leg) == msisdn;
            assert!(!(other && under), "seed {}: {:?} waits for who had the number", self.seed, message.id);
        }
    }

    /// An answer that was given up comes after all. The network tells by the subscriber what it is an answer to: if the
    /// message is on its way once more, to that.
    pub(super) fn late_answer(&mut self) {
        let index = self.random.below(self.late.len());
        let (link, id) = self.late.swap_remove(index);
        if self.links.iter().any(|(known, _)| *known == link) {
            self.on_links.retain(|flight| flight.message.id != id || flight.link != link);
            let leaves_so = |command: &Command| match command {
                Command::Send { link: to, message, .. } => (*to, message.id) == (link, id),
                _ => false,
            };
            if self.out.commands.iter().any(leaves_so) {
                self.told_late.insert((link, id));
            }
            self.apply(Event::Outcome { link, id, outcome: Outcome::Accepted { ids: Vec::new() } });
        }
    }

    pub(super) fn send_receipt(&mut self, index: usize) {
        let (peer, id, message) = self.receipts.swap_remove(index);
        // On another bind of the same group, now and then.
        let peer = if self.random.chance(30) { PEERS[self.random.below(2)] } else { peer };
        let state = if self.healthy || self.random.chance(80) {
            ReceiptState::Delivered
        } else {
            ReceiptState::Undeliverable
        };
        let receipt = self.receipt_of(&message, id, state);
        let twice = self.random.chance(10);
        if twice {
            self.give_receipt(peer, receipt.clone());
        }
        self.give_receipt(peer, receipt);
    }
}
