//! Request handling for one client, without I/O: converts requests to engine events, and the engine's answers to
//! replies.

use crate::accounts::{Account, Authorization, PermissionDenied, PoolAction};
use crate::replies;
use crate::server_state::{RedisSettings, Shared};
use engine::{EngineAnswer, Event, ReplyTo};
use model::{
    LinkId, NumberState, PoolAnswer, PoolName, PoolNumber, PoolOperation, PoolRequest, PoolSettings,
    Strategy, Timestamp,
};
use resp::{PoolRead, ReplyTicket, RespReply, RespRequest, Session};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Numbers per page of a long answer.
const PAGE_SIZE: u32 = PoolRequest::SCAN_LIMIT;

/// Maximum octets of unread answers before further requests wait. A client that does not read its lists costs at most
/// this plus one list.
const MAX_UNREAD_OCTETS: usize = 1 << 20;

/// A login to be verified; answer it with [`RequestHandler::finish_login`].
#[derive(Debug)]
pub(crate) struct Login {
    pub(crate) ticket: ReplyTicket,
    pub(crate) name: Vec<u8>,
    pub(crate) password: Vec<u8>,
}

/// The purpose of a query to the engine.
#[derive(Debug)]
enum PendingQuery {
    /// One operation.
    Operation(ReplyTicket),
    /// Consecutive operations of this many requests.
    Run(ReplyTicket, usize),
    /// Several operations of one request.
    Operations(ReplyTicket),
    Create(ReplyTicket),
    /// The state of a pool before its settings are changed.
    Change(ReplyTicket, PoolName, Option<Strategy>, Option<Duration>),
    Remove(ReplyTicket),
    Read(ReplyTicket, PoolRead),
    /// A page of the states, after those collected so far.
    States(ReplyTicket, PoolName, Vec<(PoolNumber, NumberState)>),
    /// A page of an `LRANGE`.
    Idle(ReplyTicket, PoolName, RangeQuery),
    Pools(ReplyTicket),
    KeysInSlot(ReplyTicket, u16),
    Info(ReplyTicket, Vec<String>),
}

/// A pending `LRANGE`.
#[derive(Debug)]
struct RangeQuery {
    /// As sent by the client; negative values count from the end.
    start: i64,
    stop: i64,
    /// The listed positions, once the total is known.
    positions: Option<std::ops::Range<usize>>,
    numbers: Vec<PoolNumber>,
}

impl RangeQuery {
    /// Position and count of the first page; empty if `start` counts from the end and the total is unknown.
    fn first_page(&self) -> (usize, usize) {
        let Ok(start) = usize::try_from(self.start) else { return (0, 0) };
        let most = usize::try_from(self.stop).map_or(usize::MAX, |stop| stop.saturating_add(1));
        (start, most.saturating_sub(start))
    }

    /// Adds a page. Returns position and count of the next one, if any.
    fn take(&mut self, part: Vec<PoolNumber>, total: usize) -> Option<(usize, usize)> {
        let position = |at: i64| match usize::try_from(at) {
            Ok(at) => Some(at),
            Err(_) => total.checked_sub(usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX)),
        };
        let known = self.positions.is_some() || self.start >= 0;
        let (start, stop) = (self.start, self.stop);
        let positions = self.positions.get_or_insert_with(|| {
            let end = position(stop).map_or(0, |stop| stop.saturating_add(1)).min(total);
            position(start).unwrap_or(0)..end
        });
        let ended = known && part.is_empty();
        self.numbers.extend(part);
        self.numbers.truncate(positions.len());
        let next = positions.start.saturating_add(self.numbers.len());
        (!ended && next < positions.end).then(|| (next, positions.end - next))
    }
}

/// Consecutive operations on one pool.
#[derive(Debug)]
struct OperationRun {
    pool: PoolName,
    first_ticket: ReplyTicket,
    operations: Vec<PoolOperation>,
}

pub(crate) struct RequestHandler {
    shared: Arc<Shared>,
    settings: Arc<RedisSettings>,
    pub(crate) session: Session,
    link: LinkId,
    /// `None` before the login.
    authorization: Option<Authorization>,
    /// Pending queries; the first one has the token `first_token`.
    pending: VecDeque<Option<PendingQuery>>,
    first_token: u64,
    /// Whether a request of several steps is pending, so that later requests wait.
    blocked: bool,
    events: Vec<Event>,
    run: Option<OperationRun>,
}

