//! DLRs: from peers, matched to messages; for submitters, created and queued.

mod dlr_index;
mod orphan_dlrs;
mod segment_states;

pub(crate) use dlr_index::DlrIndex;
pub(crate) use orphan_dlrs::{OrphanDlr, OrphanDlrs};
pub(crate) use segment_states::state_of_segments;

use crate::engine::Engine;
use crate::receipt_state::{DlrSource, LateDlr};
use crate::sender_numbers::SenderResult;
use crate::slab::{Slot, State};
use crate::timer::Timer;
use crate::{EngineAnswer, EngineCommand, Event, Output, ReplyTo};
use bytes::Bytes;
use model::{
    Dlr, DlrContent, DlrRequest, DlrState, FinalRecord, FinalState, Leg, Message, MessageId, MessageKind,
    Now, PeerId, PluginVersion, Priority, ReceiptDecision, ReceiptVerdict, Refusal, RoutingDecision,
    StepKind, SubmittedSegment, Text, Verdict,
};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// DLRs need no routing plugin: they return to the submitter.
static DLR_ROUTE: LazyLock<Arc<PluginVersion>> =
    LazyLock::new(|| Arc::new(PluginVersion { plugin: "receipt".to_owned(), version: String::new() }));

impl Engine {
    pub(crate) fn dlr_received(
        &mut self,
        now: Now,
        peer: PeerId,
        dlr: Dlr,
        reply: ReplyTo,
        out: &mut Output,
    ) {
        let group = self.peer_mut(peer).settings.group;
        let taken = EngineCommand::Answer { to: reply, answer: EngineAnswer::DlrRecorded };
        if let Some(slot) = self.find_by_dlr_id(group, &dlr) {
            if self.slab[slot].message.is_none() && self.slab[slot].dlr_request().any() {
                // The DLR for the submitter needs the content, and the peer is answered only once that is durable.
                let id = self.slab[slot].id;
                let again = Event::Dlr { peer, dlr, reply };
                self.waiting_for_content.entry(id).or_default().push(again);
                self.load_if_missing(slot, out);
                return;
            }
            self.totals.dlrs_matched += 1;
            self.dlr_matched(now, slot, dlr, DlrSource::answered_to(reply), out);
            return;
        }
        if let Some((id, earlier)) = self.receipts.earlier_leg(group, &dlr.id) {
            let source = DlrSource::answered_to(reply);
            self.late_dlr(now, LateDlr { id, peer: earlier, dlr, source }, out);
            return;
        }
        // While an attempt to the group is unanswered, the DLR may have overtaken its submit response. The response
        // will follow soon, and then the DLR need not be stored. Otherwise it is stored at once.
        let soon = self.has_attempts_in_flight(group);
        if !soon && let Some(slot) = self.find_uncertain(group, &dlr) {
            self.totals.dlrs_matched += 1;
            self.dlr_matched(now, slot, dlr, DlrSource::answered_to(reply), out);
            return;
        }
        let key = self.dlr_index.key(group, &dlr.id);
        let orphan = OrphanDlr {
            peer,
            group,
            dlr,
            at: now.wall,
            until: now.mono + self.settings.orphan_dlr_retention,
            written: !soon,
            reply: soon.then_some((reply, now.mono + self.settings.orphan_dlr_answer_delay)),
        };
        if soon {
            self.orphan_dlrs.insert(key, orphan);
            self.answer_orphan_dlrs(now, out);
        } else {
            let mut record = orphan.record(0);
            record.number = self.orphan_dlrs.insert(key, orphan);
            out.batch.orphan_dlrs.push(record);
            out.commands.push(taken);
        }
        self.schedule_orphan_sweep(now);
        if self.orphan_dlrs.len() > self.settings.orphan_dlr_limit {
            self.sweep_orphan_dlrs(now, out);
        }
    }

    pub(crate) fn schedule_orphan_sweep(&mut self, now: Now) {
        if !self.orphan_sweep_set {
            self.orphan_sweep_set = true;
            self.timers.set(now.mono + Duration::from_secs(1), Timer::OrphanDlrs);
        }
    }

