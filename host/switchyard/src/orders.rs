//! Orders about waiting messages, and the uncertain ones, as the API asks for them.

use crate::appliance::{Switchyard, brake_words, gone};
use crate::core_loop;
use crate::messages::doing_word;
use admin::metrics::{self, Page};
use admin::{Kind, Misplaced, Problem, view};
use engine::{Answer, Brake, Event, Hand, MessageStatus, OrderRefusal, OrderWish, PeerStatus, Survey};
use model::{
    Address, AddressBytes, Message, MessageId, Now, Order, OrderId, OrderKind, OrderState, PeerId, Scope,
    StepKind, parse_duration,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Places in memory that one look of a preview takes in; so long nothing else happens in the core.
const LOOKS: usize = 65_536;
/// Contents that a preview reads at most.
const READS: usize = 100_000;
/// Messages that are settled in one go.
const AT_ONCE: usize = 500;
/// The longest reason.
const LONGEST_WHY: usize = 256;
/// How long an order can be undone, where nobody says.
const USUAL_UNDO: Duration = Duration::from_secs(60);

/// A number as a caller may see it.
pub(crate) fn shown_address(address: &Address, open: bool) -> String {
    if open { address.text().into_owned() } else { address.masked() }
}

/// A time in the largest unit that takes it whole: at most as many digits as it was given with.
fn shown_time(time: Duration) -> String {
    let ms = time.as_millis();
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    let unit = units.into_iter().find(|(unit, _)| ms > 0 && ms.is_multiple_of(*unit));
    let (unit, word) = unit.unwrap_or((1, "ms"));
    format!("{}{word}", ms / unit)
}

fn wrong(pointer: &str, what: impl Into<String>, allowed: Option<&str>) -> Problem {
    let what = what.into();
    let mut problem = Problem::new(Kind::Refused, format!("{pointer}: {what}"));
    problem.problems.push(Misplaced {
        pointer: pointer.to_owned(),
        what,
        allowed: allowed.map(str::to_owned),
    });
    problem
}

fn refused(why: OrderRefusal) -> Problem {
    let kind = match why {
        OrderRefusal::Unknown => Kind::NotFound,
        OrderRefusal::TooLate | OrderRefusal::Circle | OrderRefusal::TooMany { .. } => Kind::Conflict,
        OrderRefusal::NoScope
        | OrderRefusal::OnlyWholePeers
        | OrderRefusal::NoWay
        | OrderRefusal::UnknownPeer
        | OrderRefusal::OtherKind => Kind::Refused,
    };
    Problem::new(kind, why.to_string())
}

fn kind_of(what: view::OrderKind) -> OrderKind {
    match what {
        view::OrderKind::Suspend => OrderKind::Suspend,
        view::OrderKind::Drain => OrderKind::Drain,
        view::OrderKind::Rebind => OrderKind::Rebind,
        view::OrderKind::Cancel => OrderKind::Cancel,
        view::OrderKind::Purge => OrderKind::Purge,
    }
}

fn word_of(kind: OrderKind) -> view::OrderKind {
    match kind {
        OrderKind::Suspend => view::OrderKind::Suspend,
        OrderKind::Drain => view::OrderKind::Drain,
        OrderKind::Rebind => view::OrderKind::Rebind,
        OrderKind::Cancel => view::OrderKind::Cancel,
        OrderKind::Purge => view::OrderKind::Purge,
    }
}

fn state_of(state: OrderState) -> view::OrderState {
    match state {
        OrderState::Standing => view::OrderState::Standing,
        OrderState::UndoWindow => view::OrderState::UndoWindow,
        OrderState::UnderWay => view::OrderState::UnderWay,
        OrderState::Done => view::OrderState::Done,
        OrderState::Undone => view::OrderState::Undone,
    }
}

fn past(kind: OrderKind) -> &'static str {
    match kind {
        OrderKind::Suspend => "suspended",
        OrderKind::Drain => "drained",
        OrderKind::Rebind => "sent another way",
        OrderKind::Cancel | OrderKind::Purge => "held until they are cancelled",
    }
}

fn because(order: &Order) -> String {
    let why = if order.why.is_empty() { String::new() } else { format!(": {}", order.why) };
    format!("by {}{why} (order {})", order.by, order.id)
}

impl Switchyard {
    fn named(&self, pointer: &str, name: Option<&str>) -> Result<Option<PeerId>, Problem> {
        let Some(name) = name else { return Ok(None) };
        let known = self.directory.load().id(name);
        known.map(Some).ok_or_else(|| wrong(pointer, format!("{name:?} is no account and no peer"), None))
    }

