//! What a report should say, by plain comparisons of everything with everything.

use archive::{ArchivedMessage, ArchivedVerdict};
use model::{Address, RejectReason, SenderWish};
use replay::{
    AccountPrice, Ended, Example, Group, Inexact, Judged, Judgement, Other, Pace, PriceReport, PriceVerdict,
    Replay, Report, Sums,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A leg in words, and with all that is compared.
type Leg = (u8, String, u64, Option<Address>, Option<Address>);

/// A leg: peer, share in lowest terms, rewrites.
type PlainLeg = (String, (u64, u64), Option<Address>, Option<Address>);

/// A verdict as it is shown, and as it is compared.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Plain {
    words: String,
    /// Of each rank.
    legs: Vec<Vec<PlainLeg>>,
    at: Option<u64>,
    sender: Option<Box<SenderWish>>,
}

impl Plain {
    fn with(mut self, sender: &Option<Box<SenderWish>>) -> Self {
        self.sender.clone_from(sender);
        if let Some(wish) = sender {
            let otherwise = serde_json::to_value(wish.otherwise).unwrap();
            self.words += &format!(", sender of {} else {}", wish.pool, otherwise.as_str().unwrap());
        }
        self
    }
}

fn divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { divisor(other, one % other) }
}

fn word(reason: RejectReason) -> String {
    // The words of policy documents are those of the model's own serde.
    serde_json::to_value(reason).unwrap().as_str().unwrap().to_owned()
}

fn forward(mut legs: Vec<Leg>, values_only: bool) -> Plain {
    let bare = |address: &Option<Address>| {
        address
            .as_ref()
            .map(|address| if values_only { Address::new(0, 0, &address.value) } else { address.clone() })
    };
    for leg in &mut legs {
        leg.3 = bare(&leg.3);
        leg.4 = bare(&leg.4);
    }
    let ranks: BTreeSet<u8> = legs.iter().map(|leg| leg.0).collect();
    let mut plain = Plain { words: String::new(), legs: Vec::new(), at: None, sender: None };
    let mut shown = Vec::new();
    for rank in ranks {
        let mut these: Vec<_> = legs.iter().filter(|leg| leg.0 == rank).cloned().collect();
        let value = |address: &Option<Address>| address.as_ref().map(|address| address.value.to_vec());
        these.sort_by_key(|leg| {
            (leg.1.clone(), value(&leg.3), value(&leg.4), leg.2, leg.3.clone(), leg.4.clone())
        });
        let total: u64 = these.iter().map(|leg| leg.2).sum();
        let common = these.iter().fold(0, |common, leg| divisor(common, leg.2));
        let unequal = these.iter().any(|leg| leg.2 != these[0].2);
        let words: Vec<String> = these
            .iter()
            .map(|leg| {
                let rewrites = match (&leg.3, &leg.4) {
                    (None, None) => "",
                    (Some(_), None) => "(source rewritten)",
                    (None, Some(_)) => "(destination rewritten)",
                    (Some(_), Some(_)) => "(both rewritten)",
                };
                let share = if unequal { format!("*{}", leg.2 / common) } else { String::new() };
                format!("{}{rewrites}{share}", leg.1)
            })
            .collect();
        shown.push(words.join("|"));
        plain.legs.push(
            these
                .into_iter()
                .map(|leg| {
                    let common = divisor(leg.2, total);
                    (leg.1, (leg.2 / common, total / common), leg.3, leg.4)
                })
                .collect(),
        );
    }
    plain.words = format!("forward {}", shown.join(","));
    plain
}

fn words(words: impl Into<String>) -> Plain {
    Plain { words: words.into(), legs: Vec::new(), at: None, sender: None }
}

fn archived(message: &ArchivedMessage) -> Plain {
    match &message.verdict {
        ArchivedVerdict::Forward(legs) if legs.iter().all(|leg| leg.resolve) => words("home"),
        ArchivedVerdict::Forward(legs) => {
            let legs = legs.iter().map(|leg| {
                let weight = u64::from(leg.weight.max(1));
                (leg.rank, leg.peer.to_string(), weight, leg.source.clone(), leg.destination.clone())
            });
            forward(legs.collect(), message.lacking.is_some())
        }
        ArchivedVerdict::Hold(until) => Plain { at: Some(until.0), ..words("hold") },
        ArchivedVerdict::Reject(reason) => words(format!("reject {}", word(*reason))),
    }
}

fn judged(message: &ArchivedMessage, judged: &Judged) -> Plain {
    match &judged.verdict {
        Judgement::Forward(legs) => {
            let legs = legs.iter().map(|leg| {
                let weight = u64::from(leg.weight.max(1));
                (leg.rank, leg.peer.to_string(), weight, leg.source.clone(), leg.destination.clone())
            });
            forward(legs.collect(), message.lacking.is_some())
        }
        Judgement::Home => words("home"),
        Judgement::Hold(until) => Plain { at: Some(until.0), ..words("hold") },
        Judgement::Reject(reason) => words(format!("reject {}", word(*reason))),
        Judgement::Pass => words("pass"),
        Judgement::Fault(kind) => words(format!("fault {kind}")),
    }
}

fn because(message: &ArchivedMessage, judged: &Judged) -> Option<String> {
    let older = "archived by a version that kept no host answers";
    message
        .lacking
        .map(|_| older.to_owned())
        .or_else(|| judged.inexact_because.as_ref().map(ToString::to_string))
}

