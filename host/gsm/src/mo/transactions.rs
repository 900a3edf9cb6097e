//! MO transactions: requests that wait for the engine's answer, and recent ones, used to recognise repetitions.

use super::{MoRefusal, MoSubmission, mo_refusal, refusal_for};
use crate::mt::ConnId;
use engine::{EngineAnswer, Event, ReplyTo};
use gsup::{GsupImsi, RpCause};
use model::{AddressBytes, IdempotencyKey, MessageId, PeerId, Refusal};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use tpdu::{Command, CommandType, FailureCause};

/// The result of [`MoTransactions::begin`].
#[derive(Debug)]
pub(crate) enum MoAdmission {
    Submit { token: u64, key: IdempotencyKey, repeated: bool },
    Refused(gsup::GsupMessage, MoRefusal),
}

/// A request that the engine has answered.
#[derive(Debug)]
pub(crate) struct MoReply {
    pub(crate) conn: ConnId,
    pub(crate) request: gsup::GsupMessage,
    pub(crate) result: Result<(), MoRefusal>,
    /// The queried state for a status report, if the handset requested one by command.
    pub(crate) state: Option<(Command, engine::QueriedState)>,
}

#[derive(Debug)]
enum PendingKind {
    Submission(HandsetMessageKey),
    Command(Command),
}

#[derive(Debug)]
struct Pending {
    conn: ConnId,
    request: gsup::GsupMessage,
    kind: PendingKind,
}

/// The handset's reference for a message: IMSI, TP-MR, TP-DA.
type HandsetMessageKey = (GsupImsi, u8, AddressBytes);

#[derive(Debug)]
struct RecentMo {
    digest: u64,
    expires_at: Instant,
    id: Option<MessageId>,
}

/// Pending and recent MO requests.
#[derive(Debug)]
pub(crate) struct MoTransactions {
    repetition_window: Duration,
    next: u64,
    pending: FxHashMap<u64, Pending>,
    recent: FxHashMap<HandsetMessageKey, RecentMo>,
    expiry_queue: VecDeque<(Instant, HandsetMessageKey)>,
    early_requests: Vec<(ConnId, gsup::GsupMessage)>,
}

/// Maximum number of pending requests.
const MAX_PENDING: usize = 10_000;

impl MoTransactions {
    pub(crate) fn new(repetition_window: Duration) -> Self {
        Self {
            repetition_window,
            next: 0,
            pending: FxHashMap::default(),
            recent: FxHashMap::default(),
            expiry_queue: VecDeque::new(),
            early_requests: Vec::new(),
        }
    }

    /// Queues an MO that arrived before the link was up.
    pub(crate) fn queue_before_link_up(&mut self, conn: ConnId, request: gsup::GsupMessage) {
        if self.early_requests.len() < MAX_PENDING {
            self.early_requests.push((conn, request));
        }
    }

    pub(crate) fn take_queued(&mut self) -> Vec<(ConnId, gsup::GsupMessage)> {
        std::mem::take(&mut self.early_requests)
    }

    /// Begins a submission and returns its idempotency key. A repetition has the key of the first request: it gets the
    /// same answer and is accepted once, even after a crash.
    pub(crate) fn begin(
        &mut self,
        now: Instant,
        conn: ConnId,
        request: gsup::GsupMessage,
        submission: &MoSubmission,
    ) -> MoAdmission {
        if self.pending.len() >= MAX_PENDING {
            return MoAdmission::Refused(request, refusal_for(Refusal::QueueFull));
        }
        let handset_key = (request.imsi, submission.handset_key.0, submission.handset_key.1.clone());
        let previous = self
            .recent
            .get(&handset_key)
            .filter(|recent| recent.digest == submission.digest && recent.expires_at > now);
        let repeated = previous.is_some();
        if submission.reject_duplicates && previous.is_some_and(|recent| recent.id.is_some()) {
            let reason = "duplicate with TP-RD set";
            return MoAdmission::Refused(
                request,
                mo_refusal(RpCause::REJECTED, FailureCause::DUPLICATE_REJECTED, reason),
            );
        }
        let mut octets = smallvec::SmallVec::from_slice(request.imsi.as_str().as_bytes());
        octets.extend(submission.digest.to_be_bytes());
        // The engine measures the age of a repetition from the stored acceptance. The key contains no time, since the
        // time of the first request is unknown after a crash.
        let lifetime = Some(self.repetition_window);
        let key = IdempotencyKey { octets, digest: submission.digest, required: false, lifetime };
        if !repeated {
            let expires_at = now + self.repetition_window;
            let recent = RecentMo { digest: submission.digest, expires_at, id: None };
            self.recent.insert(handset_key.clone(), recent);
            self.expiry_queue.push_back((expires_at, handset_key.clone()));
        }
        let token = self.insert_pending(conn, request, PendingKind::Submission(handset_key));
        MoAdmission::Submit { token, key, repeated }
    }

