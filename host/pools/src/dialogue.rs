//! What one client asks and is told, without a socket: requests become the engine's events, its answers become replies.

use crate::accounts::{Account, Denied, Permit, Right};
use crate::door::{Shared, wall};
use crate::show;
use engine::{Answer, Event, ReplyTo};
use model::{
    LinkId, NumberState, PoolAnswer, PoolName, PoolNumber, PoolOperation, PoolRequest, PoolSettings, Strategy,
};
use resp::{Read, Reply, Request, Session, Ticket};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Numbers of one part of a long answer.
const PART: u32 = PoolRequest::MOST_LOOKED_AT;

/// Octets that may wait for a client to take them before another request of its is looked at: who asks for lists and does not
/// read them costs so much, and one list.
const UNREAD: usize = 1 << 20;

/// A client wants to be somebody. To be answered by [`Dialogue::judged`].
#[derive(Debug)]
pub(crate) struct Login {
    pub(crate) ticket: Ticket,
    pub(crate) name: Vec<u8>,
    pub(crate) password: Vec<u8>,
}

/// What a question to the engine is for.
#[derive(Debug)]
enum Asked {
    /// One operation.
    Operation(Ticket),
    /// Operations of so many requests, that follow each other.
    Run(Ticket, usize),
    /// Operations of one request.
    Operations(Ticket),
    Create(Ticket),
    /// How the pool stands that is to be changed by what is said.
    Change(Ticket, PoolName, Option<Strategy>, Option<Duration>),
    Remove(Ticket),
    Read(Ticket, Read),
    /// A part of the states; those that came before.
    States(Ticket, PoolName, Vec<(PoolNumber, NumberState)>),
    /// A part of an `LRANGE`.
    Idle(Ticket, PoolName, Listing),
    Pools(Ticket),
    KeysInSlot(Ticket, u16),
    Info(Ticket, Vec<String>),
}

/// An `LRANGE` under way.
#[derive(Debug)]
struct Listing {
    /// As the client said; a negative one counts from the last.
    start: i64,
    stop: i64,
    /// The places that are listed, once it is known how many there are.
    places: Option<std::ops::Range<usize>>,
    numbers: Vec<PoolNumber>,
}

impl Listing {
    /// How many numbers are asked for first: none where `start` counts from the last, and it is not known which that is.
    fn first(&self) -> (usize, usize) {
        let Ok(start) = usize::try_from(self.start) else { return (0, 0) };
        let most = usize::try_from(self.stop).map_or(usize::MAX, |stop| stop.saturating_add(1));
        (start, most.saturating_sub(start))
    }

    /// Takes a part; gives which numbers are still to be asked for.
    fn take(&mut self, part: Vec<PoolNumber>, total: usize) -> Option<(usize, usize)> {
        let place = |at: i64| match usize::try_from(at) {
            Ok(at) => Some(at),
            Err(_) => total.checked_sub(usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX)),
        };
        let known = self.places.is_some() || self.start >= 0;
        let (start, stop) = (self.start, self.stop);
        let places = self.places.get_or_insert_with(|| {
            let end = place(stop).map_or(0, |stop| stop.saturating_add(1)).min(total);
            place(start).unwrap_or(0)..end
        });
        let ended = known && part.is_empty();
        self.numbers.extend(part);
        self.numbers.truncate(places.len());
        let next = places.start.saturating_add(self.numbers.len());
        (!ended && next < places.end).then(|| (next, places.end - next))
    }
}

/// Operations on one pool that came one right after the other.
#[derive(Debug)]
struct Run {
    pool: PoolName,
    first: Ticket,
    operations: Vec<PoolOperation>,
}

pub(crate) struct Dialogue {
    shared: Arc<Shared>,
    pub(crate) session: Session,
    link: LinkId,
    /// `None`: has not said who it is.
    permit: Option<Permit>,
    /// Questions without an answer; the first has the token `first`.
    asked: VecDeque<Option<Asked>>,
    first: u64,
    /// A request of several steps is under way, and what came after it must wait for its end.
    held: bool,
    events: Vec<Event>,
    run: Option<Run>,
}

