//! Mobile-terminated transactions: the second queue, with one message in flight per subscriber.
//!
//! An MSC answers an MT under the subscriber's IMSI, with a reference of its own (3GPP TS 24.011 §8.2.3 as implemented
//! by OsmoMSC). MSCs from 1.11.1 return the source name of the request, so each request has a unique name, and an
//! answer with another name is a duplicate. Older MSCs return no name, and their reference is the lowest free one,
//! nearly always 0. An answer from an older MSC is a duplicate only if no request was sent since the last answer.

use bytes::Bytes;
use gsup::GsupImsi;
use model::{ErrorClass, MessageId, Outcome, PeerMessageId};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Identifies a connection to an MSC or the HLR.
pub(crate) type ConnId = u64;

/// A message for a handset, encoded as segments.
#[derive(Debug)]
pub(crate) struct Mt {
    pub(crate) id: MessageId,
    pub(crate) imsi: GsupImsi,
    pub(crate) conn: ConnId,
    /// The TPDU of each segment.
    pub(crate) segments: Vec<Bytes>,
    /// Segments that the handset has acknowledged; the next one follows these.
    pub(crate) segments_delivered: usize,
    /// Whether another message for the subscriber waits.
    pub(crate) more: bool,
}

/// A request to be written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MtRequest {
    pub(crate) conn: ConnId,
    pub(crate) imsi: GsupImsi,
    /// Identifies the answer.
    pub(crate) tag: u32,
    pub(crate) tpdu: Bytes,
    /// More messages to send: the MSC keeps the channel open.
    pub(crate) more: bool,
}

/// An answer from an MSC or the HLR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MtAnswer {
    pub(crate) conn: ConnId,
    /// The tag of the request, if the MSC returns it.
    pub(crate) tag: Option<u32>,
    /// Class and code of a negative answer.
    pub(crate) refusal: Option<(ErrorClass, u32)>,
}

/// An action for the link.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MtStep {
    Write(MtRequest),
    Finished(MessageId, Outcome),
}

/// The result of [`MtTransactions::handle_answer`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MtAnswerResult {
    /// The answer was expected; perform these steps.
    Expected(Vec<MtStep>),
    /// The request had timed out.
    Late(Vec<MtStep>),
    /// The request was answered before.
    Duplicate,
    /// The answer belongs to no request.
    Unrelated,
}

#[derive(Debug)]
struct InFlightMt {
    mt: Mt,
    tag: u32,
    /// The flush in which it was written.
    flush_round: u64,
    sent_at: Instant,
}

#[derive(Debug)]
struct UnansweredMt {
    id: MessageId,
    tag: u32,
    conn: ConnId,
    /// Total number of segments of the message.
    segments: usize,
    last: bool,
    until: Instant,
}

#[derive(Debug)]
struct LastAnswer {
    tag: u32,
    at: Instant,
}

/// How long the last answer for a subscriber is remembered.
const LAST_ANSWER_LIFETIME: Duration = Duration::from_secs(2);

/// How long a late answer to a timed-out request is accepted.
const LATE_ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// All MT transactions.
#[derive(Debug)]
pub(crate) struct MtTransactions {
    response_timeout: Duration,
    next_tag: u32,
    /// Number of flushes to the connections.
    flush_round: u64,
    in_flight: FxHashMap<GsupImsi, InFlightMt>,
    /// Messages that wait for the message in flight. The engine sends one per subscriber at a time, but two numbers may
    /// resolve to the same IMSI.
    waiting: FxHashMap<GsupImsi, VecDeque<Mt>>,
    /// Timed-out requests that may still be answered.
    unanswered: FxHashMap<GsupImsi, UnansweredMt>,
    last_answers: FxHashMap<GsupImsi, LastAnswer>,
    cleanup_queue: VecDeque<(Instant, GsupImsi)>,
    /// Messages settled by a late positive answer. The engine may have submitted them again before it received the
    /// outcome.
    delivered_late: FxHashMap<MessageId, Instant>,
}

fn empty_ids(segments: usize) -> Vec<PeerMessageId> {
    vec![PeerMessageId::default(); segments]
}

impl MtTransactions {
    pub(crate) fn new(response_timeout: Duration) -> Self {
        Self {
            response_timeout,
            next_tag: 0,
            flush_round: 0,
            in_flight: FxHashMap::default(),
            waiting: FxHashMap::default(),
            unanswered: FxHashMap::default(),
            last_answers: FxHashMap::default(),
            cleanup_queue: VecDeque::new(),
            delivered_late: FxHashMap::default(),
        }
    }

