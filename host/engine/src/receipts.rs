//! Receipts: from peers, matched to messages; of ours, for submitters.

use crate::engine::Engine;
use crate::ledger::Parked;
use crate::senders::Found;
use crate::slab::{Slot, State};
use crate::timer::Timer;
use crate::{Answer, Command, Event, Output, Part, ReplyTo};
use bytes::Bytes;
use model::{
    DecidedBy, Final, FinalState, Kind, Leg, Message, MessageId, Now, PeerId, Priority, Receipt,
    ReceiptRequest, ReceiptState, ReceiptText, Refusal, Routed, StepKind, Text, Verdict,
};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// Receipts of ours need no routing plugin: they go where the submission came from.
static BACK_TO_SENDER: LazyLock<Arc<DecidedBy>> =
    LazyLock::new(|| Arc::new(DecidedBy { plugin: "receipt".to_owned(), version: String::new() }));

impl Engine {
    pub(crate) fn receipt(
        &mut self,
        now: Now,
        peer: PeerId,
        receipt: Receipt,
        reply: ReplyTo,
        out: &mut Output,
    ) {
        let group = self.peer_mut(peer).settings.group;
        let taken = Command::Answer { to: reply, answer: Answer::ReceiptTaken };
        if let Some(slot) = self.find_by_receipt(group, &receipt) {
            if self.slab[slot].message.is_none() && self.slab[slot].receipts().any() {
                // What goes to the submitter names what only the content knows, and the peer may be answered only once
                // that is written.
                let id = self.slab[slot].id;
                let again = Event::Receipt { peer, receipt, reply };
                self.waiting_for_content.entry(id).or_default().push(again);
                self.load_if_missing(slot, out);
                return;
            }
            self.totals.receipts_matched += 1;
            self.apply_receipt(now, slot, &receipt, out);
            out.commands.push(taken);
            return;
        }
        // While something is on its way to the group, the receipt may have overtaken its answer: that comes soon, and
        // then the receipt need never be written. Otherwise it is written down at once.
        let soon = self.anything_in_flight(group);
        if !soon && let Some(slot) = self.find_in_doubt(group, &receipt) {
            self.totals.receipts_matched += 1;
            self.apply_receipt(now, slot, &receipt, out);
            out.commands.push(taken);
            return;
        }
        let key = self.receipts.key(group, &receipt.id);
        let parked = Parked {
            peer,
            group,
            receipt,
            at: now.wall,
            until: now.mono + self.settings.receipt_parking,
            written: !soon,
            reply: soon.then_some((reply, now.mono + self.settings.receipt_patience)),
        };
        if soon {
            self.parking.park(key, parked);
        } else {
            let mut record = parked.record(0);
            record.number = self.parking.park(key, parked);
            out.batch.parked.push(record);
            out.commands.push(taken);
        }
        self.watch_parking(now);
        if self.parking.len() > self.settings.receipt_parking_limit {
            self.look_through_parking(now, out);
        }
    }

    pub(crate) fn watch_parking(&mut self, now: Now) {
        if !self.parking_set {
            self.parking_set = true;
            self.timers.set(now.mono + Duration::from_secs(1), Timer::Parking);
        }
    }

    fn find_by_receipt(&self, group: u32, receipt: &Receipt) -> Option<Slot> {
        if receipt.id.0.is_empty() {
            return None;
        }
        self.receipts.find(self.receipts.key(group, &receipt.id), |slot| {
            let entry = &self.slab[slot];
            let same_group =
                self.peers.get(entry.peer.0 as usize).is_some_and(|peer| peer.settings.group == group);
            same_group
                && entry.side.as_ref().is_some_and(|side| side.parts.iter().any(|part| part.id == receipt.id))
        })
    }

    fn anything_in_flight(&self, group: u32) -> bool {
        self.peers.iter().any(|peer| peer.settings.group == group && peer.in_flight > 0)
    }

