//! Replays: archived messages through plugins that serve nobody.

use crate::appliance::Switchyard;
use crate::plugins::{chain, object};
use crate::records::time;
use crate::routing::HouseRouting;
use admin::{Kind, Problem};
use arc_swap::ArcSwap;
use archive::{Archive, ArchivedMessage, ArchivedVerdict, ReplayRange};
use bytes::Bytes;
use hooks::{Binding, Trial, Tried};
use model::{
    DecidedBy, Directory, Hook, Kind as MessageKind, Leg, Message, PeerId, Priority, Quote, RejectReason,
    Routed, Text, Timestamp, Verdict,
};
use parking_lot::Mutex;
use replay::{Candidate, FromArchive, Judged, JudgedLeg, Judgement, PriceVerdict, Replay, Running};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Replays that are remembered, with their reports.
const KEPT: usize = 32;

/// The newest messages that may be asked for by number: where they begin is found by counting.
const MOST_LAST: u64 = 1_000_000;

/// All replays since the start.
pub(crate) struct Replays {
    archive: Option<Archive>,
    all: Mutex<All>,
}

#[derive(Default)]
struct All {
    next: u64,
    running: BTreeMap<u64, Asked>,
}

struct Asked {
    hook: Hook,
    chain: Vec<Binding>,
    range: ReplayRange,
    begun: Timestamp,
    running: Running,
}

fn unknown(id: &str) -> Problem {
    Problem::new(Kind::NotFound, format!("there is no replay {id:?}"))
}

fn bad(what: impl Into<String>) -> Problem {
    Problem::new(Kind::BadRequest, what)
}

fn internal(error: &impl ToString) -> Problem {
    Problem::new(Kind::Internal, error.to_string())
}

fn moment(request: &mut Map<String, Value>, name: &str) -> Result<Option<Timestamp>, Problem> {
    let value = match request.remove(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => time(&text),
        Some(value) => value.as_u64().map(Timestamp),
    };
    let what = "must be a time such as 2026-11-20T20:32:25Z, or milliseconds since the epoch";
    value.map(Some).ok_or_else(|| bad(format!("`{name}` {what}")))
}

impl Replays {
    pub(crate) fn new(archive: Option<Archive>) -> Self {
        Self { archive, all: Mutex::default() }
    }

    /// Begins one. Beside the binding, or the chain, of the candidate: `hook` (router or biller), `from`, `until`, `limit`,
    /// `last`, `threads`.
    pub(crate) fn begin(&self, appliance: &Switchyard, request: Value) -> Result<Value, Problem> {
        let Some(archive) = &self.archive else {
            let what = "there is no archive to replay from: name one in the configuration, [archive] url";
            return Err(Problem::new(Kind::Conflict, what));
        };
        let mut request = object(request)?;
        let (from, until) = (moment(&mut request, "from")?, moment(&mut request, "until")?);
        let mut number = |name: &str| match request.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_u64() {
                Some(number) if number > 0 => Ok(Some(number)),
                _ => Err(bad(format!("`{name}` must be a number, at least 1"))),
            },
        };
        let (limit, last, threads) = (number("limit")?, number("last")?, number("threads")?);
        if last.is_some_and(|last| last > MOST_LAST) {
            return Err(bad(format!(
                "`last` must be a number from 1 to {MOST_LAST}; for more, say `from` which time on"
            )));
        }
        let hook = match request.remove("hook") {
            None => Hook::Router,
            Some(hook) => match hook.as_str().and_then(Hook::named) {
                Some(hook @ (Hook::Router | Hook::Biller)) => hook,
                _ => return Err(bad("`hook` must be router or biller: only they decide what is archived")),
            },
        };
        let hooks = &appliance.routing.hooks;
        let live = |hook| hooks.state(hook).live.chain;
        let chain = chain(request, &live(hook))?;
        let started = |hook, chain: &[Binding]| {
            hooks.trial(hook, chain).map_err(|error| Problem::new(Kind::Refused, error.to_string()))
        };
        let asked = started(hook, &chain)?;
        let biller = live(Hook::Biller);
        let (router, biller) = match hook {
            Hook::Biller => (None, Some(asked)),
            _ if biller.is_empty() => (Some(asked), None),
            _ => (Some(asked), Some(started(Hook::Biller, &biller)?)),
        };
        let candidate: Arc<dyn Candidate> = Arc::new(Judge {
            router,
            biller,
            house: appliance.routing.clone(),
            directory: appliance.directory.clone(),
            nobody: Arc::new(DecidedBy { plugin: String::new(), version: String::new() }),
        });
        let range = ReplayRange { from, until, limit, last, body: self.needs_texts(appliance, &chain)? };
        let source = FromArchive::new(archive, range.clone()).map_err(|error| internal(&error))?;
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads =
            threads.map_or(cores, |threads| usize::try_from(threads).unwrap_or(cores).min(cores * 2));