impl Dialogue {
    pub(crate) fn new(shared: Arc<Shared>, session: Session, link: LinkId) -> Self {
        let permit = shared.accounts.is_empty().then(Permit::open);
        Self {
            shared,
            session,
            link,
            permit,
            asked: VecDeque::new(),
            first: 0,
            held: false,
            events: Vec::new(),
            run: None,
        }
    }

    /// Turns requests into events, up to one that others must wait for. What is there before a login must be handed over
    /// before it is judged.
    pub(crate) fn collect(&mut self) -> Option<Login> {
        let mut requests = 0;
        let mut login = None;
        while !self.held
            && login.is_none()
            && self.session.output().len() < UNREAD
            && let Some(event) = self.session.poll_event()
        {
            match event {
                resp::Event::Request { ticket, command, request } => {
                    requests += 1;
                    self.request(ticket, command, request);
                }
                resp::Event::Authenticate { ticket, name, password } => {
                    login = Some(Login { ticket, name: name.into(), password: password.into() });
                }
                resp::Event::Forgotten => {
                    self.end_run();
                    self.permit = self.shared.accounts.is_empty().then(Permit::open);
                }
            }
        }
        self.end_run();
        if requests > 0 {
            self.shared.counts.requests.fetch_add(requests, Relaxed);
        }
        login
    }

    /// What is to be handed to the core.
    pub(crate) fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Says whose connection it is; `None`: nobody's, name or password are wrong.
    pub(crate) fn judged(&mut self, login: &Login, account: Option<Arc<Account>>) {
        // Without accounts there is one that everybody has, as in a Redis without any.
        let right = account.is_some() || (self.shared.accounts.is_empty() && login.name == b"default");
        if let Some(account) = account {
            self.permit = Some(Permit::of(account));
        }
        self.session.judged(login.ticket, right);
    }

