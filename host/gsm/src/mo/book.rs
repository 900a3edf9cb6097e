//! MOs that wait for the engine's word, and the recent ones, by which a repetition is known.

use super::{No, Submission, no, of_refusal};
use crate::mt::ConnId;
use engine::{Answer, Event, ReplyTo};
use gsup::{Imsi, RpCause};
use model::{AddressBytes, MessageId, PeerId, Refusal, SubmissionKey};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use tpdu::{Command, CommandType, FailureCause};

/// What is to be done with a submission.
#[derive(Debug)]
pub(crate) enum Asked {
    New { token: u64, key: SubmissionKey, repeated: bool },
    Refused(gsup::Message, No),
}

/// A request whose answer the engine has given.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) conn: ConnId,
    pub(crate) request: gsup::Message,
    pub(crate) said: Result<(), No>,
    /// What a status report about it says, where the handset asked for one by command.
    pub(crate) state: Option<(Command, engine::QueriedState)>,
}

#[derive(Debug)]
enum About {
    Submission(Named),
    Command(Command),
}

#[derive(Debug)]
struct Pending {
    conn: ConnId,
    request: gsup::Message,
    about: About,
}

/// A handset's own name for a message: IMSI, TP-MR, TP-DA.
type Named = (Imsi, u8, AddressBytes);

#[derive(Debug)]
struct Recent {
    digest: u64,
    until: Instant,
    id: Option<MessageId>,
}

/// MOs that wait for the engine's word, and the recent ones.
#[derive(Debug)]
pub(crate) struct MoBook {
    repetition: Duration,
    next: u64,
    pending: FxHashMap<u64, Pending>,
    recent: FxHashMap<Named, Recent>,
    ends: VecDeque<(Instant, Named)>,
    early: Vec<(ConnId, gsup::Message)>,
}

/// How many handsets may wait for an answer; a network that has more of them at a time has other worries.
const MOST: usize = 10_000;

impl MoBook {
    pub(crate) fn new(repetition: Duration) -> Self {
        Self {
            repetition,
            next: 0,
            pending: FxHashMap::default(),
            recent: FxHashMap::default(),
            ends: VecDeque::new(),
            early: Vec::new(),
        }
    }

    /// An MO came before we could ask the engine.
    pub(crate) fn early(&mut self, conn: ConnId, request: gsup::Message) {
        if self.early.len() < MOST {
            self.early.push((conn, request));
        }
    }

    pub(crate) fn take_early(&mut self) -> Vec<(ConnId, gsup::Message)> {
        std::mem::take(&mut self.early)
    }

    /// Names a submission to the engine. A repetition has the name of the first, so that it gets the first one's answer, and
    /// nothing is accepted twice; also where we have died in between.
    pub(crate) fn ask(
        &mut self,
        now: Instant,
        conn: ConnId,
        request: gsup::Message,
        submission: &Submission,
    ) -> Asked {
        if self.pending.len() >= MOST {
            return Asked::Refused(request, of_refusal(Refusal::QueueFull));
        }
        let named = (request.imsi, submission.named.0, submission.named.1.clone());
        let known =
            self.recent.get(&named).filter(|recent| recent.digest == submission.digest && recent.until > now);
        let repeated = known.is_some();
        if submission.reject_duplicates && known.is_some_and(|recent| recent.id.is_some()) {
            let why = "a duplicate that its handset does not want";
            return Asked::Refused(request, no(RpCause::REJECTED, FailureCause::DUPLICATE_REJECTED, why));
        }
        let mut octets = smallvec::SmallVec::from_slice(request.imsi.as_str().as_bytes());
        octets.extend(submission.digest.to_be_bytes());
        // How old a repetition may be is counted by the engine from the first one's acceptance, which is on disk. No time is
        // part of the name: after a crash nobody here knows when the first one came.
        let lifetime = Some(self.repetition);
        let key = SubmissionKey { octets, digest: submission.digest, required: false, lifetime };
        if !repeated {
            let until = now + self.repetition;
            let recent = Recent { digest: submission.digest, until, id: None };
            self.recent.insert(named.clone(), recent);
            self.ends.push_back((until, named.clone()));
        }
        let token = self.wait(conn, request, About::Submission(named));
        Asked::New { token, key, repeated }
    }