/// The report, but for its pace.
pub(crate) fn expected(how: &Replay, pairs: &[(ArchivedMessage, Judged)]) -> Report {
    let seen: Vec<_> = pairs.iter().filter(|(message, _)| message.routed).collect();
    let different: Vec<_> = seen
        .iter()
        .filter_map(|(message, said)| {
            let from = archived(message).with(&message.sender);
            let to = judged(message, said).with(&said.sender);
            if from == to {
                return None;
            }
            let to = match (from.words == to.words, from.at, to.at) {
                (_, Some(_), Some(_)) => to.words.replacen("hold", "hold until another time", 1),
                (true, ..) => format!("{} otherwise", to.words),
                (false, ..) => to.words,
            };
            Some((message, said, from.words, to))
        })
        .collect();
    let mut kept: Vec<(String, String)> = Vec::new();
    for (.., from, to) in &different {
        let key = (from.clone(), to.clone());
        if !kept.contains(&key) && kept.len() < how.groups {
            kept.push(key);
        }
    }
    let exact = |message: &ArchivedMessage, said: &Judged| because(message, said).is_none();
    let mut groups: Vec<Group> = kept
        .iter()
        .map(|(from, to)| {
            let of: Vec<_> = different.iter().filter(|(.., f, t)| f == from && t == to).collect();
            Group {
                from: from.clone(),
                to: to.clone(),
                count: of.len() as u64,
                exact: of.iter().filter(|(message, said, ..)| exact(message, said)).count() as u64,
                examples: of
                    .iter()
                    .take(how.examples)
                    .map(|(message, said, ..)| Example {
                        id: message.id,
                        accepted_at: message.accepted_at,
                        origin: message.origin.to_string(),
                        source: "1069******34".into(),
                        destination: "4917*******78".into(),
                        note: said.note.as_deref().map(str::to_owned),
                        exact: exact(message, said),
                    })
                    .collect(),
            }
        })
        .collect();
    groups.sort_by_key(|group| (Reverse(group.count), group.from.clone(), group.to.clone()));
    let beyond: Vec<_> =
        different.iter().filter(|(.., from, to)| !kept.contains(&(from.clone(), to.clone()))).collect();
    let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
    for reason in seen.iter().filter_map(|(message, said)| because(message, said)) {
        *reasons.entry(reason).or_default() += 1;
    }
    let mut inexact: Vec<_> =
        reasons.into_iter().map(|(because, count)| Inexact { because, count }).collect();
    inexact.sort_by_key(|one| (Reverse(one.count), one.because.clone()));
    let count = |test: &dyn Fn(&ArchivedMessage, &Judged) -> bool| {
        seen.iter().filter(|(message, said)| test(message, said)).count() as u64
    };
    Report {
        ended: Ended::Complete,
        messages: seen.len() as u64,
        exact: count(&exact),
        inexact,
        same: seen.len() as u64 - different.len() as u64,
        different: different.len() as u64,
        new_rejects: count(&|message, said| {
            matches!(said.verdict, Judgement::Reject(_))
                && !matches!(message.verdict, ArchivedVerdict::Reject(_))
        }),
        new_faults: count(&|_, said| matches!(said.verdict, Judgement::Fault(_))),
        unrouted: (pairs.len() - seen.len()) as u64,
        damaged: 0,
        groups,
        other: Other {
            count: beyond.len() as u64,
            exact: beyond.iter().filter(|(message, said, ..)| exact(message, said)).count() as u64,
        },
        price: price(how, &seen),
        pace: Pace::default(),
    }
}

fn price(how: &Replay, seen: &[&(ArchivedMessage, Judged)]) -> Option<PriceReport> {
    let priced: Vec<_> = seen
        .iter()
        .filter_map(|(message, said)| {
            let (account, old) = match &message.price {
                Some(price) => (price.account.as_deref(), price.amount),
                None => (None, 0),
            };
            Some(match said.price.as_ref()? {
                PriceVerdict::Charge { account: new, amount } => (account, old, Some(&**new), *amount, false),
                PriceVerdict::Free => (account, old, None, 0, false),
                PriceVerdict::Refuse => (account, old, None, 0, true),
            })
        })
        .collect();
    let names: BTreeSet<&str> =
        priced.iter().flat_map(|(one, _, other, ..)| [*one, *other]).flatten().collect();
    let mut accounts: Vec<AccountPrice> = names
        .into_iter()
        .map(|name| {
            let mut sums = Sums::default();
            for (account, old, payer, new, _) in &priced {
                let (pays, would) = (*account == Some(name), *payer == Some(name));
                sums.messages += u64::from(pays || would);
                sums.old += if pays { *old } else { 0 };
                sums.new += if would { *new } else { 0 };
            }
            AccountPrice { account: name.to_owned(), sums }
        })
        .collect();
    accounts.sort_by_key(|one| (Reverse(one.sums.new.abs_diff(one.sums.old)), one.account.clone()));
    let rest = accounts.split_off(accounts.len().min(how.accounts));
    let sum = |of: &[AccountPrice]| Sums {
        messages: of.iter().map(|one| one.sums.messages).sum(),
        old: of.iter().map(|one| one.sums.old).sum(),
        new: of.iter().map(|one| one.sums.new).sum(),
    };
    let count = |test: &dyn Fn(u64, u64) -> bool| {
        priced.iter().filter(|(_, old, _, new, _)| test(*old, *new)).count() as u64
    };
    (!priced.is_empty()).then(|| PriceReport {
        total: Sums {
            messages: priced.len() as u64,
            old: priced.iter().map(|one| one.1).sum(),
            new: priced.iter().map(|one| one.3).sum(),
        },
        same: count(&|old, new| old == new),
        dearer: count(&|old, new| new > old),
        cheaper: count(&|old, new| new < old),
        new_refusals: priced.iter().filter(|one| one.4).count() as u64,
        other: sum(&rest),
        accounts,
    })
}