    /// Takes an answer of the engine's.
    pub(crate) fn answered(&mut self, token: u64, answer: Answer) {
        let place = token.checked_sub(self.first).and_then(|place| usize::try_from(place).ok());
        let Some(asked) = place.and_then(|place| self.asked.get_mut(place)).and_then(Option::take) else {
            return;
        };
        while let Some(None) = self.asked.front() {
            self.asked.pop_front();
            self.first += 1;
        }
        let (ticket, reply) = match (asked, answer) {
            (Asked::Operation(ticket), Answer::Pool(PoolAnswer::Outcome(outcome))) => {
                (ticket, Reply::Outcome(outcome))
            }
            (Asked::Run(first, _), Answer::Pool(PoolAnswer::Outcomes(outcomes))) => {
                return self.session.answer_all(first, outcomes.into_iter().map(Reply::Outcome));
            }
            (Asked::Run(first, count), _) => {
                return self.session.answer_all(first, (0..count).map(|_| unexpected()));
            }
            (Asked::Operations(ticket), Answer::Pool(PoolAnswer::Outcomes(outcomes))) => {
                (ticket, Reply::Outcomes(outcomes))
            }
            (Asked::Change(ticket, pool, strategy, quarantine), Answer::Pool(answer)) => {
                self.held = false;
                match self.change(ticket, pool, (strategy, quarantine), &answer) {
                    Some(reply) => (ticket, reply),
                    None => return,
                }
            }
            (Asked::States(ticket, pool, states), Answer::Pool(answer)) => {
                self.held = false;
                match self.states(ticket, pool, states, answer) {
                    Some(reply) => (ticket, reply),
                    None => return,
                }
            }
            (Asked::Idle(ticket, pool, mut listing), Answer::Pool(PoolAnswer::Idle { numbers, total })) => {
                self.held = false;
                if let Some(rest) = listing.take(numbers, total) {
                    return self.next_idle(ticket, pool, listing, rest);
                }
                (ticket, Reply::Numbers(listing.numbers))
            }
            (Asked::Idle(ticket, ..), Answer::Pool(PoolAnswer::NoPool)) => {
                self.held = false;
                (ticket, Reply::Numbers(Vec::new()))
            }
            (Asked::Operation(ticket) | Asked::Create(ticket), Answer::Pool(PoolAnswer::TooMany)) => {
                (ticket, Reply::error("FAIL the appliance has as many pools as it takes: remove some first"))
            }
            (Asked::Create(ticket), Answer::Pool(PoolAnswer::Pool(_))) => (ticket, Reply::ok()),
            (Asked::Remove(ticket), Answer::Pool(PoolAnswer::Removed)) => (ticket, Reply::Integer(1)),
            (Asked::Remove(ticket), Answer::Pool(PoolAnswer::NoPool)) => (ticket, Reply::Integer(0)),
            (Asked::Remove(ticket), Answer::Pool(PoolAnswer::NotEmpty)) => (
                ticket,
                Reply::error("FAIL the pool has numbers: with FORCE they go with it, whoever has them"),
            ),
            (Asked::Read(ticket, read), Answer::Pool(answer)) => (ticket, told(&read, answer)),
            (Asked::Pools(ticket), Answer::Pools(mut pools)) => {
                pools.retain(|pool| self.lists(&pool.name));
                (ticket, Reply::Array(pools.iter().map(|pool| Reply::text(pool.name.as_str())).collect()))
            }
            (Asked::KeysInSlot(ticket, slot), Answer::Pools(mut pools)) => {
                pools.retain(|pool| self.lists(&pool.name) && Request::slot_of(&pool.name) == slot);
                let keys = |pool: &model::PoolSummary| {
                    i64::from(pool.counts.total() > 0) + i64::from(pool.counts.idle_up > 0)
                };
                (ticket, Reply::Integer(pools.iter().map(keys).sum()))
            }
            (Asked::Info(ticket, sections), Answer::Pools(mut pools)) => {
                pools.retain(|pool| self.lists(&pool.name));
                let reply = show::info(
                    &sections,
                    &self.shared.site(),
                    self.shared.counts.state(&self.shared.places),
                    &pools,
                );
                (ticket, reply)
            }
            (asked, _) => {
                self.held &= !matches!(asked, Asked::Change(..) | Asked::States(..) | Asked::Idle(..));
                (asked.ticket(), unexpected())
            }
        };
        self.session.answer(ticket, &reply);
    }

    /// Whether all that came is answered.
    pub(crate) fn is_idle(&self) -> bool {
        self.asked.is_empty() && self.session.is_idle()
    }

    fn lists(&self, pool: &PoolName) -> bool {
        self.permit.as_ref().is_some_and(|permit| permit.lists(pool))
    }

    fn request(&mut self, ticket: Ticket, command: &'static str, request: Request) {
        let right = match &request {
            Request::Operation { operation, .. } => match operation {
                PoolOperation::Call(_) | PoolOperation::Hangup { .. } | PoolOperation::Renew { .. } => {
                    Right::Call
                }
                _ => Right::Manage,
            },
            Request::Operations { .. } | Request::Create { .. } | Request::Remove { .. } => Right::Manage,
            Request::Read { .. } | Request::Pools | Request::KeysInSlot(_) | Request::Info(_) => Right::Read,
        };
        if let Some(denied) = self.denied(&request, right) {
            let reply = self.refusal(denied, command);
            return self.session.answer(ticket, &reply);
        }
        match request {
            Request::Operation { pool, operation } => self.operation(ticket, pool, operation),
            Request::Operations { pool, operations } => {
                self.ask(pool, PoolRequest::DoAll(operations), Asked::Operations(ticket));
            }
            Request::Create { pool, strategy: Some(strategy), quarantine: Some(quarantine) } => {
                let settings = PoolSettings { strategy, quarantine };
                self.ask(pool, PoolRequest::Configure(settings), Asked::Create(ticket));
            }
            Request::Create { pool, strategy, quarantine } => {
                let asked = Asked::Change(ticket, pool.clone(), strategy, quarantine);
                self.ask(pool, PoolRequest::Show, asked);
                self.held = true;
            }
            Request::Remove { pool, with_numbers } => {
                self.ask(pool, PoolRequest::Remove { with_numbers }, Asked::Remove(ticket));
            }
            Request::Read { pool, read: Read::States } => self.next_states(ticket, pool, Vec::new(), 0),
            Request::Read { pool, read: Read::Idle { start, stop } } => {
                let listing = Listing { start, stop, places: None, numbers: Vec::new() };
                let first = listing.first();
                self.next_idle(ticket, pool, listing, first);
            }
            Request::Read { pool, read } => {
                let request = match &read {
                    Read::State(number) | Read::Show(Some(number)) => PoolRequest::Number(*number),
                    Read::IdleCount | Read::Idle { .. } => PoolRequest::Idle { skip: 0, most: 0 },
                    Read::Count | Read::Show(None) | Read::States => PoolRequest::Show,
                };
                self.ask(pool, request, Asked::Read(ticket, read));
            }
            Request::Pools => self.ask_all(Asked::Pools(ticket)),
            Request::KeysInSlot(slot) => self.ask_all(Asked::KeysInSlot(ticket, slot)),
            Request::Info(sections) => self.ask_all(Asked::Info(ticket, sections)),
        }
    }

