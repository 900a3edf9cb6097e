//! The second queue: messages that were handed to us for handsets, one on its way to a subscriber at a time.
//!
//! An MSC says what became of an MT under the subscriber's IMSI; the reference in its answer is its own (3GPP TS 24.011
//! §8.2.3 as OsmoMSC has it). MSCs from 1.11.1 on give back the name under which the request came, so each request has a
//! name of its own, and an answer that names another is one too many. Older ones give back nothing, and their references say
//! nothing either: OsmoMSC takes the lowest that is free, which is 0 nearly always. Of theirs only that is one too many which
//! came when nothing had left us that it could be about.

use bytes::Bytes;
use gsup::Imsi;
use model::{ErrorClass, MessageId, Outcome, PeerMessageId};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// One connection over which handsets are reached.
pub(crate) type ConnId = u64;

/// A message for a handset, in the parts that the air takes.
#[derive(Debug)]
pub(crate) struct Mt {
    pub(crate) id: MessageId,
    pub(crate) imsi: Imsi,
    pub(crate) conn: ConnId,
    /// Every part's TPDU.
    pub(crate) parts: Vec<Bytes>,
    /// Parts that the handset has: the first to be sent is the one after these.
    pub(crate) done: usize,
    /// Another message for the subscriber waits.
    pub(crate) more: bool,
}

/// One request to be written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) conn: ConnId,
    pub(crate) imsi: Imsi,
    /// By which its answer may be known.
    pub(crate) tag: u32,
    pub(crate) tpdu: Bytes,
    /// More messages to send: the MSC is to keep the channel.
    pub(crate) more: bool,
}

/// An MSC's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) conn: ConnId,
    /// The name of the request, where the MSC gives it back.
    pub(crate) tag: Option<u32>,
    /// What kind of no, and its code.
    pub(crate) refused: Option<(ErrorClass, u32)>,
}

/// What follows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Write(Request),
    Ended(MessageId, Outcome),
}

/// What was done with an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It was awaited; this follows.
    Awaited(Vec<Next>),
    /// Its request had been given up.
    Late(Vec<Next>),
    /// It was answered before.
    Twice,
    /// It is no answer to anything of ours.
    NotOurs,
}

#[derive(Debug)]
struct OnItsWay {
    mt: Mt,
    tag: u32,
    /// The round in which it was written.
    round: u64,
    sent: Instant,
}

#[derive(Debug)]
struct Given {
    id: MessageId,
    tag: u32,
    conn: ConnId,
    /// With it the handset has all parts.
    parts: usize,
    last: bool,
    until: Instant,
}

#[derive(Debug)]
struct Answered {
    tag: u32,
    at: Instant,
}

/// How long the last answer of a subscriber's is remembered.
const REMEMBERED: Duration = Duration::from_secs(2);

/// How long an answer to what was given up is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

/// All messages that are on their way to handsets.
#[derive(Debug)]
pub(crate) struct MtBook {
    guard: Duration,
    next_tag: u32,
    /// Counts how often what was written has left.
    round: u64,
    on_their_way: FxHashMap<Imsi, OnItsWay>,
    /// Behind those: the engine sends one at a time, but one whose subscriber it does not know may meet another.
    waiting: FxHashMap<Imsi, VecDeque<Mt>>,
    /// Given up, and perhaps answered yet.
    given_up: FxHashMap<Imsi, Given>,
    answered: FxHashMap<Imsi, Answered>,
    forget: VecDeque<(Instant, Imsi)>,
    /// Messages whose late yes was told: the engine may have sent them once more before it heard of it.
    settled: FxHashMap<MessageId, Instant>,
}

fn ids(parts: usize) -> Vec<PeerMessageId> {
    vec![PeerMessageId::default(); parts]
}