impl RequestHandler {
    pub(crate) fn new(
        shared: Arc<Shared>,
        settings: Arc<RedisSettings>,
        session: Session,
        link: LinkId,
    ) -> Self {
        let authorization = settings.accounts.is_empty().then(Authorization::open);
        Self {
            shared,
            settings,
            session,
            link,
            authorization,
            pending: VecDeque::new(),
            first_token: 0,
            blocked: false,
            events: Vec::new(),
            run: None,
        }
    }

    /// Converts requests to events, up to one that blocks later requests. Events before a login must be pushed before
    /// the login is verified.
    pub(crate) fn collect_events(&mut self) -> Option<Login> {
        let mut requests = 0;
        let mut login = None;
        while !self.blocked
            && login.is_none()
            && self.session.output().len() < MAX_UNREAD_OCTETS
            && let Some(event) = self.session.poll_event()
        {
            match event {
                resp::Event::Request { ticket, command, request } => {
                    requests += 1;
                    self.handle_request(ticket, command, request);
                }
                resp::Event::Authenticate { ticket, name, password } => {
                    login = Some(Login { ticket, name: name.into(), password: password.into() });
                }
                resp::Event::Reset => {
                    self.flush_run();
                    self.authorization = self.settings.accounts.is_empty().then(Authorization::open);
                }
            }
        }
        self.flush_run();
        if requests > 0 {
            self.shared.counts.requests.fetch_add(requests, Relaxed);
        }
        login
    }

    /// Takes the events for the engine.
    pub(crate) fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Finishes a login; `None` for a wrong name or password.
    pub(crate) fn finish_login(&mut self, login: &Login, account: Option<Arc<Account>>) {
        // Without accounts, `default` accepts any password, as in Redis without accounts.
        let accepted = account.is_some() || (self.settings.accounts.is_empty() && login.name == b"default");
        if let Some(account) = account {
            self.authorization = Some(Authorization::of(account));
        }
        self.session.finish_login(login.ticket, accepted);
    }

    /// Handles an answer of the engine.
    pub(crate) fn handle_answer(&mut self, token: u64, answer: EngineAnswer) {
        let index = token.checked_sub(self.first_token).and_then(|index| usize::try_from(index).ok());
        let Some(query) = index.and_then(|index| self.pending.get_mut(index)).and_then(Option::take) else {
            return;
        };
        while let Some(None) = self.pending.front() {
            self.pending.pop_front();
            self.first_token += 1;
        }
        let (ticket, reply) = match (query, answer) {
            (PendingQuery::Operation(ticket), EngineAnswer::Pool(PoolAnswer::Outcome(outcome))) => {
                (ticket, RespReply::Outcome(outcome))
            }
            (PendingQuery::Run(first_ticket, _), EngineAnswer::Pool(PoolAnswer::Outcomes(outcomes))) => {
                return self.session.answer_all(first_ticket, outcomes.into_iter().map(RespReply::Outcome));
            }
            (PendingQuery::Run(first_ticket, count), _) => {
                return self.session.answer_all(first_ticket, (0..count).map(|_| unexpected_answer()));
            }
            (PendingQuery::Operations(ticket), EngineAnswer::Pool(PoolAnswer::Outcomes(outcomes))) => {
                (ticket, RespReply::Outcomes(outcomes))
            }
            (PendingQuery::Change(ticket, pool, strategy, quarantine), EngineAnswer::Pool(answer)) => {
                self.blocked = false;
                match self.apply_settings(ticket, pool, (strategy, quarantine), &answer) {
                    Some(reply) => (ticket, reply),
                    None => return,
                }
            }
            (PendingQuery::States(ticket, pool, states), EngineAnswer::Pool(answer)) => {
                self.blocked = false;
                match self.append_states(ticket, pool, states, answer) {
                    Some(reply) => (ticket, reply),
                    None => return,
                }
            }
            (
                PendingQuery::Idle(ticket, pool, mut range),
                EngineAnswer::Pool(PoolAnswer::Idle { numbers, total }),
            ) => {
                self.blocked = false;
                if let Some(rest) = range.take(numbers, total) {
                    return self.next_idle(ticket, pool, range, rest);
                }
                (ticket, RespReply::Numbers(range.numbers))
            }
            (PendingQuery::Idle(ticket, ..), EngineAnswer::Pool(PoolAnswer::NoPool)) => {
                self.blocked = false;
                (ticket, RespReply::Numbers(Vec::new()))
            }
            (
                PendingQuery::Operation(ticket) | PendingQuery::Create(ticket),
                EngineAnswer::Pool(PoolAnswer::TooMany),
            ) => (ticket, RespReply::error("FAIL the pool limit is reached: remove pools first")),
            (PendingQuery::Create(ticket), EngineAnswer::Pool(PoolAnswer::Pool(_))) => {
                (ticket, RespReply::ok())
            }
            (PendingQuery::Remove(ticket), EngineAnswer::Pool(PoolAnswer::Removed)) => {
                (ticket, RespReply::Integer(1))
            }
            (PendingQuery::Remove(ticket), EngineAnswer::Pool(PoolAnswer::NoPool)) => {
                (ticket, RespReply::Integer(0))
            }
            (PendingQuery::Remove(ticket), EngineAnswer::Pool(PoolAnswer::NotEmpty)) => (
                ticket,
                RespReply::error("FAIL the pool has numbers: FORCE removes them, even if they are leased"),
            ),
            (PendingQuery::Read(ticket, read), EngineAnswer::Pool(answer)) => {
                (ticket, read_reply(&read, answer))
            }
            (PendingQuery::Pools(ticket), EngineAnswer::Pools(mut pools)) => {
                pools.retain(|pool| self.can_list(&pool.name));
                (
                    ticket,
                    RespReply::Array(pools.iter().map(|pool| RespReply::text(pool.name.as_str())).collect()),
                )
            }
            (PendingQuery::KeysInSlot(ticket, slot), EngineAnswer::Pools(mut pools)) => {
                pools.retain(|pool| self.can_list(&pool.name) && RespRequest::slot_of(&pool.name) == slot);
                let keys = |pool: &model::PoolSummary| {
                    i64::from(pool.counts.total() > 0) + i64::from(pool.counts.idle_up > 0)
                };
                (ticket, RespReply::Integer(pools.iter().map(keys).sum()))
            }
            (PendingQuery::Info(ticket, sections), EngineAnswer::Pools(mut pools)) => {
                pools.retain(|pool| self.can_list(&pool.name));
                let reply = replies::info_reply(
                    &sections,
                    &self.shared.server_info(),
                    self.shared.counts.state(&self.shared.connection_limiter),
                    &pools,
                );
                (ticket, reply)
            }
            (query, _) => {
                self.blocked &= !matches!(
                    query,
                    PendingQuery::Change(..) | PendingQuery::States(..) | PendingQuery::Idle(..)
                );
                (query.ticket(), unexpected_answer())
            }
        };
        self.session.answer(ticket, &reply);
    }