        let mut all = self.all.lock();
        if all.running.values().any(|asked| !asked.running.progress().ended) {
            let what = "a replay runs already, on all processors: wait for its end, or DELETE it";
            return Err(Problem::new(Kind::Conflict, what));
        }
        let running = Replay { threads, ..Replay::default() };
        let running = running.start(source, &candidate).map_err(|error| internal(&error))?;
        all.next += 1;
        let id = all.next;
        let begun = crate::core_loop::wall();
        tracing::info!(id, hook = hook.name(), plugins = chain.len(), threads, "replay begun");
        all.running.insert(id, Asked { hook, chain, range, begun, running });
        if all.running.len() > KEPT {
            all.running.pop_first();
        }
        Ok(json!({ "id": id.to_string() }))
    }

    /// Whether any of these looks into texts; reading them costs more than all the rest.
    fn needs_texts(&self, appliance: &Switchyard, chain: &[Binding]) -> Result<bool, Problem> {
        let versions = appliance.routing.hooks.versions().map_err(|error| internal(&error))?;
        Ok(chain.iter().any(|binding| {
            versions
                .iter()
                .filter(|info| info.plugin == binding.plugin && info.version == binding.version)
                .any(|info| info.imports.iter().any(|import| import.starts_with("switchyard:hooks/body")))
        }))
    }

    pub(crate) fn all(&self) -> Value {
        let all = self.all.lock();
        all.running.iter().rev().map(|(id, asked)| shown(*id, asked, false)).collect()
    }

    pub(crate) fn report(&self, id: &str) -> Result<Value, Problem> {
        let number: u64 = id.parse().map_err(|_| unknown(id))?;
        let all = self.all.lock();
        all.running.get(&number).map(|asked| shown(number, asked, true)).ok_or_else(|| unknown(id))
    }

    pub(crate) fn end(&self, id: &str) -> Result<(), Problem> {
        let number: u64 = id.parse().map_err(|_| unknown(id))?;
        let all = self.all.lock();
        all.running.get(&number).ok_or_else(|| unknown(id))?.running.cancel();
        Ok(())
    }

    /// At shutdown.
    pub(crate) fn end_all(&self) {
        for asked in self.all.lock().running.values() {
            asked.running.cancel();
        }
    }
}

fn shown(id: u64, asked: &Asked, whole: bool) -> Value {
    let report = asked.running.report();
    let state = match report.as_deref().map(|report| &report.ended) {
        None => "running",
        Some(replay::Ended::Failed { .. }) => "failed",
        Some(_) => "done",
    };
    let plugins =
        asked.chain.iter().map(|binding| json!({ "plugin": binding.plugin, "version": binding.version }));
    let mut value = json!({
        "id": id.to_string(),
        "state": state,
        "hook": asked.hook.name(),
        "plugins": plugins.collect::<Value>(),
        "from": asked.range.from.map(|at| at.0),
        "until": asked.range.until.map(|at| at.0),
        "limit": asked.range.limit,
        "last": asked.range.last,
        "begun": asked.begun.0,
        "progress": asked.running.progress(),
    });
    if whole {
        value["report"] = json!(report.as_deref());
    }
    value
}

/// A candidate, with the house's own rules behind it as they are in live routing.
struct Judge {
    /// `None`: what was decided stands, and is priced anew.
    router: Option<Trial>,
    biller: Option<Trial>,
    house: Arc<HouseRouting>,
    directory: Arc<ArcSwap<Directory>>,
    nobody: Arc<DecidedBy>,
}

/// Stands for texts that nobody reads. Not of the heap: judges would share its counter, and fight for it with every message.
static BLANK: [u8; u16::MAX as usize] = [b' '; u16::MAX as usize];

/// Not a number of anybody's.
const GONE: PeerId = PeerId(u32::MAX);

impl Judge {
    fn message(&self, archived: &ArchivedMessage, origin: PeerId) -> Message {
        let length = archived.length as usize;
        let blank = || Bytes::from_static(&BLANK[..length.min(BLANK.len())]);
        let octets = archived.body.clone().unwrap_or_else(blank);
        Message {
            id: archived.id,
            kind: MessageKind::Text,
            origin,
            source: archived.source.clone(),
            destination: archived.destination.clone(),
            service_type: Bytes::copy_from_slice(&archived.service_type),
            protocol_id: 0,
            esm_class: 0,
            priority: Priority::new(archived.priority),
            receipts: archived.receipts,
            replace_if_present: false,
            submission: None,
            text: Text { octets, data_coding: archived.data_coding, udhi: archived.udhi, payload: false },
            tlvs: Bytes::new(),
            accepted_at: archived.accepted_at,
            scheduled: None,
            expires_at: archived.accepted_at,
            routed: Routed::new(Verdict::Reject(RejectReason::NoRoute), self.nobody.clone()),
        }
    }