    fn denied(&mut self, request: &Request, right: Right) -> Option<Denied> {
        // The session lets nobody ask who has not said who they are.
        let Some(permit) = &mut self.permit else { return Some(Denied::Command) };
        match request {
            Request::Operation { pool, .. }
            | Request::Operations { pool, .. }
            | Request::Create { pool, .. }
            | Request::Remove { pool, .. }
            | Request::Read { pool, .. } => permit.check(pool, right).err(),
            // They tell of the pools that the account may see, of which there may be none.
            Request::Pools | Request::KeysInSlot(_) | Request::Info(_) => None,
        }
    }

    /// In the words of Redis.
    fn refusal(&mut self, denied: Denied, command: &str) -> Reply {
        self.shared.counts.denied.fetch_add(1, Relaxed);
        match denied {
            Denied::Command => {
                let name = self.permit.as_ref().map_or("default", |permit| &*permit.by);
                Reply::error(format!("NOPERM User {name} has no permissions to run the '{command}' command"))
            }
            Denied::Pool => Reply::error("NOPERM No permissions to access a key"),
        }
    }

    /// Operations on one pool that follow each other go as one.
    fn operation(&mut self, ticket: Ticket, pool: PoolName, operation: PoolOperation) {
        if let Some(run) = &mut self.run {
            if run.pool == pool && run.first.after(run.operations.len()) == ticket {
                return run.operations.push(operation);
            }
            self.end_run();
        }
        self.run = Some(Run { pool, first: ticket, operations: vec![operation] });
    }

    fn end_run(&mut self) {
        let Some(Run { pool, first, mut operations }) = self.run.take() else { return };
        let count = operations.len();
        let (request, asked) = match operations.pop() {
            Some(only) if count == 1 => (PoolRequest::Do(only), Asked::Operation(first)),
            Some(last) => {
                operations.push(last);
                (PoolRequest::DoAll(operations), Asked::Run(first, count))
            }
            None => return,
        };
        self.push(pool, request, asked);
    }

    fn ask(&mut self, pool: PoolName, request: PoolRequest, asked: Asked) {
        self.end_run();
        self.push(pool, request, asked);
    }

    fn push(&mut self, pool: PoolName, request: PoolRequest, asked: Asked) {
        let Some(permit) = &self.permit else { return };
        let by = permit.by.clone();
        let reply = self.reply_to(asked);
        self.events.push(Event::Pool { pool, request, by, reply });
    }

    fn ask_all(&mut self, asked: Asked) {
        self.end_run();
        let reply = self.reply_to(asked);
        self.events.push(Event::Pools { reply });
    }

    fn reply_to(&mut self, asked: Asked) -> ReplyTo {
        let token = self.first + self.asked.len() as u64;
        self.asked.push_back(Some(asked));
        ReplyTo { link: self.link, token }
    }

