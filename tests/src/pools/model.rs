//! A pool as it must be: the table, a list, and what is to be seen of them.

use super::table::{Event, look_up};
use super::{Told, Wish};
use anyhow::{Context, Result, ensure};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A number of the pool.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Number {
    state: &'static str,
    holder: String,
    calls: u64,
    /// The name of its holding, once somebody was told.
    ticket: Option<u64>,
    /// Whether the holding ends by itself some day.
    leased: bool,
}

/// What the pool must say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Predicted {
    /// Whether it is done.
    pub done: bool,
    /// Which number a call gets; `None` where the pool may choose.
    pub number: Option<String>,
    /// Why it is not done, in the words of the HTTP API.
    pub reason: Option<&'static str>,
    /// The number's state after it.
    pub state: &'static str,
}

impl Predicted {
    fn refused(reason: &'static str, state: &'static str) -> Self {
        Self { done: false, number: None, reason: Some(reason), state }
    }
}

/// What is to be seen of a number from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Such as `idle+up`.
    pub state: String,
    /// Who has it.
    pub holder: String,
    /// Calls since it is in the pool.
    pub calls: u64,
    /// Whether its lease has an end.
    pub leased: bool,
}

/// What is to be seen of a pool from outside.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct View {
    /// All numbers.
    pub numbers: BTreeMap<String, Seen>,
    /// Those that are to be had, in the order in which they are given, where there is one.
    pub idle: Vec<String>,
}

/// An entry of the history: event, number, its state after that, by whom.
pub type Entry = (String, String, String, Option<String>);

/// A pool.
#[derive(Debug, Clone, Default)]
pub struct Model {
    numbers: BTreeMap<String, Number>,
    idle: VecDeque<String>,
    /// Whether a call gets the number that has been idle longest; otherwise, any that is idle and up.
    in_order: bool,
    /// Everything that has changed, in order.
    journal: Vec<Entry>,
    /// Every ticket that was ever told.
    tickets: BTreeSet<u64>,
}

impl Model {
    /// An empty pool.
    pub fn new(in_order: bool) -> Self {
        Self { in_order, ..Self::default() }
    }