impl MtBook {
    pub(crate) fn new(guard: Duration) -> Self {
        Self {
            guard,
            next_tag: 0,
            round: 0,
            on_their_way: FxHashMap::default(),
            waiting: FxHashMap::default(),
            given_up: FxHashMap::default(),
            answered: FxHashMap::default(),
            forget: VecDeque::new(),
            settled: FxHashMap::default(),
        }
    }

    /// How many subscribers have a message on its way.
    pub(crate) fn len(&self) -> usize {
        self.on_their_way.len()
    }

    /// What was written so far leaves us: answers may come.
    pub(crate) fn leave(&mut self) {
        self.round += 1;
    }

    /// A message is to go to its subscriber.
    pub(crate) fn begin(&mut self, now: Instant, mt: Mt) -> Next {
        if mt.done >= mt.parts.len() || self.settled.contains_key(&mt.id) {
            return Next::Ended(mt.id, Outcome::Accepted { ids: ids(mt.parts.len()) });
        }
        self.given_up.remove(&mt.imsi);
        self.write(now, mt)
    }

    /// Whether a message for the subscriber is on its way, so that another has to wait.
    pub(crate) fn is_busy(&self, imsi: &Imsi) -> bool {
        self.on_their_way.contains_key(imsi)
    }

    /// A message waits behind the one that is on its way.
    pub(crate) fn wait(&mut self, mt: Mt) {
        self.waiting.entry(mt.imsi).or_default().push_back(mt);
    }

    fn write(&mut self, now: Instant, mt: Mt) -> Next {
        // 24 bits: it is part of a name of at most 31 octets.
        self.next_tag = (self.next_tag + 1) & 0xFF_FFFF;
        let tag = self.next_tag;
        let more = mt.more || mt.done + 1 < mt.parts.len() || self.waiting.contains_key(&mt.imsi);
        let tpdu = mt.parts.get(mt.done).cloned().unwrap_or_default();
        let request = Request { conn: mt.conn, imsi: mt.imsi, tag, tpdu, more };
        self.on_their_way.insert(mt.imsi, OnItsWay { mt, tag, round: self.round, sent: now });
        Next::Write(request)
    }

    /// The next of those that wait for the subscriber, if any.
    fn follow(&mut self, now: Instant, imsi: &Imsi, next: &mut Vec<Next>) {
        let Some(waiting) = self.waiting.get_mut(imsi) else { return };
        let first = waiting.pop_front();
        if waiting.is_empty() {
            self.waiting.remove(imsi);
        }
        if let Some(mt) = first {
            next.push(self.write(now, mt));
        }
    }

    /// An MSC says what became of a subscriber's message.
    pub(crate) fn answer(&mut self, now: Instant, imsi: &Imsi, said: Said) -> Taken {
        let seen = self.answered.get(imsi);
        let Some(way) = self.on_their_way.get(imsi) else {
            return match seen {
                Some(seen)
                    if said.tag.is_none_or(|tag| tag == seen.tag) && !self.given_up.contains_key(imsi) =>
                {
                    Taken::Twice
                }
                _ => self.late(now, imsi, said),
            };
        };
        if way.mt.conn != said.conn {
            return Taken::NotOurs;
        }
        let other = match said.tag {
            Some(tag) => tag != way.tag,
            None => way.round == self.round,
        };
        if other {
            return Taken::Twice;
        }
        let Some(OnItsWay { mut mt, tag, .. }) = self.on_their_way.remove(imsi) else {
            return Taken::NotOurs;
        };
        self.answered.insert(*imsi, Answered { tag, at: now });
        self.forget.push_back((now + REMEMBERED, *imsi));
        let mut next = Vec::with_capacity(2);
        match said.refused {
            None => {
                mt.done += 1;
                if mt.done < mt.parts.len() {
                    next.push(self.write(now, mt));
                    return Taken::Awaited(next);
                }
                next.push(Next::Ended(mt.id, Outcome::Accepted { ids: ids(mt.parts.len()) }));
            }
            Some((class, code)) => {
                next.push(Next::Ended(mt.id, Outcome::Refused { class, code, taken: ids(mt.done) }));
            }
        }
        self.follow(now, imsi, &mut next);
        Taken::Awaited(next)
    }

