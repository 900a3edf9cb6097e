//! A reference model of a pool: the state table, the idle list, and the visible state.

use super::table::{PoolEvent, transition};
use super::{PoolReply, PoolRequest};
use anyhow::{Context, Result, ensure};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A number of the pool.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Number {
    state: &'static str,
    holder: String,
    calls: u64,
    /// The ticket of the current lease, once it is known.
    ticket: Option<u64>,
    /// Whether the lease has an end.
    leased: bool,
}

/// The reply that the pool must give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PredictedReply {
    /// Whether the request succeeds.
    pub done: bool,
    /// The number that a call gets; `None` if the pool may choose.
    pub number: Option<String>,
    /// The reason of a refusal, in the words of the HTTP API.
    pub reason: Option<&'static str>,
    /// The resulting state of the number.
    pub state: &'static str,
}

impl PredictedReply {
    fn refused(reason: &'static str, state: &'static str) -> Self {
        Self { done: false, number: None, reason: Some(reason), state }
    }
}

/// The visible state of a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberView {
    /// State, for example `idle+up`.
    pub state: String,
    /// The holder.
    pub holder: String,
    /// Calls since it was added.
    pub calls: u64,
    /// Whether its lease has an end.
    pub leased: bool,
}

/// The visible state of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PoolView {
    /// All numbers.
    pub numbers: BTreeMap<String, NumberView>,
    /// Available numbers; in the order of leasing, if there is one.
    pub idle: Vec<String>,
}

/// An entry of the history: event, number, resulting state, author.
pub type JournalEntry = (String, String, String, Option<String>);

/// A pool.
#[derive(Debug, Clone, Default)]
pub struct PoolModel {
    numbers: BTreeMap<String, Number>,
    idle: VecDeque<String>,
    /// Whether a call gets the number that has been idle longest; otherwise, any available number.
    in_order: bool,
    /// All changes, in order.
    journal: Vec<JournalEntry>,
    /// All known tickets.
    tickets: BTreeSet<u64>,
}

impl PoolModel {
    /// An empty pool.
    pub fn new(in_order: bool) -> Self {
        Self { in_order, ..Self::default() }
    }