    fn wish(&self, wanted: &view::WantedOrder, by: &str) -> Result<OrderWish, Problem> {
        let scope = &wanted.scope;
        let time = |pointer: &str, text: &str| {
            let allowed = "a time such as 30s, 5m, 1h or 2d";
            parse_duration(text).ok_or_else(|| wrong(pointer, format!("{text:?} is no time"), Some(allowed)))
        };
        let prefix = scope.prefix.as_deref().map(|prefix| prefix.trim_start_matches('+'));
        if prefix.is_some_and(|prefix| prefix.is_empty() || prefix.len() > 20) {
            return Err(wrong("/where/prefix", "is no prefix", Some("1 to 20 characters")));
        }
        let why = wanted.why.as_deref().unwrap_or_default();
        if why.chars().count() > LONGEST_WHY {
            return Err(wrong("/why", "is too long", Some("at most 256 characters")));
        }
        let older_than =
            scope.older_than.as_deref().map(|text| time("/where/older-than", text)).transpose()?;
        let undo = wanted.undo_within.as_deref().map(|text| time("/undo-within", text)).transpose()?;
        if undo.is_some_and(|undo| undo > Duration::from_secs(86_400)) {
            return Err(wrong("/undo-within", "is too long", Some("at most 1d")));
        }
        let kind = kind_of(wanted.what);
        if undo.is_some() && !kind.ends() {
            return Err(wrong(
                "/undo-within",
                "is for cancel and purge: other orders stand until they are withdrawn",
                None,
            ));
        }
        Ok(OrderWish {
            kind,
            scope: Scope {
                peer: self.named("/where/peer", scope.peer.as_deref())?,
                account: self.named("/where/account", scope.account.as_deref())?,
                prefix: prefix.map(|prefix| AddressBytes::from_slice(prefix.as_bytes())),
                older_than,
            },
            to: self.named("/to", wanted.to.as_deref())?,
            by: by.into(),
            why: why.into(),
            undo_within: undo.unwrap_or(USUAL_UNDO),
        })
    }

    fn shown_order(&self, order: &Order, held: u64) -> view::Order {
        let scope = &order.scope;
        view::Order {
            id: order.id.0,
            what: word_of(order.kind),
            scope: view::OrderScope {
                peer: scope.peer.map(|peer| self.name_of(peer)),
                account: scope.account.map(|account| self.name_of(account)),
                prefix: scope.prefix.as_ref().map(|prefix| String::from_utf8_lossy(prefix).into_owned()),
                older_than: scope.older_than.map(shown_time),
            },
            to: order.to.map(|to| self.name_of(to)),
            by: order.by.to_string(),
            why: order.why.to_string(),
            at: order.at.0,
            state: state_of(order.state),
            undo_until: order.undo_until.map(|until| until.0),
            touched: order.touched,
            held,
        }
    }

    fn order_answered(&self, answer: Option<Answer>) -> Result<view::Order, Problem> {
        match answer {
            Some(Answer::Order(order)) => {
                let id = order.id;
                let look = move |engine: &engine::Engine, _| {
                    engine.orders().into_iter().find(|(one, _)| one.id == id).map_or(0, |(_, held)| held)
                };
                let held = self.core.look(look).unwrap_or(0);
                Ok(self.shown_order(&order, held))
            }
            Some(Answer::OrderRefused(why)) => Err(refused(why)),
            Some(_) => Err(Problem::new(Kind::Internal, "the core gave no answer to an order")),
            None => Err(gone()),
        }
    }

    /// A brake in words, and the orders that a peer is under.
    pub(crate) fn brake_with_orders(&self, peer: &PeerStatus, orders: &[(Order, u64)], now: Now) -> String {
        let active = || orders.iter().map(|(order, _)| order).filter(|order| order.state.is_active());
        let mut words = match peer.brake {
            Brake::Suspended { order } => match active().find(|one| one.id == order) {
                Some(order) => format!("suspended {}", because(order)),
                None => brake_words(peer.brake, now),
            },
            brake => brake_words(brake, now),
        };
        let whole = |order: &&Order| !matches!(peer.brake, Brake::Suspended { order: by } if by == order.id);
        for order in active().filter(|order| order.scope.peer == Some(peer.peer)).filter(whole) {
            let what = match order.kind {
                OrderKind::Drain => "takes nothing new".to_owned(),
                OrderKind::Rebind => match order.to {
                    Some(to) if order.scope.is_whole_peer() => format!("messages go to {}", self.name_of(to)),
                    Some(to) => format!("some messages go to {}", self.name_of(to)),
                    None => continue,
                },
                kind => format!("some messages are {}", past(kind)),
            };
            words.push_str(&format!("; {what} {}", because(order)));
        }
        words
    }