    fn find_by_dlr_id(&self, group: u32, dlr: &Dlr) -> Option<Slot> {
        if dlr.id.0.is_empty() {
            return None;
        }
        self.dlr_index.find(self.dlr_index.key(group, &dlr.id), |slot| {
            let entry = &self.slab[slot];
            let same_group =
                self.peers.get(entry.peer.0 as usize).is_some_and(|peer| peer.settings.group == group);
            same_group
                && entry
                    .history
                    .as_ref()
                    .is_some_and(|history| history.segments.iter().any(|segment| segment.id == dlr.id))
        })
    }

    fn has_attempts_in_flight(&self, group: u32) -> bool {
        self.peers.iter().any(|peer| peer.settings.group == group && peer.in_flight > 0)
    }

    /// The uncertain message with the DLR's addresses, if there is exactly one. This is a guess, because the response
    /// with the message's id was lost; among several candidates it would be wrong too often.
    fn find_uncertain(&self, group: u32, dlr: &Dlr) -> Option<Slot> {
        if self.uncertain_by_pair.is_empty() {
            return None;
        }
        let key = self.pairs.key(PeerId(group), &dlr.to, &dlr.from);
        match self.uncertain_by_pair.get(&key)?.as_slice() {
            [id] => self.ids.get(&self.slab, *id),
            _ => None,
        }
    }

    /// Applies orphan DLRs that came before the submit response with their message's id.
    pub(crate) fn match_orphan_dlrs(&mut self, now: Now, slot: Slot, group: u32, out: &mut Output) {
        if self.orphan_dlrs.len() == 0 {
            return;
        }
        let ids: Vec<_> = self.slab[slot].history.as_ref().map_or_else(Vec::new, |history| {
            history.segments.iter().map(|segment| segment.id.clone()).collect()
        });
        for id in ids {
            let key = self.dlr_index.key(group, &id);
            for (number, orphan) in self.orphan_dlrs.claim(key, group, &id) {
                self.totals.dlrs_matched += 1;
                let source = DlrSource {
                    reply: orphan.reply.map(|(to, _)| to),
                    orphan: orphan.written.then_some(number),
                };
                if self.slab[slot].state == State::AwaitingDlr {
                    self.dlr_matched(now, slot, orphan.dlr, source, out);
                } else {
                    source.done(out);
                }
            }
        }
    }

    /// Stores and answers the orphan DLRs that have waited long enough, or are too many.
    fn answer_orphan_dlrs(&mut self, now: Now, out: &mut Output) {
        for (to, record) in self.orphan_dlrs.overdue(now.mono, self.settings.orphan_dlrs_unanswered) {
            out.batch.orphan_dlrs.push(record);
            out.commands.push(EngineCommand::Answer { to, answer: EngineAnswer::DlrRecorded });
        }
    }

    pub(crate) fn sweep_orphan_dlrs(&mut self, now: Now, out: &mut Output) {
        self.orphan_sweep_set = false;
        self.answer_orphan_dlrs(now, out);
        for (number, orphan) in self.orphan_dlrs.expired(now.mono, self.settings.orphan_dlr_limit) {
            let source =
                DlrSource { reply: orphan.reply.map(|(to, _)| to), orphan: orphan.written.then_some(number) };
            match self.find_uncertain(orphan.group, &orphan.dlr) {
                Some(slot) => {
                    self.totals.dlrs_matched += 1;
                    self.dlr_matched(now, slot, orphan.dlr, source, out);
                }
                None => {
                    self.totals.dlrs_unmatched += 1;
                    source.done(out);
                }
            }
        }
        if self.orphan_dlrs.len() > 0 {
            self.schedule_orphan_sweep(now);
        }
    }