    /// The uncertain message with the receipt's addresses, if there is exactly one. It is a guess, and the only one there
    /// is: the answer that named the message was lost. With several candidates it would be a worse one.
    fn find_in_doubt(&self, group: u32, receipt: &Receipt) -> Option<Slot> {
        if self.in_doubt.is_empty() {
            return None;
        }
        let key = self.pairs.key(PeerId(group), &receipt.to, &receipt.from);
        match self.in_doubt.get(&key)?.as_slice() {
            [id] => self.ids.get(&self.slab, *id),
            _ => None,
        }
    }

    /// Receipts that came before the answer that names their message.
    pub(crate) fn match_parked(&mut self, now: Now, slot: Slot, group: u32, out: &mut Output) {
        if self.parking.len() == 0 {
            return;
        }
        let ids: Vec<_> = self.slab[slot]
            .side
            .as_ref()
            .map_or_else(Vec::new, |side| side.parts.iter().map(|part| part.id.clone()).collect());
        for id in ids {
            let key = self.receipts.key(group, &id);
            for (number, parked) in self.parking.claim(key, group, &id) {
                self.totals.receipts_matched += 1;
                if parked.written {
                    out.batch.unparked.push(number);
                }
                if let Some((to, _)) = parked.reply {
                    out.commands.push(Command::Answer { to, answer: Answer::ReceiptTaken });
                }
                if self.slab[slot].state == State::Receipt {
                    self.apply_receipt(now, slot, &parked.receipt, out);
                }
            }
        }
    }

    pub(crate) fn look_through_parking(&mut self, now: Now, out: &mut Output) {
        self.parking_set = false;
        for (to, record) in self.parking.overdue(now.mono) {
            out.batch.parked.push(record);
            out.commands.push(Command::Answer { to, answer: Answer::ReceiptTaken });
        }
        for (number, parked) in self.parking.expired(now.mono, self.settings.receipt_parking_limit) {
            if parked.written {
                out.batch.unparked.push(number);
            }
            if let Some((to, _)) = parked.reply {
                out.commands.push(Command::Answer { to, answer: Answer::ReceiptTaken });
            }
            match self.find_in_doubt(parked.group, &parked.receipt) {
                Some(slot) => {
                    self.totals.receipts_matched += 1;
                    self.apply_receipt(now, slot, &parked.receipt, out);
                }
                None => self.totals.receipts_unmatched += 1,
            }
        }
        if self.parking.len() > 0 {
            self.watch_parking(now);
        }
    }

    /// A receipt for a message that waits for one, or is in doubt.
    pub(crate) fn apply_receipt(&mut self, now: Now, slot: Slot, receipt: &Receipt, out: &mut Output) {
        if self.slab[slot].state == State::Uncertain {
            // The peer has it after all; from here on it waits like any other.
            let peer = self.slab[slot].peer.0 as usize;
            self.leave_doubt(slot);
            let (group, limit) = (self.peers[peer].settings.group, self.peers[peer].settings.receipt_limit);
            let entry = &mut self.slab[slot];
            entry.state = State::Receipt;
            entry.due = now.mono + limit;
            let side = entry.side();
            if !side.parts.iter().any(|part| part.id == receipt.id) {
                side.parts.push(Part { id: receipt.id.clone(), state: None });
            }
            self.peers[peer].awaiting += 1;
            self.index_parts(slot, group);
        }
        let side = self.slab[slot].side();
        let Some(part) = side.parts.iter_mut().find(|part| part.id == receipt.id) else { return };
        if part.state == Some(receipt.state) || part.state.is_some_and(is_last_word) {
            return;
        }
        part.state = Some(receipt.state);
        let number = side.parts.iter().position(|part| part.id == receipt.id).unwrap_or(0) + 1;
        let all = side.parts.len();
        let together = if receipt.intermediate { None } else { Self::state_of_parts(&side.parts) };
        self.step(now, slot, StepKind::Reported { state: receipt.state as u8, error: receipt.error });
        if !receipt.intermediate && is_last_word(receipt.state) && all > 1 && self.reports_parts(slot) {
            self.report_part(now, slot, receipt, (number, all), out);
        }
        if let Some(state) = together {
            self.end(now, slot, state, Some(receipt), out);
            return;
        }
        if self.slab[slot].receipts().intermediate
            && let Some(message) = self.slab[slot].message.clone()
        {
            let text = ReceiptText {
                of: message.id,
                state: receipt.state,
                intermediate: true,
                error: receipt.error,
                network_error: receipt.network_error,
                submitted_at: message.accepted_at,
                done_at: receipt.done_at.unwrap_or(now.wall),
                parts: (1, 0),
                part: 0,
                peer_id: receipt.id.clone(),
            };
            self.send_back(now, &message, text, out);
        }
        self.record(now, slot, out);
    }