    fn state(&self, number: &str) -> &'static str {
        self.numbers.get(number).map_or("none", |known| known.state)
    }

    /// Numbers in a state.
    pub fn numbers_in_state(&self, state: &str) -> Vec<String> {
        let fits = self.numbers.iter().filter(|(_, known)| known.state == state);
        fits.map(|(number, _)| number.clone()).collect()
    }

    /// Available numbers, longest idle first.
    pub fn idle(&self) -> impl Iterator<Item = &String> {
        self.idle.iter()
    }

    /// The ticket of a held number, if it is known.
    pub fn ticket(&self, number: &str) -> Option<u64> {
        self.numbers.get(number).and_then(|known| known.ticket)
    }

    /// All changes.
    pub fn journal(&self) -> &[JournalEntry] {
        &self.journal
    }

    fn step(&mut self, event: PoolEvent, number: &str, journalled: &str, by: Option<&str>) -> PredictedReply {
        let before = self.state(number);
        let cell = transition(before, event);
        if !cell.ok {
            return PredictedReply::refused(
                if before == "none" { "not-in-pool" } else { "wrong-state" },
                before,
            );
        }
        if cell.leaves {
            self.idle.retain(|idle| idle != number);
        }
        if cell.joins {
            self.idle.push_back(number.to_owned());
        }
        if cell.state == "none" {
            self.numbers.remove(number);
        } else if let Some(known) = self.numbers.get_mut(number) {
            known.state = cell.state;
            if event == PoolEvent::Hangup {
                (known.holder, known.ticket, known.leased) = (String::new(), None, false);
            }
        } else {
            let known =
                Number { state: cell.state, holder: String::new(), calls: 0, ticket: None, leased: false };
            self.numbers.insert(number.to_owned(), known);
        }
        if cell.state != before {
            self.enter(journalled, number, cell.state, by);
        }
        PredictedReply { done: true, number: None, reason: None, state: cell.state }
    }

    fn enter(&mut self, event: &str, number: &str, state: &str, by: Option<&str>) {
        self.journal.push((event.to_owned(), number.to_owned(), state.to_owned(), by.map(str::to_owned)));
    }

    /// Applies a request and returns the expected reply. Where the pool may choose a number, `chosen` is its choice.
    pub fn apply(&mut self, request: &PoolRequest, by: &str, chosen: Option<&str>) -> PredictedReply {
        match request {
            PoolRequest::Event(event, number) => self.step(*event, number, event.name(), Some(by)),
            PoolRequest::Call { number, holder, lease, .. } => {
                let free = if self.in_order { self.idle.front().map(String::as_str) } else { chosen };
                let Some(number) = number.as_deref().or(free).map(str::to_owned) else {
                    return PredictedReply::refused(self.none_reason(), "none");
                };
                let mut predicted = self.step(PoolEvent::Call, &number, "call", Some(by));
                if let Some(known) = self.numbers.get_mut(&number).filter(|_| predicted.done) {
                    known.holder.clone_from(holder);
                    known.calls += 1;
                    known.leased = lease.is_some();
                    predicted.number = Some(number);
                }
                predicted
            }
            PoolRequest::HangupOf(number, ticket) => match self.refusal(number, *ticket) {
                Some(refused) => refused,
                None => self.step(PoolEvent::Hangup, number, "hangup", Some(by)),
            },
            PoolRequest::Renew(number, ticket, lease) => {
                if let Some(refused) = self.refusal(number, *ticket) {
                    return refused;
                }
                let state = self.state(number);
                if let Some(known) = self.numbers.get_mut(number) {
                    known.leased = lease.is_some();
                }
                self.enter("renew", number, state, Some(by));
                PredictedReply { done: true, number: None, reason: None, state }
            }
        }
    }

    fn refusal(&self, number: &str, ticket: u64) -> Option<PredictedReply> {
        let state = self.state(number);
        match state {
            "none" => Some(PredictedReply::refused("not-in-pool", state)),
            "busy+up" | "busy+down" => {
                let ours = self.ticket(number) == Some(ticket);
                (!ours).then(|| PredictedReply::refused("other-ticket", state))
            }
            _ => Some(PredictedReply::refused("wrong-state", state)),
        }
    }

    fn none_reason(&self) -> &'static str {
        let any = |state| self.numbers.values().any(|known| known.state == state);
        match (self.numbers.is_empty(), any("busy+up")) {
            (true, _) => "empty",
            (_, true) => "all-busy",
            _ => "all-down",
        }
    }

    /// Applies the end of a lease.
    pub fn expire_lease(&mut self, number: &str) {
        self.step(PoolEvent::Hangup, number, "lapse", None);
    }

    /// Applies a request and compares the reply.
    ///
    /// # Errors
    /// If the reply differs from the expected one.
    pub fn check(&mut self, request: &PoolRequest, by: &str, reply: &PoolReply) -> Result<()> {
        let idle: Vec<_> = self.idle.iter().cloned().collect();
        let chosen = reply.number.as_deref();
        let predicted = self.apply(request, by, chosen);
        let words = || format!("{request:?} by {by}: reply {reply:?}, predicted {predicted:?}");
        ensure!(reply.done == predicted.done, words());
        if let (PoolRequest::Call { number: None, .. }, false, Some(chosen)) =
            (request, self.in_order, chosen)
        {
            ensure!(idle.iter().any(|idle| idle == chosen), "{}: not idle and up", words());
        }
        if let PoolRequest::Call { number: None, .. } = request
            && !reply.done
        {
            ensure!(idle.is_empty(), "{}: idle are {idle:?}", words());
        }
        if let PoolRequest::Call { .. } = request {
            ensure!(reply.number == predicted.number, words());
        }
        if let Some(reason) = &reply.reason {
            ensure!(Some(reason.as_str()) == predicted.reason, words());
        }
        if let Some(state) = reply.state.as_deref().filter(|_| reply.done) {
            ensure!(state == predicted.state, words());
        }
        if let (PoolRequest::Call { .. }, Some(ticket), Some(number)) =
            (request, reply.ticket, &predicted.number)
        {
            self.ticketed(number, ticket).with_context(words)?;
        }
        Ok(())
    }

    /// Records the ticket of a held number.
    ///
    /// # Errors
    /// If another lease had this ticket.
    pub fn ticketed(&mut self, number: &str, ticket: u64) -> Result<()> {
        let known = self.numbers.get_mut(number).context("a ticket for a number that is not in the pool")?;
        if known.ticket == Some(ticket) {
            return Ok(());
        }
        ensure!(known.ticket.is_none(), "the ticket of {number} was {:?} and is {ticket}", known.ticket);
        known.ticket = Some(ticket);
        ensure!(self.tickets.insert(ticket), "the ticket {ticket} of {number} had been another holding's");
        Ok(())
    }

    /// The expected visible state.
    pub fn view(&self) -> PoolView {
        let seen = |known: &Number| NumberView {
            state: known.state.to_owned(),
            holder: known.holder.clone(),
            calls: known.calls,
            leased: known.leased,
        };
        PoolView {
            numbers: self.numbers.iter().map(|(number, known)| (number.clone(), seen(known))).collect(),
            idle: self.idle.iter().cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(model: &mut PoolModel, event: PoolEvent, number: &str) -> PredictedReply {
        model.apply(&PoolRequest::Event(event, number.to_owned()), "me", None)
    }

    #[test]
    fn first_in_first_out() {
        let mut model = PoolModel::new(true);
        assert_eq!(model.apply(&PoolRequest::call(None), "me", None).reason, Some("empty"));
        for number in ["1", "2"] {
            assert!(event(&mut model, PoolEvent::Add, number).done);
        }
        assert_eq!(model.apply(&PoolRequest::call(None), "me", None).reason, Some("all-down"));
        for number in ["2", "1"] {
            assert!(event(&mut model, PoolEvent::Reg, number).done);
        }
        assert_eq!(model.apply(&PoolRequest::call(None), "me", None).number.as_deref(), Some("2"));
        assert!(event(&mut model, PoolEvent::Hangup, "2").done);
        assert_eq!(model.apply(&PoolRequest::call(None), "me", None).number.as_deref(), Some("1"));
        assert_eq!(model.apply(&PoolRequest::call(None), "me", None).number.as_deref(), Some("2"));
        assert_eq!(model.apply(&PoolRequest::call(None), "me", None).reason, Some("all-busy"));
    }

    #[test]
    fn a_wrong_reply_is_detected() {
        let mut model = PoolModel::new(true);
        event(&mut model, PoolEvent::Add, "1");
        event(&mut model, PoolEvent::Reg, "1");
        let reply =
            |number: &str| PoolReply { done: true, number: Some(number.to_owned()), ..PoolReply::default() };
        assert!(model.clone().check(&PoolRequest::call(None), "me", &reply("2")).is_err());
        assert!(model.clone().check(&PoolRequest::call(None), "me", &PoolReply::default()).is_err());
        model.check(&PoolRequest::call(None), "me", &reply("1")).unwrap();
        assert!(model.check(&PoolRequest::call(None), "me", &reply("1")).is_err(), "leased twice");
    }
}