    /// Number of subscribers with a message in flight.
    pub(crate) fn len(&self) -> usize {
        self.in_flight.len()
    }

    /// Records that all written requests were sent, so that answers are possible.
    pub(crate) fn mark_sent(&mut self) {
        self.flush_round += 1;
    }

    /// Starts a message.
    pub(crate) fn start(&mut self, now: Instant, mt: Mt) -> MtStep {
        if mt.segments_delivered >= mt.segments.len() || self.delivered_late.contains_key(&mt.id) {
            return MtStep::Finished(mt.id, Outcome::Accepted { ids: empty_ids(mt.segments.len()) });
        }
        self.unanswered.remove(&mt.imsi);
        self.write_segment(now, mt)
    }

    /// Whether a message for the subscriber is in flight.
    pub(crate) fn is_busy(&self, imsi: &GsupImsi) -> bool {
        self.in_flight.contains_key(imsi)
    }

    /// Queues a message after the one in flight.
    pub(crate) fn enqueue_behind(&mut self, mt: Mt) {
        self.waiting.entry(mt.imsi).or_default().push_back(mt);
    }

    fn write_segment(&mut self, now: Instant, mt: Mt) -> MtStep {
        // 24 bits, since the tag is part of a name of at most 31 octets.
        self.next_tag = (self.next_tag + 1) & 0xFF_FFFF;
        let tag = self.next_tag;
        let more =
            mt.more || mt.segments_delivered + 1 < mt.segments.len() || self.waiting.contains_key(&mt.imsi);
        let tpdu = mt.segments.get(mt.segments_delivered).cloned().unwrap_or_default();
        let request = MtRequest { conn: mt.conn, imsi: mt.imsi, tag, tpdu, more };
        self.in_flight.insert(mt.imsi, InFlightMt { mt, tag, flush_round: self.flush_round, sent_at: now });
        MtStep::Write(request)
    }

    /// Starts the next queued message for the subscriber.
    fn start_next(&mut self, now: Instant, imsi: &GsupImsi, next: &mut Vec<MtStep>) {
        let Some(waiting) = self.waiting.get_mut(imsi) else { return };
        let first = waiting.pop_front();
        if waiting.is_empty() {
            self.waiting.remove(imsi);
        }
        if let Some(mt) = first {
            next.push(self.write_segment(now, mt));
        }
    }

    /// Handles an answer for a subscriber's message.
    pub(crate) fn handle_answer(
        &mut self,
        now: Instant,
        imsi: &GsupImsi,
        answer: MtAnswer,
    ) -> MtAnswerResult {
        let last = self.last_answers.get(imsi);
        let Some(current) = self.in_flight.get(imsi) else {
            return match last {
                Some(last)
                    if answer.tag.is_none_or(|tag| tag == last.tag)
                        && !self.unanswered.contains_key(imsi) =>
                {
                    MtAnswerResult::Duplicate
                }
                _ => self.handle_late_answer(now, imsi, answer),
            };
        };
        if current.mt.conn != answer.conn {
            return MtAnswerResult::Unrelated;
        }
        let other = match answer.tag {
            Some(tag) => tag != current.tag,
            None => current.flush_round == self.flush_round,
        };
        if other {
            return MtAnswerResult::Duplicate;
        }
        let Some(InFlightMt { mut mt, tag, .. }) = self.in_flight.remove(imsi) else {
            return MtAnswerResult::Unrelated;
        };
        self.last_answers.insert(*imsi, LastAnswer { tag, at: now });
        self.cleanup_queue.push_back((now + LAST_ANSWER_LIFETIME, *imsi));
        let mut next = Vec::with_capacity(2);
        match answer.refusal {
            None => {
                mt.segments_delivered += 1;
                if mt.segments_delivered < mt.segments.len() {
                    next.push(self.write_segment(now, mt));
                    return MtAnswerResult::Expected(next);
                }
                next.push(MtStep::Finished(mt.id, Outcome::Accepted { ids: empty_ids(mt.segments.len()) }));
            }
            Some((class, code)) => {
                next.push(MtStep::Finished(
                    mt.id,
                    Outcome::Refused { class, code, taken: empty_ids(mt.segments_delivered) },
                ));
            }
        }
        self.start_next(now, imsi, &mut next);
        MtAnswerResult::Expected(next)
    }