    /// The peer's answer to a question of ours (query_sm).
    pub(crate) fn told(&mut self, now: Now, id: MessageId, receipt: Option<Receipt>, out: &mut Output) {
        let Some(slot) = self.ids.get(&self.slab, id) else { return };
        match (self.slab[slot].state, receipt) {
            (State::Uncertain | State::Receipt, Some(mut receipt)) => {
                if let Some(part) = self.slab[slot].side.as_ref().and_then(|side| side.parts.last()) {
                    receipt.id = part.id.clone();
                }
                self.apply_receipt(now, slot, &receipt, out);
            }
            (State::Uncertain, None) => {
                self.leave_doubt(slot);
                self.totals.sent_again += 1;
                self.step(now, slot, StepKind::SentAgain);
                self.requeue(slot);
                self.record(now, slot, out);
            }
            _ => {}
        }
    }

    /// The receipt for a message that has ended.
    pub(crate) fn make_receipt(
        &mut self,
        now: Now,
        message: &Message,
        ended: &Final,
        receipt: Option<&Receipt>,
        parts: (u16, u16),
        out: &mut Output,
    ) {
        let state = match ended.state {
            FinalState::Delivered => ReceiptState::Delivered,
            FinalState::Relayed => ReceiptState::Accepted,
            FinalState::Failed => ReceiptState::Undeliverable,
            FinalState::Expired => ReceiptState::Expired,
            FinalState::Cancelled => ReceiptState::Deleted,
            FinalState::Rejected => ReceiptState::Rejected,
            FinalState::Unknown => ReceiptState::Unknown,
        };
        let text = ReceiptText {
            of: message.id,
            state,
            intermediate: false,
            error: u16::try_from(ended.error).unwrap_or(u16::MAX),
            network_error: receipt.and_then(|receipt| receipt.network_error),
            submitted_at: message.accepted_at,
            done_at: receipt.and_then(|receipt| receipt.done_at).unwrap_or(ended.at),
            parts,
            part: 0,
            peer_id: ended.peer_id.clone(),
        };
        self.send_back(now, message, text, out);
    }

    /// Whether the submitter of a message wants a receipt for each part.
    pub(crate) fn reports_parts(&self, slot: Slot) -> bool {
        let origin = self.slab[slot].origin.0 as usize;
        self.peers.get(origin).is_some_and(|peer| peer.settings.part_receipts)
    }

    /// The receipt for one part, where the submitter wants them singly.
    fn report_part(
        &mut self,
        now: Now,
        slot: Slot,
        receipt: &Receipt,
        (number, all): (usize, usize),
        out: &mut Output,
    ) {
        let wanted = self.slab[slot].receipts();
        let good = receipt.state == ReceiptState::Delivered;
        let wants = if good { wanted.on_success } else { wanted.on_failure };
        let Some(message) = self.slab[slot].message.clone().filter(|_| wants) else { return };
        let short = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
        let text = ReceiptText {
            of: message.id,
            state: receipt.state,
            intermediate: false,
            error: receipt.error,
            network_error: receipt.network_error,
            submitted_at: message.accepted_at,
            done_at: receipt.done_at.unwrap_or(now.wall),
            parts: (short(all), u16::from(good)),
            part: short(number),
            peer_id: receipt.id.clone(),
        };
        self.send_back(now, &message, text, out);
    }