    fn wait(&mut self, conn: ConnId, request: gsup::Message, about: About) -> u64 {
        self.next += 1;
        self.pending.insert(self.next, Pending { conn, request, about });
        self.next
    }

    /// What a handset wants to be done with a message that it sent before (3GPP TS 23.040 §9.2.3.19).
    pub(crate) fn command(
        &mut self,
        conn: ConnId,
        request: gsup::Message,
        command: &Command,
        origin: PeerId,
        reply: impl Fn(u64) -> ReplyTo,
    ) -> Result<Event, (gsup::Message, No)> {
        let (_, _, value) = command.destination.to_smpp();
        let named = (request.imsi, command.message_number, AddressBytes::from_slice(&value));
        let found = self.recent.get(&named).and_then(|recent| recent.id);
        let Some(id) = found.filter(|_| self.pending.len() < MOST) else {
            return Err((request, of_refusal(Refusal::UnknownMessage)));
        };
        let event: fn(PeerId, MessageId, ReplyTo) -> Event = match command.kind {
            CommandType::ENQUIRY => |origin, id, reply| Event::Query { origin, id, source: None, reply },
            CommandType::DELETE => {
                |origin, id, reply| Event::Cancel { origin, id, source: None, destination: None, reply }
            }
            _ => {
                let why = "a command that is not carried out here";
                let failure = FailureCause::COMMAND_NOT_SUPPORTED;
                return Err((request, no(RpCause::NOT_IMPLEMENTED, failure, why)));
            }
        };
        let token = self.wait(conn, request, About::Command(command.clone()));
        Ok(event(origin, id, reply(token)))
    }

    /// The engine's word.
    pub(crate) fn answered(&mut self, token: u64, answer: &Answer) -> Option<Waiting> {
        let Pending { conn, request, about } = self.pending.remove(&token)?;
        let mut state = None;
        let said = match (answer, about) {
            (Answer::AcceptedMany(results), About::Submission(named)) => match results.first() {
                Some(Ok(id)) => {
                    if let Some(recent) = self.recent.get_mut(&named) {
                        recent.id = Some(*id);
                    }
                    Ok(())
                }
                Some(Err(refusal)) => {
                    self.recent.remove(&named);
                    Err(of_refusal(*refusal))
                }
                None => Err(of_refusal(Refusal::Internal)),
            },
            (Answer::Refused(refusal), About::Submission(named)) => {
                self.recent.remove(&named);
                Err(of_refusal(*refusal))
            }
            (Answer::Refused(refusal), About::Command(_)) => Err(of_refusal(*refusal)),
            (Answer::State(queried), About::Command(command)) => {
                state = Some((command, queried.clone()));
                Ok(())
            }
            (Answer::Done, About::Command(_)) => Ok(()),
            _ => Err(of_refusal(Refusal::Internal)),
        };
        Some(Waiting { conn, request, said, state })
    }

    /// A connection is gone: nobody waits for those answers any more.
    pub(crate) fn gone(&mut self, conn: ConnId) {
        self.pending.retain(|_, pending| pending.conn != conn);
        self.early.retain(|(other, _)| *other != conn);
    }

    /// All are gone.
    pub(crate) fn clear(&mut self) {
        self.pending.clear();
        self.early.clear();
    }