    /// The second step of `POOL.CREATE`, once it is known how the pool stands. `None`: a question is under way.
    fn change(
        &mut self,
        ticket: Ticket,
        pool: PoolName,
        (strategy, quarantine): (Option<Strategy>, Option<Duration>),
        answer: &PoolAnswer,
    ) -> Option<Reply> {
        let known = match answer {
            PoolAnswer::Pool(summary) => Some(summary.settings),
            _ => None,
        };
        let mut settings = known.unwrap_or_default();
        settings.strategy = strategy.unwrap_or(settings.strategy);
        settings.quarantine = quarantine.unwrap_or(settings.quarantine);
        if known == Some(settings) {
            return Some(Reply::ok());
        }
        self.push(pool, PoolRequest::Configure(settings), Asked::Create(ticket));
        None
    }

    /// A part of `HGETALL`. `None`: another part is under way.
    fn states(
        &mut self,
        ticket: Ticket,
        pool: PoolName,
        mut states: Vec<(PoolNumber, NumberState)>,
        answer: PoolAnswer,
    ) -> Option<Reply> {
        if let PoolAnswer::Numbers { numbers, next } = answer {
            states.extend(numbers.iter().map(|standing| (standing.number, standing.row.state)));
            if let Some(from) = next {
                self.next_states(ticket, pool, states, from);
                return None;
            }
        }
        Some(Reply::States(states))
    }

    /// Asks for the next part of an `LRANGE`: so many numbers from a place on, and no more than one part.
    fn next_idle(&mut self, ticket: Ticket, pool: PoolName, listing: Listing, (skip, most): (usize, usize)) {
        let request = PoolRequest::Idle { skip, most: most.min(PART as usize) };
        self.ask(pool.clone(), request, Asked::Idle(ticket, pool, listing));
        self.held = true;
    }

    fn next_states(
        &mut self,
        ticket: Ticket,
        pool: PoolName,
        states: Vec<(PoolNumber, NumberState)>,
        from: u32,
    ) {
        let request = PoolRequest::Numbers { from, most: PART, state: None, prefix: None };
        self.ask(pool.clone(), request, Asked::States(ticket, pool, states));
        self.held = true;
    }
}

impl Asked {
    fn ticket(&self) -> Ticket {
        match self {
            Self::Operation(ticket)
            | Self::Run(ticket, _)
            | Self::Operations(ticket)
            | Self::Create(ticket)
            | Self::Change(ticket, ..)
            | Self::Remove(ticket)
            | Self::Read(ticket, _)
            | Self::States(ticket, ..)
            | Self::Idle(ticket, ..)
            | Self::Pools(ticket)
            | Self::KeysInSlot(ticket, _)
            | Self::Info(ticket, _) => *ticket,
        }
    }
}

/// The engine answers each question in one way; this is none of them.
fn unexpected() -> Reply {
    Reply::error("ERR internal error: an answer to something else")
}

fn told(read: &Read, answer: PoolAnswer) -> Reply {
    let count = |count: usize| Reply::Integer(i64::try_from(count).unwrap_or(i64::MAX));
    match (read, answer) {
        (Read::State(_), PoolAnswer::Number(standing)) => {
            standing.map_or(Reply::Null, |standing| Reply::State(standing.row.state))
        }
        (Read::Show(Some(_)), PoolAnswer::Number(standing)) => {
            standing.map_or(Reply::Null, |standing| show::number(&standing, wall()))
        }
        (Read::Show(None), PoolAnswer::Pool(pool)) => show::pool(&pool),
        (Read::Count, PoolAnswer::Pool(pool)) => count(pool.counts.total()),
        (Read::IdleCount, PoolAnswer::Idle { total, .. }) => count(total),
        (Read::State(_) | Read::Show(_), PoolAnswer::NoPool) => Reply::Null,
        (Read::Count | Read::IdleCount, PoolAnswer::NoPool) => Reply::Integer(0),
        _ => unexpected(),
    }
}

#[cfg(test)]
mod tests;