    /// The peer has accepted an uncertain message after all: it sent a DLR.
    pub(crate) fn accepted_by_dlr(&mut self, now: Now, slot: Slot, dlr: &Dlr, out: &mut Output) {
        let peer = self.slab[slot].peer.0 as usize;
        self.leave_uncertain(slot);
        let (group, limit) = (self.peers[peer].settings.group, self.peers[peer].settings.dlr_timeout);
        let entry = &mut self.slab[slot];
        entry.state = State::AwaitingDlr;
        entry.due = now.mono + limit;
        let history = entry.history_mut();
        if !history.segments.iter().any(|segment| segment.id == dlr.id) {
            history.segments.push(SubmittedSegment { id: dlr.id.clone(), state: None });
        }
        self.peers[peer].awaiting += 1;
        self.index_segments(slot, group);
        self.report_accepted(now, slot, &[], out);
    }

    /// Applies a DLR to a message that waits for one. `decision`: the decision of the receipt policy; only a remap matters
    /// here.
    pub(crate) fn apply_dlr(
        &mut self,
        now: Now,
        slot: Slot,
        dlr: &Dlr,
        decision: Option<&ReceiptDecision>,
        out: &mut Output,
    ) {
        let received = StepKind::DlrReceived { state: dlr.state as u8, error: dlr.error };
        let remapped = decision.and_then(|decision| match decision.verdict {
            ReceiptVerdict::Remap { state, error } => {
                Some(Dlr { state, error, intermediate: !is_final_state(state), ..dlr.clone() })
            }
            _ => None,
        });
        let is_remapped = remapped.is_some();
        let dlr = &remapped.unwrap_or_else(|| dlr.clone());
        let history = self.slab[slot].history_mut();
        let Some(segment) = history.segments.iter_mut().find(|segment| segment.id == dlr.id) else { return };
        if segment.state == Some(dlr.state) || segment.state.is_some_and(is_final_state) {
            return;
        }
        segment.state = Some(dlr.state);
        let number = history.segments.iter().position(|segment| segment.id == dlr.id).unwrap_or(0) + 1;
        let all = history.segments.len();
        let together = if dlr.intermediate { None } else { Self::final_state_of_segments(&history.segments) };
        self.add_step(now, slot, received);
        decision.into_iter().for_each(|decision| self.add_decision(now, slot, decision));
        if is_remapped {
            self.totals.dlrs_remapped += 1;
            let kind = StepKind::DlrRemapped { state: dlr.state as u8, error: dlr.error };
            self.add_step(now, slot, kind);
        }
        if !dlr.intermediate && is_final_state(dlr.state) && all > 1 && self.wants_segment_dlrs(slot) {
            self.make_segment_dlr(now, slot, dlr, (number, all), out);
        }
        if let Some(state) = together {
            self.observe_dlr(now, slot, state, out);
            self.end(now, slot, state, Some(dlr), out);
            return;
        }
        if self.slab[slot].dlr_request().intermediate
            && let Some(message) = self.slab[slot].message.clone()
        {
            let text = DlrContent {
                of: message.id,
                state: dlr.state,
                intermediate: true,
                error: dlr.error,
                network_error: dlr.network_error,
                submitted_at: message.accepted_at,
                done_at: dlr.done_at.unwrap_or(now.wall),
                segments: (1, 0),
                segment: 0,
                peer_id: dlr.id.clone(),
            };
            self.queue_dlr(now, &message, text, out);
        }
        self.write_progress(now, slot, out);
    }

    /// Applies the result of query_sm.
    pub(crate) fn query_result(&mut self, now: Now, id: MessageId, dlr: Option<Dlr>, out: &mut Output) {
        let Some(slot) = self.ids.get(&self.slab, id) else { return };
        match (self.slab[slot].state, dlr) {
            (State::Uncertain | State::AwaitingDlr, Some(mut dlr)) => {
                if let Some(segment) =
                    self.slab[slot].history.as_ref().and_then(|history| history.segments.last())
                {
                    dlr.id = segment.id.clone();
                }
                if self.slab[slot].message.is_none() && self.asks_receipt(slot) {
                    let again = Event::QueryResult { id, dlr: Some(dlr) };
                    self.waiting_for_content.entry(id).or_default().push(again);
                    self.load_if_missing(slot, out);
                    return;
                }
                self.dlr_matched(now, slot, dlr, DlrSource::default(), out);
            }
            (State::Uncertain, None) => {
                self.leave_uncertain(slot);
                self.totals.sent_again += 1;
                self.add_step(now, slot, StepKind::SentAgain);
                self.requeue(slot);
                self.write_progress(now, slot, out);
            }
            _ => {}
        }
    }