    fn insert_pending(&mut self, conn: ConnId, request: gsup::GsupMessage, kind: PendingKind) -> u64 {
        self.next += 1;
        self.pending.insert(self.next, Pending { conn, request, kind });
        self.next
    }

    /// Begins a command about an earlier message (3GPP TS 23.040 §9.2.3.19).
    pub(crate) fn begin_command(
        &mut self,
        conn: ConnId,
        request: gsup::GsupMessage,
        command: &Command,
        origin: PeerId,
        reply: impl Fn(u64) -> ReplyTo,
    ) -> Result<Event, (gsup::GsupMessage, MoRefusal)> {
        let (_, _, destination) = command.destination.to_smpp();
        let handset_key = (request.imsi, command.message_number, AddressBytes::from_slice(&destination));
        let found = self.recent.get(&handset_key).and_then(|recent| recent.id);
        let Some(id) = found.filter(|_| self.pending.len() < MAX_PENDING) else {
            return Err((request, refusal_for(Refusal::UnknownMessage)));
        };
        let event: fn(PeerId, MessageId, ReplyTo) -> Event = match command.kind {
            CommandType::ENQUIRY => |origin, id, reply| Event::Query { origin, id, source: None, reply },
            CommandType::DELETE => {
                |origin, id, reply| Event::Cancel { origin, id, source: None, destination: None, reply }
            }
            _ => {
                let reason = "unsupported command";
                let failure = FailureCause::COMMAND_NOT_SUPPORTED;
                return Err((request, mo_refusal(RpCause::NOT_IMPLEMENTED, failure, reason)));
            }
        };
        let token = self.insert_pending(conn, request, PendingKind::Command(command.clone()));
        Ok(event(origin, id, reply(token)))
    }

    /// Completes a request with the engine's answer.
    pub(crate) fn complete(&mut self, token: u64, answer: &EngineAnswer) -> Option<MoReply> {
        let Pending { conn, request, kind } = self.pending.remove(&token)?;
        let mut state = None;
        let result = match (answer, kind) {
            (EngineAnswer::AcceptedMany(results), PendingKind::Submission(handset_key)) => {
                match results.first() {
                    Some(Ok(id)) => {
                        if let Some(recent) = self.recent.get_mut(&handset_key) {
                            recent.id = Some(*id);
                        }
                        Ok(())
                    }
                    Some(Err(refusal)) => {
                        self.recent.remove(&handset_key);
                        Err(refusal_for(*refusal))
                    }
                    None => Err(refusal_for(Refusal::Internal)),
                }
            }
            (EngineAnswer::Refused(refusal), PendingKind::Submission(handset_key)) => {
                self.recent.remove(&handset_key);
                Err(refusal_for(*refusal))
            }
            (EngineAnswer::Refused(refusal), PendingKind::Command(_)) => Err(refusal_for(*refusal)),
            (EngineAnswer::State(queried), PendingKind::Command(command)) => {
                state = Some((command, queried.clone()));
                Ok(())
            }
            (EngineAnswer::Done, PendingKind::Command(_)) => Ok(()),
            _ => Err(refusal_for(Refusal::Internal)),
        };
        Some(MoReply { conn, request, result, state })
    }

    /// Drops the requests of a closed connection.
    pub(crate) fn drop_connection(&mut self, conn: ConnId) {
        self.pending.retain(|_, pending| pending.conn != conn);
        self.early_requests.retain(|(other, _)| *other != conn);
    }

    /// Drops all requests.
    pub(crate) fn drop_all(&mut self) {
        self.pending.clear();
        self.early_requests.clear();
    }