    fn late(&mut self, now: Instant, imsi: &Imsi, said: Said) -> Taken {
        let Some(given) = self.given_up.get(imsi) else { return Taken::NotOurs };
        let same = given.conn == said.conn && said.tag.is_none_or(|tag| tag == given.tag);
        if !same || given.until < now {
            return Taken::NotOurs;
        }
        let Some(given) = self.given_up.remove(imsi) else { return Taken::NotOurs };
        // A late yes to the last part settles the doubt. Any other answer leaves it: the message is tried again anyway.
        match said.refused {
            None if given.last => {
                self.settled.insert(given.id, now + PATIENCE);
                Taken::Late(vec![Next::Ended(given.id, Outcome::Accepted { ids: ids(given.parts) })])
            }
            _ => Taken::Late(Vec::new()),
        }
    }

    /// Subscribers whose messages are given up next.
    pub(crate) fn silent(&self, now: Instant) -> Vec<Imsi> {
        let late = self.on_their_way.iter().filter(|(_, way)| way.sent + self.guard <= now);
        late.map(|(imsi, _)| *imsi).collect()
    }

    /// Gives up what was not answered in time, and what follows from that. To be called about every second.
    pub(crate) fn overdue(&mut self, now: Instant) -> Vec<Next> {
        let mut next = Vec::new();
        let mut given_up: Vec<OnItsWay> =
            self.on_their_way.extract_if(|_, way| way.sent + self.guard <= now).map(|(_, way)| way).collect();
        given_up.sort_unstable_by_key(|way| way.mt.id);
        for OnItsWay { mt, tag, .. } in given_up {
            let until = now + PATIENCE;
            let last = mt.done + 1 == mt.parts.len();
            let given = Given { id: mt.id, tag, conn: mt.conn, parts: mt.parts.len(), last, until };
            self.given_up.insert(mt.imsi, given);
            self.forget.push_back((until, mt.imsi));
            let outcome = Outcome::Unanswered { taken: ids(mt.done), known: Vec::new() };
            next.push(Next::Ended(mt.id, outcome));
            // What waits behind it must not overtake it.
            for mt in self.waiting.remove(&mt.imsi).into_iter().flatten() {
                next.push(Next::Ended(mt.id, Outcome::NotSent));
            }
        }
        self.tidy(now);
        next
    }

    fn tidy(&mut self, now: Instant) {
        self.settled.retain(|_, until| *until > now);
        // Two kinds of end stand in one row; whoever stands behind a later one is tidied up a little late.
        while self.forget.front().is_some_and(|(at, _)| *at <= now)
            && let Some((_, imsi)) = self.forget.pop_front()
        {
            if self.answered.get(&imsi).is_some_and(|seen| seen.at + REMEMBERED <= now) {
                self.answered.remove(&imsi);
            }
            if self.given_up.get(&imsi).is_some_and(|given| given.until <= now) {
                self.given_up.remove(&imsi);
            }
        }
    }