    /// What a message's queue waits for.
    pub(crate) fn brake_of_message(&self, status: &MessageStatus, now: Now) -> String {
        match status.brake {
            Brake::Suspended { order } => format!("its peer is suspended{}", self.order_words(order)),
            brake => brake_words(brake, now),
        }
    }

    /// By whom and why, for the end of a sentence.
    pub(crate) fn order_words(&self, id: OrderId) -> String {
        let order = self.core.look(move |engine, _| engine.order(id)).flatten();
        order.map_or(String::new(), |order| format!(" {}", because(&order)))
    }

    pub(crate) fn write_order_metrics(&self, page: &mut Page) {
        let Some(orders) = self.core.look(|engine, _| engine.orders()) else { return };
        for kind in OrderKind::ALL {
            let of = |order: &&(Order, u64)| order.0.kind == kind && order.0.state.is_active();
            let count = orders.iter().filter(of).count();
            page.put(&metrics::ORDERS, &[kind.name()], count as f64);
        }
    }

    fn sample(&self, message: &Message, state: &str, open: bool) -> view::OrderSample {
        view::OrderSample {
            id: message.id.to_string(),
            from: shown_address(&message.source, open),
            to: shown_address(&message.destination, open),
            state: state.to_owned(),
        }
    }

    fn load(&self, ids: &[MessageId]) -> Result<Vec<Arc<Message>>, Problem> {
        let loaded = self.store.load(ids).map_err(|error| Problem::new(Kind::Internal, error.to_string()))?;
        Ok(loaded.into_iter().flatten().collect())
    }

    fn survey(&self, wish: &OrderWish, open: bool) -> Result<view::OrderPreview, Problem> {
        let mut preview = view::OrderPreview { complete: true, ..view::OrderPreview::default() };
        let mut oldest: BTreeMap<MessageId, &'static str> = BTreeMap::new();
        let (mut at, mut reads) = (0, 0);
        loop {
            let asked = wish.clone();
            let look = move |engine: &engine::Engine, now| {
                let survey = engine.survey(now, &asked, at, LOOKS);
                let word =
                    |id: &MessageId| engine.message(*id).map_or("ending", |status| doing_word(status.doing));
                let words: Vec<_> = survey.oldest.iter().map(|id| (*id, word(id))).collect();
                (survey, words)
            };
            let (survey, words) = self.core.look(look).ok_or_else(gone)?;
            for (doing, count) in survey.concerned {
                *preview.by_state.entry(doing_word(doing).to_owned()).or_default() += count;
                preview.messages += count;
            }
            oldest.extend(words);
            for part in survey.unknown.chunks(1000) {
                if reads >= READS {
                    preview.complete = false;
                    break;
                }
                reads += part.len();
                let ids: Vec<MessageId> = part.iter().map(|(id, _)| *id).collect();
                let doing: BTreeMap<MessageId, _> = part.iter().copied().collect();
                for message in self.load(&ids)? {
                    if wish.scope.fits_destination(&message)
                        && let Some(doing) = doing.get(&message.id)
                    {
                        let word = doing_word(*doing);
                        *preview.by_state.entry(word.to_owned()).or_default() += 1;
                        preview.messages += 1;
                        oldest.insert(message.id, word);
                    }
                }
            }
            while oldest.len() > Survey::SAMPLE {
                oldest.pop_last();
            }
            match survey.next {
                Some(next) => at = next,
                None => break,
            }
        }
        let ids: Vec<MessageId> = oldest.keys().copied().collect();
        let sample = self.load(&ids)?;
        preview.sample = sample
            .iter()
            .filter_map(|message| Some(self.sample(message, oldest.get(&message.id)?, open)))
            .collect();
        Ok(preview)
    }

    fn settle_all(&self, ids: &[MessageId], hand: Hand, by: &Arc<str>) -> Result<view::Settled, Problem> {
        let mut told = view::Settled { settled: 0, passed_over: 0 };
        for part in ids.chunks(AT_ONCE) {
            let events = part.iter().map(|id| {
                let (id, by) = (*id, by.clone());
                move |reply| Event::ByHand { id, hand, by, reply }
            });
            let answers = core_loop::ask_all(&self.core, &self.links.hub(), events).ok_or_else(gone)?;
            let settled = answers.iter().filter(|answer| **answer == Answer::Done).count() as u64;
            told.settled += settled;
            told.passed_over += answers.len() as u64 - settled;
        }
        Ok(told)
    }
}

impl admin::Orders for Switchyard {
    fn orders(&self) -> Result<Vec<view::Order>, Problem> {
        let orders = self.core.look(|engine, _| engine.orders()).ok_or_else(gone)?;
        Ok(orders.iter().map(|(order, held)| self.shown_order(order, *held)).collect())
    }