    fn handle_late_answer(&mut self, now: Instant, imsi: &GsupImsi, answer: MtAnswer) -> MtAnswerResult {
        let Some(entry) = self.unanswered.get(imsi) else { return MtAnswerResult::Unrelated };
        let same = entry.conn == answer.conn && answer.tag.is_none_or(|tag| tag == entry.tag);
        if !same || entry.until < now {
            return MtAnswerResult::Unrelated;
        }
        let Some(entry) = self.unanswered.remove(imsi) else { return MtAnswerResult::Unrelated };
        // A late positive answer to the last segment settles the message. Any other late answer is ignored, since the
        // message is retried anyway.
        match answer.refusal {
            None if entry.last => {
                self.delivered_late.insert(entry.id, now + LATE_ANSWER_TIMEOUT);
                MtAnswerResult::Late(vec![MtStep::Finished(
                    entry.id,
                    Outcome::Accepted { ids: empty_ids(entry.segments) },
                )])
            }
            _ => MtAnswerResult::Late(Vec::new()),
        }
    }

    /// Subscribers whose messages time out with the next call of [`Self::expire_unanswered`].
    pub(crate) fn timed_out_subscribers(&self, now: Instant) -> Vec<GsupImsi> {
        let timed_out =
            self.in_flight.iter().filter(|(_, current)| current.sent_at + self.response_timeout <= now);
        timed_out.map(|(imsi, _)| *imsi).collect()
    }

    /// Expires unanswered requests. Call it about once per second.
    pub(crate) fn expire_unanswered(&mut self, now: Instant) -> Vec<MtStep> {
        let mut next = Vec::new();
        let mut unanswered: Vec<InFlightMt> = self
            .in_flight
            .extract_if(|_, current| current.sent_at + self.response_timeout <= now)
            .map(|(_, current)| current)
            .collect();
        unanswered.sort_unstable_by_key(|current| current.mt.id);
        for InFlightMt { mt, tag, .. } in unanswered {
            let until = now + LATE_ANSWER_TIMEOUT;
            let last = mt.segments_delivered + 1 == mt.segments.len();
            let entry =
                UnansweredMt { id: mt.id, tag, conn: mt.conn, segments: mt.segments.len(), last, until };
            self.unanswered.insert(mt.imsi, entry);
            self.cleanup_queue.push_back((until, mt.imsi));
            let outcome = Outcome::Unanswered { taken: empty_ids(mt.segments_delivered), known: Vec::new() };
            next.push(MtStep::Finished(mt.id, outcome));
            // Queued messages must not overtake the expired one.
            for mt in self.waiting.remove(&mt.imsi).into_iter().flatten() {
                next.push(MtStep::Finished(mt.id, Outcome::NotSent));
            }
        }
        self.remove_expired(now);
        next
    }

    fn remove_expired(&mut self, now: Instant) {
        self.delivered_late.retain(|_, until| *until > now);
        // The queue has entries with two different lifetimes; an entry that follows a longer-lived one is removed late.
        while self.cleanup_queue.front().is_some_and(|(at, _)| *at <= now)
            && let Some((_, imsi)) = self.cleanup_queue.pop_front()
        {
            if self.last_answers.get(&imsi).is_some_and(|last| last.at + LAST_ANSWER_LIFETIME <= now) {
                self.last_answers.remove(&imsi);
            }
            if self.unanswered.get(&imsi).is_some_and(|entry| entry.until <= now) {
                self.unanswered.remove(&imsi);
            }
        }
    }