    /// A connection is gone: what was written to it is in doubt, what was not goes back to the first queue.
    pub(crate) fn gone(&mut self, conn: Option<ConnId>) -> Vec<Next> {
        let lost = |mt: &Mt| conn.is_none_or(|conn| mt.conn == conn);
        let mut next: Vec<(MessageId, Outcome)> = Vec::new();
        self.on_their_way.retain(|_, way| {
            let lost = lost(&way.mt);
            if lost {
                let taken = ids(way.mt.done);
                next.push((way.mt.id, Outcome::Unanswered { taken, known: Vec::new() }));
            }
            !lost
        });
        let on_their_way = &self.on_their_way;
        self.waiting.retain(|imsi, waiting| {
            let stays = on_their_way.contains_key(imsi);
            if !stays {
                next.extend(waiting.drain(..).map(|mt| (mt.id, Outcome::NotSent)));
            }
            stays
        });
        next.sort_unstable_by_key(|(id, _)| *id);
        next.into_iter().map(|(id, outcome)| Next::Ended(id, outcome)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUARD: Duration = Duration::from_secs(90);

    fn imsi(n: u32) -> Imsi {
        format!("00101{n:010}").parse().unwrap()
    }

    fn mt(id: u64, n: u32, parts: usize) -> Mt {
        let parts = (0..parts).map(|part| Bytes::from(vec![part as u8])).collect();
        Mt { id: MessageId(id), imsi: imsi(n), conn: 1, parts, done: 0, more: false }
    }

    fn tag(next: &Next) -> u32 {
        match next {
            Next::Write(request) => request.tag,
            Next::Ended(..) => panic!("{next:?}"),
        }
    }

    fn yes(tag: Option<u32>) -> Said {
        Said { conn: 1, tag, refused: None }
    }

    /// An answer to what has left.
    fn answer(book: &mut MtBook, now: Instant, n: u32, said: Said) -> Taken {
        book.leave();
        book.answer(now, &imsi(n), said)
    }

    fn accepted(id: u64, parts: usize) -> Next {
        Next::Ended(MessageId(id), Outcome::Accepted { ids: ids(parts) })
    }

    #[test]
    fn parts_go_one_after_the_other_with_more_to_come_on_all_but_the_last() {
        let now = Instant::now();
        let mut book = MtBook::new(GUARD);
        let first = book.begin(now, mt(1, 1, 3));
        assert!(matches!(&first, Next::Write(request) if request.more && request.tpdu[0] == 0));
        let Taken::Awaited(next) = answer(&mut book, now, 1, yes(None)) else { panic!() };
        assert!(matches!(&next[..], [Next::Write(request)] if request.more && request.tpdu[0] == 1));
        let Taken::Awaited(next) = answer(&mut book, now, 1, yes(None)) else { panic!() };
        assert!(matches!(&next[..], [Next::Write(request)] if !request.more && request.tpdu[0] == 2));
        assert_eq!(answer(&mut book, now, 1, yes(None)), Taken::Awaited(vec![accepted(1, 3)]));
        assert_eq!(book.len(), 0);
    }

    #[test]
    fn a_refused_part_says_how_many_the_handset_has() {
        let now = Instant::now();
        let mut book = MtBook::new(GUARD);
        book.begin(now, mt(1, 1, 3));
        answer(&mut book, now, 1, yes(None));
        let refused = Some((ErrorClass::MemoryFull, 22));
        let said = Said { refused, ..yes(None) };
        let outcome = Outcome::Refused { class: ErrorClass::MemoryFull, code: 22, taken: ids(1) };
        assert_eq!(answer(&mut book, now, 1, said), Taken::Awaited(vec![Next::Ended(MessageId(1), outcome)]));
        let again = book.begin(now, Mt { done: 1, ..mt(1, 1, 3) });
        assert!(matches!(&again, Next::Write(request) if request.tpdu[0] == 1));
    }

    #[test]
    fn an_answer_that_comes_twice_ends_nothing_else() {
        let now = Instant::now();
        let mut book = MtBook::new(GUARD);
        let first = tag(&book.begin(now, mt(1, 1, 1)));
        assert_eq!(answer(&mut book, now, 1, yes(Some(first))), Taken::Awaited(vec![accepted(1, 1)]));
        assert_eq!(answer(&mut book, now, 1, yes(Some(first))), Taken::Twice);
        let second = tag(&book.begin(now, mt(2, 1, 1)));
        // With a name it is known however late it comes.
        assert_eq!(answer(&mut book, now + GUARD / 2, 1, yes(Some(first))), Taken::Twice);
        assert_eq!(answer(&mut book, now, 1, yes(None)), Taken::Awaited(vec![accepted(2, 1)]));
        assert_ne!(first, second);
        assert_eq!(answer(&mut book, now, 2, yes(None)), Taken::NotOurs);
    }

    /// OsmoMSC's references are 0 nearly always, and a part follows another at once.
    #[test]
    fn without_a_name_an_answer_is_one_too_many_when_nothing_has_left() {
        let now = Instant::now();
        let mut book = MtBook::new(GUARD);
        book.begin(now, mt(1, 1, 2));
        assert!(matches!(answer(&mut book, now, 1, yes(None)), Taken::Awaited(_)));
        assert_eq!(book.answer(now, &imsi(1), yes(None)), Taken::Twice);
        assert_eq!(answer(&mut book, now, 1, yes(None)), Taken::Awaited(vec![accepted(1, 2)]));
        assert_eq!(book.answer(now, &imsi(1), yes(None)), Taken::Twice);
    }

    #[test]
    fn what_is_not_answered_in_time_is_given_up_and_a_late_yes_settles_it() {
        let now = Instant::now();
        let mut book = MtBook::new(GUARD);
        book.begin(now, mt(1, 1, 1));
        book.wait(mt(2, 1, 1));
        assert!(book.overdue(now + GUARD - Duration::from_millis(1)).is_empty());
        let later = now + GUARD;
        let doubt = Outcome::Unanswered { taken: Vec::new(), known: Vec::new() };
        let given = [Next::Ended(MessageId(1), doubt), Next::Ended(MessageId(2), Outcome::NotSent)];
        assert_eq!(book.overdue(later), given);
        assert_eq!(answer(&mut book, later, 1, yes(None)), Taken::Late(vec![accepted(1, 1)]));
        assert_eq!(answer(&mut book, later, 1, yes(None)), Taken::NotOurs);
        assert_eq!(book.len(), 0);
    }

    #[test]
    fn what_a_late_yes_has_settled_is_not_sent_again() {
        let now = Instant::now();
        let mut book = MtBook::new(GUARD);
        book.begin(now, mt(1, 1, 1));
        let later = now + GUARD;
        book.overdue(later);
        assert_eq!(answer(&mut book, later, 1, yes(None)), Taken::Late(vec![accepted(1, 1)]));
        assert_eq!(book.begin(later, mt(1, 1, 1)), accepted(1, 1), "the engine's word and ours have crossed");
        book.overdue(later + PATIENCE);
        assert!(book.settled.is_empty());
    }

    #[test]
    fn a_lost_connection_leaves_doubt_about_what_was_written_and_none_about_the_rest() {
        let now = Instant::now();
        let mut book = MtBook::new(GUARD);
        book.begin(now, mt(1, 1, 1));
        book.wait(mt(4, 1, 1));
        book.begin(now, Mt { conn: 2, ..mt(2, 2, 1) });
        let doubt = |taken| Outcome::Unanswered { taken, known: Vec::new() };
        let gone = book.gone(Some(1));
        let expected =
            [Next::Ended(MessageId(1), doubt(Vec::new())), Next::Ended(MessageId(4), Outcome::NotSent)];
        assert_eq!(gone, expected);
        assert!(book.is_busy(&imsi(2)) && !book.is_busy(&imsi(1)));
        // An answer of another connection is none.
        assert_eq!(answer(&mut book, now, 2, yes(None)), Taken::NotOurs);
        assert_eq!(book.gone(None), [Next::Ended(MessageId(2), doubt(Vec::new()))]);
    }

    #[test]
    fn nothing_is_remembered_for_ever() {
        let now = Instant::now();
        let mut book = MtBook::new(GUARD);
        for n in 0..100 {
            book.begin(now, mt(u64::from(n), n, 1));
            answer(&mut book, now, n, yes(None));
        }
        book.overdue(now + REMEMBERED);
        assert!(book.answered.is_empty() && book.forget.is_empty());
    }
}