    fn preview_order(&self, wanted: view::WantedOrder, open: bool) -> Result<view::OrderPreview, Problem> {
        let wish = self.wish(&wanted, "")?;
        let asked = wish.clone();
        let judged = self.core.look(move |engine, _| engine.judge_order(&asked)).ok_or_else(gone)?;
        judged.map_err(refused)?;
        self.survey(&wish, open)
    }

    fn give_order(&self, wanted: view::WantedOrder, by: &str) -> Result<view::Order, Problem> {
        let wish = Box::new(self.wish(&wanted, by)?);
        let asked = core_loop::ask(&self.core, &self.links.hub(), |reply| Event::Order { wish, reply });
        let order = self.order_answered(asked)?;
        tracing::info!(order = order.id, by, what = ?wanted.what, "an order about waiting messages was given");
        Ok(order)
    }

    fn undo_order(&self, id: u32, by: &str) -> Result<view::Order, Problem> {
        let who = by.into();
        let event = |reply| Event::UndoOrder { id: OrderId(id), by: who, reply };
        let order = self.order_answered(core_loop::ask(&self.core, &self.links.hub(), event))?;
        tracing::info!(order = id, by, "an order about waiting messages was withdrawn");
        Ok(order)
    }

    fn uncertain(
        &self,
        peer: Option<&str>,
        after: Option<&str>,
        limit: usize,
        open: bool,
    ) -> Result<view::UncertainPage, Problem> {
        let of = match peer {
            Some(name) => match self.directory.load().id(name) {
                Some(peer) => Some(peer),
                None => {
                    return Err(Problem::new(Kind::NotFound, format!("{name:?} is no account and no peer")));
                }
            },
            None => None,
        };
        let after = after.map(Self::parse_id).transpose()?.unwrap_or(MessageId(0));
        let look = move |engine: &engine::Engine, now| {
            let ids = engine.uncertain(of, after, limit + 1);
            let found = ids.iter().filter_map(|id| engine.message(*id)).collect::<Vec<_>>();
            (found, now)
        };
        let (mut found, now): (Vec<MessageStatus>, Now) = self.core.look(look).ok_or_else(gone)?;
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(|last| last.id.to_string());
        let ids: Vec<MessageId> = found.iter().map(|status| status.id).collect();
        let contents: BTreeMap<MessageId, Arc<Message>> =
            self.load(&ids)?.into_iter().map(|message| (message.id, message)).collect();
        let shown = found.into_iter().filter_map(|status| {
            let message = contents.get(&status.id)?;
            let written =
                status.steps.iter().rev().find(|step| matches!(step.kind, StepKind::Submitted { .. }));
            Some(view::Uncertain {
                id: status.id.to_string(),
                peer: self.name_of(status.peer),
                account: self.name_of(status.origin),
                source: shown_address(&message.source, open),
                destination: shown_address(&message.destination, open),
                at: message.accepted_at.0,
                since: written.map(|step| step.at.0),
                until: status.until.map(|at| now.wall_of(at).0),
                state: "uncertain",
                attempts: status.attempts,
                length: message.text.octets.len(),
            })
        });
        Ok(view::UncertainPage { messages: shown.collect(), next })
    }

    fn settle_uncertain(&self, wanted: view::WantedSettlement, by: &str) -> Result<view::Settled, Problem> {
        let hand = match wanted.remedy {
            view::Remedy::SendAgain => Hand::SendAgain,
            view::Remedy::GiveUp => Hand::GiveUp,
        };
        let who: Arc<str> = by.into();
        let told = match (wanted.peer, wanted.ids) {
            (None, Some(ids)) if ids.len() <= 1000 => {
                let ids = ids.iter().map(|id| Self::parse_id(id)).collect::<Result<Vec<_>, _>>()?;
                self.settle_all(&ids, hand, &who)?
            }
            (None, Some(_)) => return Err(wrong("/ids", "are too many", Some("at most 1000"))),
            (Some(name), None) => {
                let Some(peer) = self.named("/peer", Some(&name))? else { return Err(gone()) };
                // Those that are uncertain now: what is sent again may be so once more, and stays.
                let all =
                    self.core.look(move |engine, _| engine.uncertain(Some(peer), MessageId(0), usize::MAX));
                self.settle_all(&all.ok_or_else(gone)?, hand, &who)?
            }
            _ => return Err(wrong("", "says not which messages", Some("either `peer` or `ids`"))),
        };
        tracing::info!(by, settled = told.settled, ?hand, "uncertain messages were settled by hand");
        Ok(told)
    }
}