    /// Whether all requests are answered.
    pub(crate) fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.session.is_idle()
    }

    /// Whether the engine has requests of this client.
    pub(crate) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    fn can_list(&self, pool: &PoolName) -> bool {
        self.authorization.as_ref().is_some_and(|authorization| authorization.can_list(pool))
    }

    fn handle_request(&mut self, ticket: ReplyTicket, command: &'static str, request: RespRequest) {
        let action = match &request {
            RespRequest::Operation { operation, .. } => match operation {
                PoolOperation::Call(_) | PoolOperation::Hangup { .. } | PoolOperation::Renew { .. } => {
                    PoolAction::Lease
                }
                _ => PoolAction::Manage,
            },
            RespRequest::Operations { .. } | RespRequest::Create { .. } | RespRequest::Remove { .. } => {
                PoolAction::Manage
            }
            RespRequest::Read { .. }
            | RespRequest::Pools
            | RespRequest::KeysInSlot(_)
            | RespRequest::Info(_) => PoolAction::Read,
        };
        if let Some(denied) = self.check_permission(&request, action) {
            let reply = self.permission_error(denied, command);
            return self.session.answer(ticket, &reply);
        }
        if let Some(reply) = self.elsewhere(&request) {
            return self.session.answer(ticket, &reply);
        }
        match request {
            RespRequest::Operation { pool, operation } => self.append_operation(ticket, pool, operation),
            RespRequest::Operations { pool, operations } => {
                self.query_pool(pool, PoolRequest::Operations(operations), PendingQuery::Operations(ticket));
            }
            RespRequest::Create { pool, strategy: Some(strategy), quarantine: Some(quarantine) } => {
                let settings = PoolSettings { strategy, quarantine };
                self.query_pool(pool, PoolRequest::Configure(settings), PendingQuery::Create(ticket));
            }
            RespRequest::Create { pool, strategy, quarantine } => {
                let query = PendingQuery::Change(ticket, pool.clone(), strategy, quarantine);
                self.query_pool(pool, PoolRequest::Show, query);
                self.blocked = true;
            }
            RespRequest::Remove { pool, with_numbers } => {
                self.query_pool(pool, PoolRequest::Remove { with_numbers }, PendingQuery::Remove(ticket));
            }
            RespRequest::Read { pool, read: PoolRead::States } => {
                self.next_states(ticket, pool, Vec::new(), 0);
            }
            RespRequest::Read { pool, read: PoolRead::Idle { start, stop } } => {
                let range = RangeQuery { start, stop, positions: None, numbers: Vec::new() };
                let first = range.first_page();
                self.next_idle(ticket, pool, range, first);
            }
            RespRequest::Read { pool, read } => {
                let request = match &read {
                    PoolRead::State(number) | PoolRead::Show(Some(number)) => PoolRequest::Number(*number),
                    PoolRead::IdleCount | PoolRead::Idle { .. } => PoolRequest::Idle { skip: 0, most: 0 },
                    PoolRead::Count | PoolRead::Show(None) | PoolRead::States => PoolRequest::Show,
                };
                self.query_pool(pool, request, PendingQuery::Read(ticket, read));
            }
            RespRequest::Pools => self.query_pools(PendingQuery::Pools(ticket)),
            RespRequest::KeysInSlot(slot) => self.query_pools(PendingQuery::KeysInSlot(ticket, slot)),
            RespRequest::Info(sections) => self.query_pools(PendingQuery::Info(ticket, sections)),
        }
    }

    fn check_permission(&mut self, request: &RespRequest, action: PoolAction) -> Option<PermissionDenied> {
        // The session refuses requests before the login.
        let Some(authorization) = &mut self.authorization else { return Some(PermissionDenied::Command) };
        // Requests about no pool list only those that the account may see.
        pool_of(request).and_then(|pool| authorization.check(pool, action).err())
    }

    /// The error of a request for a pool of another partition. `MOVED` would be wrong: a slot does not decide where a pool is.
    fn elsewhere(&self, request: &RespRequest) -> Option<RespReply> {
        let pass_on = self.shared.registry.pass_on()?;
        let pool = pool_of(request)?;
        let partition = pass_on.pool_elsewhere(pool.as_str())?;
        let leader = pass_on.leader(partition);
        let leader = leader
            .map_or("which has no leader at the moment".to_owned(), |leader| format!("led by {leader}"));
        Some(RespReply::error(format!(
            "ERR the pool {pool} is in partition {partition} of the cluster, {leader}: use an account whose pools are all in that partition, or connect to the Redis listener there"
        )))
    }

    /// The error text matches Redis.
    fn permission_error(&mut self, denied: PermissionDenied, command: &str) -> RespReply {
        self.shared.counts.denied.fetch_add(1, Relaxed);
        match denied {
            PermissionDenied::Command => {
                let name = self.authorization.as_ref().map_or("default", |authorization| &*authorization.by);
                RespReply::error(format!(
                    "NOPERM User {name} has no permissions to run the '{command}' command"
                ))
            }
            PermissionDenied::Pool => RespReply::error("NOPERM No permissions to access a key"),
        }
    }

    /// Appends an operation; consecutive operations on one pool become one event.
    fn append_operation(&mut self, ticket: ReplyTicket, pool: PoolName, operation: PoolOperation) {
        if let Some(run) = &mut self.run {
            if run.pool == pool && run.first_ticket.after(run.operations.len()) == ticket {
                return run.operations.push(operation);
            }
            self.flush_run();
        }
        self.run = Some(OperationRun { pool, first_ticket: ticket, operations: vec![operation] });
    }

    fn flush_run(&mut self) {
        let Some(OperationRun { pool, first_ticket, mut operations }) = self.run.take() else { return };
        let count = operations.len();
        let (request, query) = match operations.pop() {
            Some(only) if count == 1 => (PoolRequest::Operation(only), PendingQuery::Operation(first_ticket)),
            Some(last) => {
                operations.push(last);
                (PoolRequest::Operations(operations), PendingQuery::Run(first_ticket, count))
            }
            None => return,
        };
        self.push_pool_event(pool, request, query);
    }

    fn query_pool(&mut self, pool: PoolName, request: PoolRequest, query: PendingQuery) {
        self.flush_run();
        self.push_pool_event(pool, request, query);
    }

    fn push_pool_event(&mut self, pool: PoolName, request: PoolRequest, query: PendingQuery) {
        let Some(authorization) = &self.authorization else { return };
        let by = authorization.by.clone();
        let reply = self.reply_to(query);
        self.events.push(Event::Pool { pool, request, by, reply });
    }

    fn query_pools(&mut self, query: PendingQuery) {
        self.flush_run();
        let reply = self.reply_to(query);
        self.events.push(Event::Pools { reply });
    }

    fn reply_to(&mut self, query: PendingQuery) -> ReplyTo {
        let token = self.first_token + self.pending.len() as u64;
        self.pending.push_back(Some(query));
        ReplyTo { link: self.link, token }
    }

    /// The second step of `POOL.CREATE`, with the current settings. `None` if a query is pending.
    fn apply_settings(
        &mut self,
        ticket: ReplyTicket,
        pool: PoolName,
        (strategy, quarantine): (Option<Strategy>, Option<Duration>),
        answer: &PoolAnswer,
    ) -> Option<RespReply> {
        let known = match answer {
            PoolAnswer::Pool(summary) => Some(summary.settings),
            _ => None,
        };
        let mut settings = known.unwrap_or_default();
        settings.strategy = strategy.unwrap_or(settings.strategy);
        settings.quarantine = quarantine.unwrap_or(settings.quarantine);
        if known == Some(settings) {
            return Some(RespReply::ok());
        }
        self.push_pool_event(pool, PoolRequest::Configure(settings), PendingQuery::Create(ticket));
        None
    }

    /// A page of `HGETALL`. `None` if the next page is pending.
    fn append_states(
        &mut self,
        ticket: ReplyTicket,
        pool: PoolName,
        mut states: Vec<(PoolNumber, NumberState)>,
        answer: PoolAnswer,
    ) -> Option<RespReply> {
        if let PoolAnswer::Numbers { numbers, next } = answer {
            states.extend(numbers.iter().map(|standing| (standing.number, standing.row.state)));
            if let Some(from) = next {
                self.next_states(ticket, pool, states, from);
                return None;
            }
        }
        Some(RespReply::States(states))
    }

    /// Queries the next page of an `LRANGE`: at most `most` numbers from a position, limited to one page.
    fn next_idle(
        &mut self,
        ticket: ReplyTicket,
        pool: PoolName,
        range: RangeQuery,
        (skip, most): (usize, usize),
    ) {
        let request = PoolRequest::Idle { skip, most: most.min(PAGE_SIZE as usize) };
        self.query_pool(pool.clone(), request, PendingQuery::Idle(ticket, pool, range));
        self.blocked = true;
    }

    fn next_states(
        &mut self,
        ticket: ReplyTicket,
        pool: PoolName,
        states: Vec<(PoolNumber, NumberState)>,
        from: u32,
    ) {
        let request = PoolRequest::Numbers { from, most: PAGE_SIZE, state: None, prefix: None };
        self.query_pool(pool.clone(), request, PendingQuery::States(ticket, pool, states));
        self.blocked = true;
    }
}