    /// Removes recent requests whose repetition window has passed.
    pub(crate) fn remove_expired(&mut self, now: Instant) {
        while self.expiry_queue.front().is_some_and(|(expires_at, _)| *expires_at <= now)
            && let Some((_, handset_key)) = self.expiry_queue.pop_front()
        {
            if self.recent.get(&handset_key).is_some_and(|recent| recent.expires_at <= now) {
                self.recent.remove(&handset_key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{accepted_submission, request, submit};
    use super::*;
    use model::LinkId;
    use tpdu::Submit;

    fn begin(transactions: &mut MoTransactions, now: Instant, submission: &MoSubmission) -> MoAdmission {
        transactions.begin(now, 1, request(&[]), submission)
    }

    #[test]
    fn repetition_reuses_the_key_and_tp_rd_refuses_duplicates() {
        let now = Instant::now();
        let mut transactions = MoTransactions::new(Duration::from_secs(600));
        let MoAdmission::Submit { token, key: first, repeated: false } =
            begin(&mut transactions, now, &accepted_submission(&submit()))
        else {
            panic!()
        };
        let MoAdmission::Submit { key, repeated: true, .. } =
            begin(&mut transactions, now, &accepted_submission(&submit()))
        else {
            panic!()
        };
        assert_eq!(first, key);
        // Another message with the same reference is not a repetition.
        let other = Submit { protocol_id: 1, ..submit() };
        assert!(matches!(
            begin(&mut transactions, now, &accepted_submission(&other)),
            MoAdmission::Submit { repeated: false, .. }
        ));
        transactions = MoTransactions::new(Duration::from_secs(600));
        let no_duplicates = accepted_submission(&Submit { reject_duplicates: true, ..submit() });
        assert!(matches!(
            begin(&mut transactions, now, &no_duplicates),
            MoAdmission::Submit { repeated: false, .. }
        ));
        transactions.complete(token, &EngineAnswer::AcceptedMany(vec![Ok(MessageId(5))]));
        let MoAdmission::Refused(_, mo_refusal) = begin(&mut transactions, now, &no_duplicates) else {
            panic!()
        };
        assert_eq!(mo_refusal.failure, FailureCause::DUPLICATE_REJECTED);
        let later = now + Duration::from_secs(600);
        transactions.remove_expired(later);
        assert!(transactions.recent.is_empty() && transactions.expiry_queue.is_empty());
        assert!(matches!(
            begin(&mut transactions, later, &no_duplicates),
            MoAdmission::Submit { repeated: false, .. }
        ));
    }

    #[test]
    fn repetition_with_tp_rd_is_recognised() {
        let now = Instant::now();
        let mut transactions = MoTransactions::new(Duration::from_secs(600));
        let no_duplicates = accepted_submission(&Submit { reject_duplicates: true, ..submit() });
        let MoAdmission::Submit { token, key: first, repeated: false } =
            begin(&mut transactions, now, &accepted_submission(&submit()))
        else {
            panic!()
        };
        // The first request has no answer yet: both get the same one.
        let MoAdmission::Submit { key, repeated: true, .. } = begin(&mut transactions, now, &no_duplicates)
        else {
            panic!()
        };
        assert_eq!(first, key);
        transactions.complete(token, &EngineAnswer::AcceptedMany(vec![Ok(MessageId(5))]));
        let MoAdmission::Refused(_, mo_refusal) = begin(&mut transactions, now, &no_duplicates) else {
            panic!()
        };
        assert_eq!(mo_refusal.failure, FailureCause::DUPLICATE_REJECTED);
        // After a crash, the engine recognises it by its key.
        let mut transactions = MoTransactions::new(Duration::from_secs(600));
        let later = now + Duration::from_secs(599);
        let MoAdmission::Submit { key, repeated: false, .. } =
            begin(&mut transactions, later, &no_duplicates)
        else {
            panic!()
        };
        assert_eq!((&first, key.lifetime), (&key, Some(Duration::from_secs(600))));
    }

    #[test]
    fn delete_command_cancels_only_its_own_message() {
        let now = Instant::now();
        let mut transactions = MoTransactions::new(Duration::from_secs(600));
        let MoAdmission::Submit { token, .. } =
            begin(&mut transactions, now, &accepted_submission(&submit()))
        else {
            panic!()
        };
        transactions.complete(token, &EngineAnswer::AcceptedMany(vec![Ok(MessageId(5))])).unwrap();
        let command = Command {
            kind: CommandType::DELETE,
            message_number: 42,
            destination: tpdu::TpAddress::international("4915112345"),
            ..Command::default()
        };
        let reply = |token| ReplyTo { link: LinkId(1), token };
        let event = transactions.begin_command(1, request(&[]), &command, PeerId(3), reply).unwrap();
        assert!(matches!(event, Event::Cancel { id: MessageId(5), origin: PeerId(3), .. }));
        let other = Command { message_number: 43, ..command.clone() };
        let (_, mo_refusal) =
            transactions.begin_command(1, request(&[]), &other, PeerId(3), reply).unwrap_err();
        assert_eq!(mo_refusal.failure, FailureCause::COMMAND_NOT_ACTIONED);
        let unknown = Command { kind: CommandType::ENABLE_REPORT, ..command };
        assert!(transactions.begin_command(1, request(&[]), &unknown, PeerId(3), reply).is_err());
    }
}