    /// Forgets what is no longer recent.
    pub(crate) fn tidy(&mut self, now: Instant) {
        while self.ends.front().is_some_and(|(until, _)| *until <= now)
            && let Some((_, named)) = self.ends.pop_front()
        {
            if self.recent.get(&named).is_some_and(|recent| recent.until <= now) {
                self.recent.remove(&named);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{request, submit, taken};
    use super::*;
    use model::LinkId;
    use tpdu::Submit;

    fn ask(book: &mut MoBook, now: Instant, submission: &Submission) -> Asked {
        book.ask(now, 1, request(&[]), submission)
    }

    #[test]
    fn a_repetition_has_the_key_of_the_first_and_an_unwanted_duplicate_is_refused() {
        let now = Instant::now();
        let mut book = MoBook::new(Duration::from_secs(600));
        let Asked::New { token, key: first, repeated: false } = ask(&mut book, now, &taken(&submit())) else {
            panic!()
        };
        let Asked::New { key, repeated: true, .. } = ask(&mut book, now, &taken(&submit())) else { panic!() };
        assert_eq!(first, key);
        // Another message under the same reference is another message.
        let other = Submit { protocol_id: 1, ..submit() };
        assert!(matches!(ask(&mut book, now, &taken(&other)), Asked::New { repeated: false, .. }));
        book = MoBook::new(Duration::from_secs(600));
        let wary = taken(&Submit { reject_duplicates: true, ..submit() });
        assert!(matches!(ask(&mut book, now, &wary), Asked::New { repeated: false, .. }));
        book.answered(token, &Answer::AcceptedMany(vec![Ok(MessageId(5))]));
        let Asked::Refused(_, no) = ask(&mut book, now, &wary) else { panic!() };
        assert_eq!(no.failure, FailureCause::DUPLICATE_REJECTED);
        let later = now + Duration::from_secs(600);
        book.tidy(later);
        assert!(book.recent.is_empty() && book.ends.is_empty());
        assert!(matches!(ask(&mut book, later, &wary), Asked::New { repeated: false, .. }));
    }

    #[test]
    fn a_repetition_that_sets_tp_rd_is_known_and_a_first_message_with_it_is_taken() {
        let now = Instant::now();
        let mut book = MoBook::new(Duration::from_secs(600));
        let wary = taken(&Submit { reject_duplicates: true, ..submit() });
        let Asked::New { token, key: first, repeated: false } = ask(&mut book, now, &taken(&submit())) else {
            panic!()
        };
        // Its first transmission has no answer yet: both get the same.
        let Asked::New { key, repeated: true, .. } = ask(&mut book, now, &wary) else { panic!() };
        assert_eq!(first, key);
        book.answered(token, &Answer::AcceptedMany(vec![Ok(MessageId(5))]));
        let Asked::Refused(_, no) = ask(&mut book, now, &wary) else { panic!() };
        assert_eq!(no.failure, FailureCause::DUPLICATE_REJECTED);
        // After a crash the engine knows it by its key, whenever it comes.
        let mut book = MoBook::new(Duration::from_secs(600));
        let later = now + Duration::from_secs(599);
        let Asked::New { key, repeated: false, .. } = ask(&mut book, later, &wary) else { panic!() };
        assert_eq!((&first, key.lifetime), (&key, Some(Duration::from_secs(600))));
    }

    #[test]
    fn a_command_takes_back_what_was_sent_and_nothing_else() {
        let now = Instant::now();
        let mut book = MoBook::new(Duration::from_secs(600));
        let Asked::New { token, .. } = ask(&mut book, now, &taken(&submit())) else { panic!() };
        book.answered(token, &Answer::AcceptedMany(vec![Ok(MessageId(5))])).unwrap();
        let command = Command {
            kind: CommandType::DELETE,
            message_number: 42,
            destination: tpdu::Address::international("4915112345"),
            ..Command::default()
        };
        let reply = |token| ReplyTo { link: LinkId(1), token };
        let event = book.command(1, request(&[]), &command, PeerId(3), reply).unwrap();
        assert!(matches!(event, Event::Cancel { id: MessageId(5), origin: PeerId(3), .. }));
        let other = Command { message_number: 43, ..command.clone() };
        let (_, no) = book.command(1, request(&[]), &other, PeerId(3), reply).unwrap_err();
        assert_eq!(no.failure, FailureCause::COMMAND_NOT_ACTIONED);
        let unknown = Command { kind: CommandType::ENABLE_REPORT, ..command };
        assert!(book.command(1, request(&[]), &unknown, PeerId(3), reply).is_err());
    }
}