    /// Creates the DLR of a finished message.
    pub(crate) fn make_dlr(
        &mut self,
        now: Now,
        message: &Message,
        ended: &FinalRecord,
        dlr: Option<&Dlr>,
        segments: (u16, u16),
        out: &mut Output,
    ) {
        let state = match ended.state {
            FinalState::Delivered => DlrState::Delivered,
            FinalState::Relayed => DlrState::Accepted,
            FinalState::Failed => DlrState::Undeliverable,
            FinalState::Expired => DlrState::Expired,
            FinalState::Cancelled => DlrState::Deleted,
            FinalState::Rejected => match message.routed.verdict {
                Verdict::Drop(shown) => shown.dlr_state(),
                _ => DlrState::Rejected,
            },
            FinalState::Unknown => DlrState::Unknown,
        };
        let text = DlrContent {
            of: message.id,
            state,
            intermediate: false,
            error: u16::try_from(ended.error).unwrap_or(u16::MAX),
            network_error: dlr.and_then(|dlr| dlr.network_error),
            submitted_at: message.accepted_at,
            done_at: dlr.and_then(|dlr| dlr.done_at).unwrap_or(ended.at),
            segments,
            segment: 0,
            peer_id: ended.peer_id.clone(),
        };
        self.queue_dlr(now, message, text, out);
    }

    /// Whether the submitter wants one DLR per segment.
    pub(crate) fn wants_segment_dlrs(&self, slot: Slot) -> bool {
        let origin = self.slab[slot].origin.0 as usize;
        self.peers.get(origin).is_some_and(|peer| peer.settings.segment_dlrs)
    }

    /// Creates the DLR of one segment, if the submitter wants them separately.
    fn make_segment_dlr(
        &mut self,
        now: Now,
        slot: Slot,
        dlr: &Dlr,
        (number, all): (usize, usize),
        out: &mut Output,
    ) {
        let request = self.slab[slot].dlr_request();
        let good = dlr.state == DlrState::Delivered;
        let wants = if good { request.on_success } else { request.on_failure };
        let Some(message) = self.slab[slot].message.clone().filter(|_| wants) else { return };
        let short = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
        let text = DlrContent {
            of: message.id,
            state: dlr.state,
            intermediate: false,
            error: dlr.error,
            network_error: dlr.network_error,
            submitted_at: message.accepted_at,
            done_at: dlr.done_at.unwrap_or(now.wall),
            segments: (short(all), u16::from(good)),
            segment: short(number),
            peer_id: dlr.id.clone(),
        };
        self.queue_dlr(now, &message, text, out);
    }

    /// Creates the DLR of a finished message again.
    pub(crate) fn resend_dlr(
        &mut self,
        now: Now,
        message: &Message,
        ended: &FinalRecord,
        out: &mut Output,
    ) -> EngineAnswer {
        let account = self.peer_mut(message.origin);
        if !account.settings.is_addressee() {
            return EngineAnswer::Refused(Refusal::UnknownMessage);
        }
        if account.waiting() >= account.settings.queue_limit {
            return EngineAnswer::Refused(Refusal::QueueFull);
        }
        let delivered = u16::from(ended.state == FinalState::Delivered);
        self.make_dlr(now, message, ended, None, (1, delivered), out);
        EngineAnswer::Done
    }

    fn queue_dlr(&mut self, now: Now, message: &Message, text: DlrContent, out: &mut Output) {
        // DLRs are sent only to accounts; the protocol of an SMSC reports the delivery of its MO messages.
        let account = self.peer_mut(message.origin);
        if !account.settings.is_addressee() {
            return;
        }
        // Beyond the account's queue limit, the DLR can be requested again from the message's record.
        if account.waiting() >= account.settings.queue_limit {
            self.totals.dlrs_dropped += 1;
            return;
        }
        self.totals.dlrs_made += 1;
        let dlr = self.dlr_message(now, message, text);
        self.admit(now, dlr, 0, SenderResult::default(), out);
    }