    /// Handles a closed connection, or all with `None`: written messages become uncertain, others return to the
    /// engine's queue.
    pub(crate) fn connection_closed(&mut self, conn: Option<ConnId>) -> Vec<MtStep> {
        let is_lost = |mt: &Mt| conn.is_none_or(|conn| mt.conn == conn);
        let mut next: Vec<(MessageId, Outcome)> = Vec::new();
        self.in_flight.retain(|_, current| {
            let is_lost = is_lost(&current.mt);
            if is_lost {
                let taken = empty_ids(current.mt.segments_delivered);
                next.push((current.mt.id, Outcome::Unanswered { taken, known: Vec::new() }));
            }
            !is_lost
        });
        let in_flight = &self.in_flight;
        self.waiting.retain(|imsi, waiting| {
            let stays = in_flight.contains_key(imsi);
            if !stays {
                next.extend(waiting.drain(..).map(|mt| (mt.id, Outcome::NotSent)));
            }
            stays
        });
        next.sort_unstable_by_key(|(id, _)| *id);
        next.into_iter().map(|(id, outcome)| MtStep::Finished(id, outcome)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER_TIMEOUT: Duration = Duration::from_secs(90);

    fn imsi(n: u32) -> GsupImsi {
        format!("00101{n:010}").parse().unwrap()
    }

    fn mt(id: u64, n: u32, segments: usize) -> Mt {
        let segments = (0..segments).map(|part| Bytes::from(vec![part as u8])).collect();
        Mt { id: MessageId(id), imsi: imsi(n), conn: 1, segments, segments_delivered: 0, more: false }
    }

    fn tag(next: &MtStep) -> u32 {
        match next {
            MtStep::Write(request) => request.tag,
            MtStep::Finished(..) => panic!("{next:?}"),
        }
    }

    fn yes(tag: Option<u32>) -> MtAnswer {
        MtAnswer { conn: 1, tag, refusal: None }
    }

    /// Handles an answer after the request was sent.
    fn answer(transactions: &mut MtTransactions, now: Instant, n: u32, answer: MtAnswer) -> MtAnswerResult {
        transactions.mark_sent();
        transactions.handle_answer(now, &imsi(n), answer)
    }

    fn accepted(id: u64, segments: usize) -> MtStep {
        MtStep::Finished(MessageId(id), Outcome::Accepted { ids: empty_ids(segments) })
    }

    #[test]
    fn segments_are_sent_in_order_and_all_but_the_last_set_more() {
        let now = Instant::now();
        let mut transactions = MtTransactions::new(ANSWER_TIMEOUT);
        let first = transactions.start(now, mt(1, 1, 3));
        assert!(matches!(&first, MtStep::Write(request) if request.more && request.tpdu[0] == 0));
        let MtAnswerResult::Expected(next) = answer(&mut transactions, now, 1, yes(None)) else { panic!() };
        assert!(matches!(&next[..], [MtStep::Write(request)] if request.more && request.tpdu[0] == 1));
        let MtAnswerResult::Expected(next) = answer(&mut transactions, now, 1, yes(None)) else { panic!() };
        assert!(matches!(&next[..], [MtStep::Write(request)] if !request.more && request.tpdu[0] == 2));
        assert_eq!(
            answer(&mut transactions, now, 1, yes(None)),
            MtAnswerResult::Expected(vec![accepted(1, 3)])
        );
        assert_eq!(transactions.len(), 0);
    }

    #[test]
    fn refused_segment_reports_delivered_segments() {
        let now = Instant::now();
        let mut transactions = MtTransactions::new(ANSWER_TIMEOUT);
        transactions.start(now, mt(1, 1, 3));
        answer(&mut transactions, now, 1, yes(None));
        let refusal = Some((ErrorClass::MemoryFull, 22));
        let refused = MtAnswer { refusal, ..yes(None) };
        let outcome = Outcome::Refused { class: ErrorClass::MemoryFull, code: 22, taken: empty_ids(1) };
        assert_eq!(
            answer(&mut transactions, now, 1, refused),
            MtAnswerResult::Expected(vec![MtStep::Finished(MessageId(1), outcome)])
        );
        let again = transactions.start(now, Mt { segments_delivered: 1, ..mt(1, 1, 3) });
        assert!(matches!(&again, MtStep::Write(request) if request.tpdu[0] == 1));
    }

    #[test]
    fn duplicate_answer_does_not_finish_another_message() {
        let now = Instant::now();
        let mut transactions = MtTransactions::new(ANSWER_TIMEOUT);
        let first = tag(&transactions.start(now, mt(1, 1, 1)));
        assert_eq!(
            answer(&mut transactions, now, 1, yes(Some(first))),
            MtAnswerResult::Expected(vec![accepted(1, 1)])
        );
        assert_eq!(answer(&mut transactions, now, 1, yes(Some(first))), MtAnswerResult::Duplicate);
        let second = tag(&transactions.start(now, mt(2, 1, 1)));
        // A tagged duplicate is recognised at any time.
        assert_eq!(
            answer(&mut transactions, now + ANSWER_TIMEOUT / 2, 1, yes(Some(first))),
            MtAnswerResult::Duplicate
        );
        assert_eq!(
            answer(&mut transactions, now, 1, yes(None)),
            MtAnswerResult::Expected(vec![accepted(2, 1)])
        );
        assert_ne!(first, second);
        assert_eq!(answer(&mut transactions, now, 2, yes(None)), MtAnswerResult::Unrelated);
    }

    /// OsmoMSC's references are nearly always 0, and the next segment follows at once.
    #[test]
    fn untagged_answer_is_a_duplicate_if_nothing_was_sent() {
        let now = Instant::now();
        let mut transactions = MtTransactions::new(ANSWER_TIMEOUT);
        transactions.start(now, mt(1, 1, 2));
        assert!(matches!(answer(&mut transactions, now, 1, yes(None)), MtAnswerResult::Expected(_)));
        assert_eq!(transactions.handle_answer(now, &imsi(1), yes(None)), MtAnswerResult::Duplicate);
        assert_eq!(
            answer(&mut transactions, now, 1, yes(None)),
            MtAnswerResult::Expected(vec![accepted(1, 2)])
        );
        assert_eq!(transactions.handle_answer(now, &imsi(1), yes(None)), MtAnswerResult::Duplicate);
    }

    #[test]
    fn unanswered_mt_expires_and_a_late_result_settles_it() {
        let now = Instant::now();
        let mut transactions = MtTransactions::new(ANSWER_TIMEOUT);
        transactions.start(now, mt(1, 1, 1));
        transactions.enqueue_behind(mt(2, 1, 1));
        assert!(transactions.expire_unanswered(now + ANSWER_TIMEOUT - Duration::from_millis(1)).is_empty());
        let later = now + ANSWER_TIMEOUT;
        let doubt = Outcome::Unanswered { taken: Vec::new(), known: Vec::new() };
        let entry = [MtStep::Finished(MessageId(1), doubt), MtStep::Finished(MessageId(2), Outcome::NotSent)];
        assert_eq!(transactions.expire_unanswered(later), entry);
        assert_eq!(
            answer(&mut transactions, later, 1, yes(None)),
            MtAnswerResult::Late(vec![accepted(1, 1)])
        );
        assert_eq!(answer(&mut transactions, later, 1, yes(None)), MtAnswerResult::Unrelated);
        assert_eq!(transactions.len(), 0);
    }

    #[test]
    fn mt_settled_by_a_late_result_is_not_sent_again() {
        let now = Instant::now();
        let mut transactions = MtTransactions::new(ANSWER_TIMEOUT);
        transactions.start(now, mt(1, 1, 1));
        let later = now + ANSWER_TIMEOUT;
        transactions.expire_unanswered(later);
        assert_eq!(
            answer(&mut transactions, later, 1, yes(None)),
            MtAnswerResult::Late(vec![accepted(1, 1)])
        );
        assert_eq!(
            transactions.start(later, mt(1, 1, 1)),
            accepted(1, 1),
            "the engine's word and ours have crossed"
        );
        transactions.expire_unanswered(later + LATE_ANSWER_TIMEOUT);
        assert!(transactions.delivered_late.is_empty());
    }

    #[test]
    fn lost_connection_makes_only_written_mts_uncertain() {
        let now = Instant::now();
        let mut transactions = MtTransactions::new(ANSWER_TIMEOUT);
        transactions.start(now, mt(1, 1, 1));
        transactions.enqueue_behind(mt(4, 1, 1));
        transactions.start(now, Mt { conn: 2, ..mt(2, 2, 1) });
        let doubt = |taken| Outcome::Unanswered { taken, known: Vec::new() };
        let connection_closed = transactions.connection_closed(Some(1));
        let expected = [
            MtStep::Finished(MessageId(1), doubt(Vec::new())),
            MtStep::Finished(MessageId(4), Outcome::NotSent),
        ];
        assert_eq!(connection_closed, expected);
        assert!(transactions.is_busy(&imsi(2)) && !transactions.is_busy(&imsi(1)));
        // An answer from another connection is ignored.
        assert_eq!(answer(&mut transactions, now, 2, yes(None)), MtAnswerResult::Unrelated);
        assert_eq!(transactions.connection_closed(None), [MtStep::Finished(MessageId(2), doubt(Vec::new()))]);
    }

    #[test]
    fn expired_entries_are_removed() {
        let now = Instant::now();
        let mut transactions = MtTransactions::new(ANSWER_TIMEOUT);
        for n in 0..100 {
            transactions.start(now, mt(u64::from(n), n, 1));
            answer(&mut transactions, now, n, yes(None));
        }
        transactions.expire_unanswered(now + LAST_ANSWER_LIFETIME);
        assert!(transactions.last_answers.is_empty() && transactions.cleanup_queue.is_empty());
    }
}