    /// What the router says now; the verdict as the house would take it, where it is one.
    fn verdict(&self, router: &Trial, archived: &ArchivedMessage, message: &mut Message) -> Judged {
        let seen = archived.seen.as_deref().unwrap_or_default();
        let Tried { verdict, sender, note, missing, .. } =
            router.route(message, archived.decided_at, Some(seen));
        let verdict = match verdict {
            Ok(verdict) => verdict.unwrap_or(Verdict::Reject(RejectReason::NoRoute)),
            Err(fault) => {
                let mut judged = Judged::new(Judgement::Fault(Cow::Borrowed(fault.kind.name())));
                judged.note = Some(fault.what.into());
                return judged;
            }
        };
        let routed = Routed { note, sender, ..Routed::new(verdict, self.nobody.clone()) };
        message.routed = self.house.settle(message, routed);
        let mut judged = Judged::new(judgement(&message.routed.verdict, &self.directory.load()));
        judged.sender = message.routed.sender.take();
        judged.note = message.routed.note.take();
        judged.inexact_because = missing.map(Cow::Borrowed);
        judged
    }

    fn price(&self, archived: &ArchivedMessage, message: &Message, judged: &mut Judged) {
        let (Some(biller), Verdict::Forward(legs)) = (&self.biller, &message.routed.verdict) else { return };
        if !self.house.parties.load().is_account(message.origin) {
            return;
        }
        let first = legs.iter().filter(|leg| !leg.resolve).min_by_key(|leg| leg.rank);
        match biller.price(message, first, archived.decided_at) {
            Ok(Ok(Quote { charge: None, .. })) => judged.price = Some(PriceVerdict::Free),
            Ok(Ok(Quote { charge: Some(charge), .. })) => {
                judged.price = Some(PriceVerdict::Charge { account: charge.account, amount: charge.amount });
            }
            Ok(Err(note)) => {
                judged.price = Some(PriceVerdict::Refuse);
                judged.note = note;
            }
            Err(fault) => {
                judged.verdict = Judgement::Fault(Cow::Borrowed(fault.kind.name()));
                judged.note = Some(fault.what.into());
            }
        }
    }
}

impl Candidate for Judge {
    fn judge(&self, archived: &ArchivedMessage) -> Judged {
        let origin = self.directory.load().id(&archived.origin);
        let mut message = self.message(archived, origin.unwrap_or(GONE));
        let mut judged = match &self.router {
            Some(router) => self.verdict(router, archived, &mut message),
            None => {
                message.routed.verdict = as_it_was(&archived.verdict, &self.directory.load());
                let verdict = judgement(&message.routed.verdict, &self.directory.load());
                Judged { sender: archived.sender.clone(), ..Judged::new(verdict) }
            }
        };
        self.price(archived, &message, &mut judged);
        if origin.is_none() {
            judged.inexact_because = Some(Cow::Borrowed("an account or peer that this appliance never had"));
        }
        judged
    }
}

fn judgement(verdict: &Verdict, directory: &Directory) -> Judgement {
    match verdict {
        Verdict::Forward(legs) if !legs.is_empty() && legs.iter().all(|leg| leg.resolve) => Judgement::Home,
        Verdict::Forward(legs) => Judgement::Forward(
            legs.iter()
                .map(|leg| JudgedLeg {
                    peer: directory.name(leg.peer),
                    rank: leg.rank,
                    weight: leg.weight,
                    source: leg.source.clone(),
                    destination: leg.destination.clone(),
                })
                .collect(),
        ),
        Verdict::Hold(until) => Judgement::Hold(*until),
        Verdict::Reject(reason) => Judgement::Reject(*reason),
    }
}

fn as_it_was(verdict: &ArchivedVerdict, directory: &Directory) -> Verdict {
    match verdict {
        ArchivedVerdict::Forward(legs) => Verdict::Forward(
            legs.iter()
                .map(|leg| Leg {
                    rank: leg.rank,
                    weight: leg.weight,
                    cost: leg.cost,
                    longest_wait: leg.longest_wait,
                    source: leg.source.clone(),
                    destination: leg.destination.clone(),
                    resolve: leg.resolve,
                    ..Leg::to(directory.id(&leg.peer).unwrap_or(GONE))
                })
                .collect(),
        ),
        ArchivedVerdict::Hold(until) => Verdict::Hold(*until),
        ArchivedVerdict::Reject(reason) => Verdict::Reject(*reason),
    }
}