    /// A message to the submitter of another one.
    pub(crate) fn dlr_message(&self, now: Now, message: &Message, text: DlrContent) -> Message {
        let serial = self.peers.get(message.origin.0 as usize).is_some_and(|peer| peer.settings.serial);
        // A DLR to a subscriber goes to the handset, so the subscriber must be resolved.
        let leg = Leg { resolve: serial && self.settings.resolver, ..Leg::to(message.origin) };
        Message {
            id: MessageId(0),
            kind: MessageKind::Dlr(Box::new(text)),
            origin: message.origin,
            source: message.destination.clone(),
            destination: message.source.clone(),
            service_type: message.service_type.clone(),
            protocol_id: 0,
            esm_class: 0,
            priority: Priority::new(1),
            dlr_request: DlrRequest::NONE,
            replace_if_present: false,
            submission: message.submission,
            // The text form of a DLR contains the first characters of the text.
            text: Text {
                octets: beginning(&message.text),
                data_coding: message.text.data_coding,
                udhi: message.text.udhi,
                payload: false,
            },
            tlvs: Bytes::new(),
            protocol_fields: message.protocol_fields.clone(),
            sealed: None,
            accepted_at: now.wall,
            scheduled: None,
            expires_at: now.wall + self.settings.own_dlr_validity,
            routed: RoutingDecision::new(Verdict::Forward(vec![leg]), DLR_ROUTE.clone()),
        }
    }

    pub(crate) fn await_dlr(&mut self, now: Now, slot: Slot, out: &mut Output) {
        let entry = &mut self.slab[slot];
        entry.state = State::AwaitingDlr;
        let peer = entry.peer.0 as usize;
        let settings = &self.peers[peer].settings;
        let (group, limit) = (settings.group, settings.dlr_timeout);
        self.slab[slot].due = now.mono + limit;
        self.peers[peer].awaiting += 1;
        self.index_segments(slot, group);
        self.write_progress(now, slot, out);
        self.receipt_expected(now, slot, out);
        self.match_orphan_dlrs(now, slot, group, out);
        let still = self.slab[slot].state == State::AwaitingDlr;
        if still && self.cached > self.settings.body_cache {
            self.uncache(slot);
        }
    }

    pub(crate) fn index_segments(&mut self, slot: Slot, group: u32) {
        for key in self.segment_keys(slot, group) {
            self.dlr_index.insert(key, slot);
        }
    }

    pub(crate) fn segment_keys(&self, slot: Slot, group: u32) -> Vec<u64> {
        let segments = self.slab[slot].history.as_ref().map_or(&[][..], |history| &history.segments);
        segments
            .iter()
            .filter(|segment| !segment.id.0.is_empty())
            .map(|segment| self.dlr_index.key(group, &segment.id))
            .collect()
    }

    /// The final state that the DLRs of all segments yield together.
    pub(crate) fn final_state_of_segments(segments: &[SubmittedSegment]) -> Option<FinalState> {
        Some(match state_of_segments(segments)? {
            DlrState::Delivered => FinalState::Delivered,
            DlrState::Expired => FinalState::Expired,
            DlrState::Deleted => FinalState::Cancelled,
            DlrState::Rejected => FinalState::Rejected,
            DlrState::Unknown => FinalState::Unknown,
            DlrState::Scheduled
            | DlrState::Enroute
            | DlrState::Accepted
            | DlrState::Undeliverable
            | DlrState::Skipped => FinalState::Failed,
        })
    }
}

/// Whether the state of a segment is final. "Accepted" is not: many SMSCs send it before the final state.
pub(crate) fn is_final_state(state: DlrState) -> bool {
    state.is_final() && state != DlrState::Accepted
}

/// The part of a text that a DLR contains: its header, if any, and twenty characters of at most two octets.
fn beginning(text: &Text) -> Bytes {
    let header = text.octets.first().filter(|_| text.udhi).map_or(0, |length| usize::from(*length) + 1);
    text.octets.slice(..text.octets.len().min(header + 40))
}