    fn state(&self, number: &str) -> &'static str {
        self.numbers.get(number).map_or("none", |known| known.state)
    }

    /// Numbers in a state.
    pub fn in_state(&self, state: &str) -> Vec<String> {
        let fits = self.numbers.iter().filter(|(_, known)| known.state == state);
        fits.map(|(number, _)| number.clone()).collect()
    }

    /// Those that are to be had, longest idle first.
    pub fn idle(&self) -> impl Iterator<Item = &String> {
        self.idle.iter()
    }

    /// The ticket under which a number is held, as far as it was told.
    pub fn ticket(&self, number: &str) -> Option<u64> {
        self.numbers.get(number).and_then(|known| known.ticket)
    }

    /// Everything that has changed.
    pub fn journal(&self) -> &[Entry] {
        &self.journal
    }

    fn step(&mut self, event: Event, number: &str, journalled: &str, by: Option<&str>) -> Predicted {
        let before = self.state(number);
        let cell = look_up(before, event);
        if !cell.ok {
            return Predicted::refused(if before == "none" { "not-in-pool" } else { "wrong-state" }, before);
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
            if event == Event::Hangup {
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
        Predicted { done: true, number: None, reason: None, state: cell.state }
    }

    fn enter(&mut self, event: &str, number: &str, state: &str, by: Option<&str>) {
        self.journal.push((event.to_owned(), number.to_owned(), state.to_owned(), by.map(str::to_owned)));
    }

    /// Does it, and tells what the pool must say. Where the pool may choose, `chosen` is what it chose.
    pub fn apply(&mut self, wish: &Wish, by: &str, chosen: Option<&str>) -> Predicted {
        match wish {
            Wish::Event(event, number) => self.step(*event, number, event.name(), Some(by)),
            Wish::Call { number, holder, lease, .. } => {
                let free = if self.in_order { self.idle.front().map(String::as_str) } else { chosen };
                let Some(number) = number.as_deref().or(free).map(str::to_owned) else {
                    return Predicted::refused(self.why_none(), "none");
                };
                let mut predicted = self.step(Event::Call, &number, "call", Some(by));
                if let Some(known) = self.numbers.get_mut(&number).filter(|_| predicted.done) {
                    known.holder.clone_from(holder);
                    known.calls += 1;
                    known.leased = lease.is_some();
                    predicted.number = Some(number);
                }
                predicted
            }
            Wish::HangupOf(number, ticket) => match self.refusal(number, *ticket) {
                Some(refused) => refused,
                None => self.step(Event::Hangup, number, "hangup", Some(by)),
            },
            Wish::Renew(number, ticket, lease) => {
                if let Some(refused) = self.refusal(number, *ticket) {
                    return refused;
                }
                let state = self.state(number);
                if let Some(known) = self.numbers.get_mut(number) {
                    known.leased = lease.is_some();
                }
                self.enter("renew", number, state, Some(by));
                Predicted { done: true, number: None, reason: None, state }
            }
        }
    }

    fn refusal(&self, number: &str, ticket: u64) -> Option<Predicted> {
        let state = self.state(number);
        match state {
            "none" => Some(Predicted::refused("not-in-pool", state)),
            "busy+up" | "busy+down" => {
                let ours = self.ticket(number) == Some(ticket);
                (!ours).then(|| Predicted::refused("other-ticket", state))
            }
            _ => Some(Predicted::refused("wrong-state", state)),
        }
    }

    fn why_none(&self) -> &'static str {
        let any = |state| self.numbers.values().any(|known| known.state == state);
        match (self.numbers.is_empty(), any("busy+up")) {
            (true, _) => "empty",
            (_, true) => "all-busy",
            _ => "all-down",
        }
    }

    /// The lease of a number has ended.
    pub fn lapse(&mut self, number: &str) {
        self.step(Event::Hangup, number, "lapse", None);
    }

    /// Does it, and compares with what the pool said.
    ///
    /// # Errors
    /// If the pool said anything else than it must.
    pub fn check(&mut self, wish: &Wish, by: &str, told: &Told) -> Result<()> {
        let idle: Vec<_> = self.idle.iter().cloned().collect();
        let chosen = told.number.as_deref();
        let predicted = self.apply(wish, by, chosen);
        let words = || format!("{wish:?} by {by}: told {told:?}, predicted {predicted:?}");
        ensure!(told.done == predicted.done, words());
        if let (Wish::Call { number: None, .. }, false, Some(chosen)) = (wish, self.in_order, chosen) {
            ensure!(idle.iter().any(|idle| idle == chosen), "{}: not idle and up", words());
        }
        if let Wish::Call { number: None, .. } = wish
            && !told.done
        {
            ensure!(idle.is_empty(), "{}: idle are {idle:?}", words());
        }
        if let Wish::Call { .. } = wish {
            ensure!(told.number == predicted.number, words());
        }
        if let Some(reason) = &told.reason {
            ensure!(Some(reason.as_str()) == predicted.reason, words());
        }
        if let Some(state) = told.state.as_deref().filter(|_| told.done) {
            ensure!(state == predicted.state, words());
        }
        if let (Wish::Call { .. }, Some(ticket), Some(number)) = (wish, told.ticket, &predicted.number) {
            self.ticketed(number, ticket).with_context(words)?;
        }
        Ok(())
    }

    /// The ticket of a number that is held became known.
    ///
    /// # Errors
    /// If another holding had it before.
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

    /// What must be seen from outside.
    pub fn view(&self) -> View {
        let seen = |known: &Number| Seen {
            state: known.state.to_owned(),
            holder: known.holder.clone(),
            calls: known.calls,
            leased: known.leased,
        };
        View {
            numbers: self.numbers.iter().map(|(number, known)| (number.clone(), seen(known))).collect(),
            idle: self.idle.iter().cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(model: &mut Model, event: Event, number: &str) -> Predicted {
        model.apply(&Wish::Event(event, number.to_owned()), "me", None)
    }

    #[test]
    fn first_in_first_out() {
        let mut model = Model::new(true);
        assert_eq!(model.apply(&Wish::call(None), "me", None).reason, Some("empty"));
        for number in ["1", "2"] {
            assert!(event(&mut model, Event::Add, number).done);
        }
        assert_eq!(model.apply(&Wish::call(None), "me", None).reason, Some("all-down"));
        for number in ["2", "1"] {
            assert!(event(&mut model, Event::Reg, number).done);
        }
        assert_eq!(model.apply(&Wish::call(None), "me", None).number.as_deref(), Some("2"));
        assert!(event(&mut model, Event::Hangup, "2").done);
        assert_eq!(model.apply(&Wish::call(None), "me", None).number.as_deref(), Some("1"));
        assert_eq!(model.apply(&Wish::call(None), "me", None).number.as_deref(), Some("2"));
        assert_eq!(model.apply(&Wish::call(None), "me", None).reason, Some("all-busy"));
    }

    #[test]
    fn a_lie_is_seen() {
        let mut model = Model::new(true);
        event(&mut model, Event::Add, "1");
        event(&mut model, Event::Reg, "1");
        let told = |number: &str| Told { done: true, number: Some(number.to_owned()), ..Told::default() };
        assert!(model.clone().check(&Wish::call(None), "me", &told("2")).is_err());
        assert!(model.clone().check(&Wish::call(None), "me", &Told::default()).is_err());
        model.check(&Wish::call(None), "me", &told("1")).unwrap();
        assert!(model.check(&Wish::call(None), "me", &told("1")).is_err(), "given twice");
    }
}