    /// Makes the receipt of a finished message once more.
    pub(crate) fn report_again(
        &mut self,
        now: Now,
        message: &Message,
        ended: &Final,
        out: &mut Output,
    ) -> Answer {
        let account = self.peer_mut(message.origin);
        if !account.settings.is_addressee() {
            return Answer::Refused(Refusal::UnknownMessage);
        }
        if account.waiting() >= account.settings.queue_limit {
            return Answer::Refused(Refusal::QueueFull);
        }
        let delivered = u16::from(ended.state == FinalState::Delivered);
        self.make_receipt(now, message, ended, None, (1, delivered), out);
        Answer::Done
    }

    fn send_back(&mut self, now: Now, message: &Message, text: ReceiptText, out: &mut Output) {
        // Only accounts take receipts; an SMSC whose MO asked for one is told by its own protocol.
        let account = self.peer_mut(message.origin);
        if !account.settings.is_addressee() {
            return;
        }
        // Beyond the account's limit the report is left to be asked for again: the message's record has it.
        // A subscriber's receipt is for his handset: who he is must be known, where somebody can tell.
        let serial = account.settings.serial;
        if account.waiting() >= account.settings.queue_limit {
            self.totals.receipts_dropped += 1;
            return;
        }
        self.totals.receipts_made += 1;
        let leg = Leg { resolve: serial && self.settings.resolver, ..Leg::to(message.origin) };
        let receipt = Message {
            id: MessageId(0),
            kind: Kind::Receipt(Box::new(text)),
            origin: message.origin,
            source: message.destination.clone(),
            destination: message.source.clone(),
            service_type: message.service_type.clone(),
            protocol_id: 0,
            esm_class: 0,
            priority: Priority::new(1),
            receipts: ReceiptRequest::NONE,
            replace_if_present: false,
            submission: message.submission,
            // The beginning of the text belongs into the receipt's text form.
            text: Text {
                octets: beginning(&message.text),
                data_coding: message.text.data_coding,
                udhi: message.text.udhi,
                payload: false,
            },
            tlvs: private(&message.tlvs),
            accepted_at: now.wall,
            scheduled: None,
            expires_at: now.wall + self.settings.own_receipt_validity,
            routed: Routed::new(Verdict::Forward(vec![leg]), BACK_TO_SENDER.clone()),
        };
        self.admit(now, receipt, 0, Found::default(), out);
    }
}

/// Whether a part's state can no longer change. "Accepted" can: many SMSCs send it before the last word.
fn is_last_word(state: ReceiptState) -> bool {
    state.is_final() && state != ReceiptState::Accepted
}

/// Tags under which the house keeps what SMPP has no field for; see [`Message::tlvs`].
const PRIVATE: std::ops::RangeInclusive<u16> = 0x1500..=0x15FF;

/// What a receipt carries on of its message's parameters: the private ones. The submitter's protocol may know the
/// message by them, as SGIP knows it by the sequence number of its Submit.
fn private(tlvs: &bytes::Bytes) -> bytes::Bytes {
    let mut kept = Vec::new();
    let mut at = 0;
    while let Some(&[tag_high, tag_low, length_high, length_low]) = tlvs.get(at..at + 4) {
        let end = at + 4 + usize::from(u16::from_be_bytes([length_high, length_low]));
        let Some(whole) = tlvs.get(at..end) else { break };
        if PRIVATE.contains(&u16::from_be_bytes([tag_high, tag_low])) {
            kept.extend_from_slice(whole);
        }
        at = end;
    }
    kept.into()
}

/// What a receipt shows of a text: twenty characters, of two octets each at most, behind a header if there is one.
fn beginning(text: &Text) -> Bytes {
    let header = text.octets.first().filter(|_| text.udhi).map_or(0, |length| usize::from(*length) + 1);
    text.octets.slice(..text.octets.len().min(header + 40))
}