impl PendingQuery {
    fn ticket(&self) -> ReplyTicket {
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

/// The pool that a request is about.
fn pool_of(request: &RespRequest) -> Option<&PoolName> {
    match request {
        RespRequest::Operation { pool, .. }
        | RespRequest::Operations { pool, .. }
        | RespRequest::Create { pool, .. }
        | RespRequest::Remove { pool, .. }
        | RespRequest::Read { pool, .. } => Some(pool),
        RespRequest::Pools | RespRequest::KeysInSlot(_) | RespRequest::Info(_) => None,
    }
}

/// The engine gave an answer of the wrong kind.
fn unexpected_answer() -> RespReply {
    RespReply::error("ERR internal error: unexpected answer")
}

fn read_reply(read: &PoolRead, answer: PoolAnswer) -> RespReply {
    let count = |count: usize| RespReply::Integer(i64::try_from(count).unwrap_or(i64::MAX));
    match (read, answer) {
        (PoolRead::State(_), PoolAnswer::Number(standing)) => {
            standing.map_or(RespReply::Null, |standing| RespReply::State(standing.row.state))
        }
        (PoolRead::Show(Some(_)), PoolAnswer::Number(standing)) => {
            standing.map_or(RespReply::Null, |standing| replies::number_reply(&standing, Timestamp::now()))
        }
        (PoolRead::Show(None), PoolAnswer::Pool(pool)) => replies::pool_reply(&pool),
        (PoolRead::Count, PoolAnswer::Pool(pool)) => count(pool.counts.total()),
        (PoolRead::IdleCount, PoolAnswer::Idle { total, .. }) => count(total),
        (PoolRead::State(_) | PoolRead::Show(_), PoolAnswer::NoPool) => RespReply::Null,
        (PoolRead::Count | PoolRead::IdleCount, PoolAnswer::NoPool) => RespReply::Integer(0),
        _ => unexpected_answer(),
    }
}

#[cfg(test)]
mod tests;
