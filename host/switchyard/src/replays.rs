//! Replays: runs archived messages through candidate plugins.

mod call_candidate;
mod request_differences;
mod trace_calls;

use crate::arguments::time;
use crate::binding_requests::chain;

use crate::replays::call_candidate::{CallCandidate, CallChain};
use crate::routing::ApplianceRouting;
use admin::{Problem, ProblemKind};
use arc_swap::ArcSwap;
use archive::{Archive, ArchivedMessage, DecisionDecoder, ReplayRange};
use bytes::Bytes;
use hooks::{Binding, DryRun, DryRunOutcome, Hooks, LookupOutcome, NumberAnswer, ScreenOutcome};
use model::{
    Directory, Hook, Lookup, LookupNumber, LookupResult, Message, MessageChanges, MessageId, MessageKind,
    NumberDisplay, PeerId, PluginVersion, Priority, Quote, RejectReason, RoutingDecision, ScreenVerdict,
    Screening, Text, Timestamp, Verdict,
};
use parking_lot::Mutex;
use replay::{
    ArchiveSource, Candidate, CandidateDecision, CandidatePrice, CandidateVerdict, MessageBatch,
    MessageSource as _, ReplayOptions, RunningReplay,
};
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Maximum number of replays whose reports are kept.
const MAX_REPLAYS: usize = 32;

/// Maximum of `last`: finding the first message requires a count.
const MAX_LAST: u64 = 1_000_000;

/// All replays since the start.
pub(crate) struct Replays {
    archive: Option<Archive>,
    all: Mutex<ReplayTable>,
    /// Held while a policy is tried, so that concurrent tries cannot take all instances.
    pub(crate) trying: Mutex<()>,
}

#[derive(Default)]
struct ReplayTable {
    next: u64,
    running: BTreeMap<u64, StartedReplay>,
}

struct StartedReplay {
    hook: Hook,
    chain: Vec<Binding>,
    range: ReplayRange,
    begun: Timestamp,
    running: RunningReplay,
}

fn unknown_replay(id: &str) -> Problem {
    Problem::new(ProblemKind::NotFound, format!("replay {id:?} does not exist"))
}

fn bad_request(what: impl Into<String>) -> Problem {
    Problem::new(ProblemKind::BadRequest, what)
}

fn no_archive() -> Problem {
    let what = "there is no archive to replay from: configure [archive] url";
    Problem::new(ProblemKind::Conflict, what)
}

fn internal(error: &impl ToString) -> Problem {
    Problem::new(ProblemKind::Internal, error.to_string())
}

fn moment(value: Option<api::TimeValue>, name: &str) -> Result<Option<Timestamp>, Problem> {
    let value = match value {
        None => return Ok(None),
        Some(api::TimeValue::Text(text)) => time(&text),
        Some(api::TimeValue::Milliseconds(ms)) => Some(Timestamp(ms)),
    };
    let what = "must be a time such as 2026-11-20T20:32:25Z, or milliseconds since the epoch";
    value.map(Some).ok_or_else(|| bad_request(format!("`{name}` {what}")))
}

/// Whether a plugin of the chain reads texts. Loading them costs more than everything else.
pub(crate) fn needs_texts(hooks: &Hooks, chain: &[Binding]) -> Result<bool, Problem> {
    let versions = hooks.versions().map_err(|error| internal(&error))?;
    Ok(chain.iter().any(|binding| {
        versions
            .iter()
            .filter(|info| info.plugin == binding.plugin && info.version == binding.version)
            .flat_map(|info| &info.imports)
            .any(|import| TEXT_INTERFACES.iter().any(|interface| import.starts_with(interface)))
    }))
}

impl Replays {
    pub(crate) fn new(archive: Option<Archive>) -> Self {
        Self { archive, all: Mutex::default(), trying: Mutex::default() }
    }

    /// Starts a replay.
    pub(crate) fn begin(
        &self,
        (routing, directory): (&Arc<ApplianceRouting>, &Arc<ArcSwap<Directory>>),
        request: api::ReplayRequest,
    ) -> Result<api::ReplayStart, Problem> {
        let Some(archive) = &self.archive else {
            return Err(no_archive());
        };
        let api::ReplayRequest { hook, from, until, limit, last, threads, activation } = request;
        let (from, until) = (moment(from, "from")?, moment(until, "until")?);
        for (name, number) in [("limit", limit), ("last", last), ("threads", threads)] {
            if number == Some(0) {
                return Err(bad_request(format!("`{name}` must be a number, at least 1")));
            }
        }
        if last.is_some_and(|last| last > MAX_LAST) {
            return Err(bad_request(format!(
                "`last` must be a number from 1 to {MAX_LAST}; for more, set `from`"
            )));
        }
        let hook = match hook {
            None | Some(api::ReplayHook::Router) => Hook::Router,
            Some(api::ReplayHook::Biller) => Hook::Biller,
            Some(api::ReplayHook::Screen) => Hook::Screen,
            Some(api::ReplayHook::Lookup) => Hook::Lookup,
            Some(api::ReplayHook::Receipt) => Hook::Receipt,
            Some(api::ReplayHook::Peer) => Hook::Peer,
        };
        let hooks = &routing.hooks;
        let live = |hook| hooks.status(hook).live.chain;
        let live_chain = live(hook);
        let mut chain = chain(activation, &live_chain)?;
        if hook == Hook::Peer && chain.iter().any(|binding| !live_chain.contains(binding)) {
            // Unchanged bindings need no replay.
            chain.retain(|binding| !live_chain.contains(binding));
        }
        let start_trial = |hook, chain: &[Binding]| {
            hooks
                .dry_run(hook, chain)
                .map_err(|error| Problem::new(ProblemKind::Unprocessable, error.to_string()))
        };
        let started = start_trial(hook, &chain)?;
        let biller = live(Hook::Biller);
        let unknown_version = Arc::new(PluginVersion { plugin: String::new(), version: String::new() });
        let of_messages = |chain, biller| -> Arc<dyn Candidate> {
            Arc::new(PluginCandidate {
                chain,
                biller,
                routing: routing.clone(),
                directory: directory.clone(),
                unknown_version: unknown_version.clone(),
            })
        };
        let of_calls = |chain| -> Arc<dyn Candidate> {
            let (directory, unknown_version) = (directory.clone(), unknown_version.clone());
            Arc::new(CallCandidate { chain, directory, unknown_version })
        };
        let candidate = match hook {
            Hook::Screen => of_messages(CandidateChain::Screens(started), None),
            Hook::Lookup => of_messages(CandidateChain::Lookups(started), None),
            Hook::Biller => of_messages(CandidateChain::Archived, Some(started)),
            Hook::Receipt => of_calls(CallChain::Receipts(started)),
            Hook::Peer => {
                let live = if live_chain.is_empty() { None } else { Some(start_trial(hook, &live_chain)?) };
                of_calls(CallChain::Peers { candidate: started, live })
            }
            _ if biller.is_empty() => of_messages(CandidateChain::Routers(started), None),
            _ => {
                let biller = start_trial(Hook::Biller, &biller)?;
                of_messages(CandidateChain::Routers(started), Some(biller))
            }
        };
        let needs_live_texts = hook == Hook::Peer && needs_texts(hooks, &live_chain)?;
        let body = needs_live_texts || needs_texts(hooks, &chain)?;
        let trace = hook == Hook::Receipt;
        let range = ReplayRange { from, until, limit, last, id: None, body, trace };
        let source = ArchiveSource::new(archive, range.clone()).map_err(|error| internal(&error))?;
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads =
            threads.map_or(cores, |threads| usize::try_from(threads).unwrap_or(cores).min(cores * 2));

        let mut all = self.all.lock();
        if all.running.values().any(|started| !started.running.progress().ended) {
            let what = "a replay is already running: wait until it has finished, or DELETE it";
            return Err(Problem::new(ProblemKind::Conflict, what));
        }
        let running = ReplayOptions { threads, ..ReplayOptions::default() };
        let running = running.start(source, &candidate).map_err(|error| internal(&error))?;
        all.next += 1;
        let id = all.next;
        let begun = Timestamp::now();
        tracing::info!(id, hook = hook.name(), plugins = chain.len(), threads, "replay started");
        all.running.insert(id, StartedReplay { hook, chain, range, begun, running });
        if all.running.len() > MAX_REPLAYS {
            all.running.pop_first();
        }
        Ok(api::ReplayStart { id: id.to_string() })
    }

    /// The newest archived messages for which a router was called, oldest first.
    pub(crate) fn newest(&self, last: u64, body: bool) -> Result<Vec<ArchivedMessage>, Problem> {
        let range = ReplayRange { last: Some(last), body, ..ReplayRange::default() };
        let mut newest: VecDeque<_> =
            self.read(range)?.into_iter().filter(|message| message.routed).collect();
        while newest.len() as u64 > last {
            newest.pop_front();
        }
        Ok(newest.into())
    }

    /// The archived message with this id, with its text.
    pub(crate) fn archived(&self, id: MessageId) -> Result<Option<ArchivedMessage>, Problem> {
        let range = ReplayRange { id: Some(id), body: true, ..ReplayRange::default() };
        Ok(self.read(range)?.pop())
    }

    fn read(&self, range: ReplayRange) -> Result<Vec<ArchivedMessage>, Problem> {
        let archive = self.archive.as_ref().ok_or_else(no_archive)?;
        let mut source = ArchiveSource::new(archive, range).map_err(|error| internal(&error))?;
        let mut decoder = DecisionDecoder::new();
        let mut found = Vec::new();
        while let Some(batch) = source.next().map_err(|error| internal(&error))? {
            let messages: Vec<_> = match batch {
                MessageBatch::Raw(batch) => batch.decode(&mut decoder).collect(),
                MessageBatch::Ready(messages) => messages.into_iter().map(Ok).collect(),
            };
            for message in messages {
                match message {
                    Ok(message) => found.push(message),
                    Err(error) => tracing::warn!(%error, "message not readable"),
                }
            }
        }
        Ok(found)
    }

    pub(crate) fn all(&self) -> Vec<api::ReplayStateView> {
        let all = self.all.lock();
        all.running.iter().rev().map(|(id, started)| replay_state(*id, started, false)).collect()
    }

    pub(crate) fn report(
        &self,
        id: &str,
        numbers: NumberDisplay,
        texts: bool,
    ) -> Result<api::ReplayStateView, Problem> {
        let number: u64 = id.parse().map_err(|_| unknown_replay(id))?;
        let all = self.all.lock();
        let started = all.running.get(&number).ok_or_else(|| unknown_replay(id))?;
        let mut state = replay_state(number, started, true);
        let groups = state.report.iter_mut().flatten().flat_map(|report| &mut report.groups);
        for example in groups.flat_map(|group| &mut group.examples) {
            example.source = numbers.text(std::mem::take(&mut example.source));
            example.destination = numbers.text(std::mem::take(&mut example.destination));
            if !texts {
                // URLs and bodies contain the number and the text.
                for difference in &mut example.request {
                    (difference.live, difference.candidate) = (None, None);
                }
            }
        }
        Ok(state)
    }

    pub(crate) fn end(&self, id: &str) -> Result<(), Problem> {
        let number: u64 = id.parse().map_err(|_| unknown_replay(id))?;
        let all = self.all.lock();
        all.running.get(&number).ok_or_else(|| unknown_replay(id))?.running.cancel();
        Ok(())
    }

    /// Cancels all replays at shutdown.
    pub(crate) fn end_all(&self) {
        for started in self.all.lock().running.values() {
            started.running.cancel();
        }
    }
}

fn replay_state(id: u64, started: &StartedReplay, with_report: bool) -> api::ReplayStateView {
    let report = started.running.report();
    let state = match report.as_deref().map(|report| &report.ended) {
        None => api::ReplayPhase::Running,
        Some(api::ReplayOutcome::Failed { .. }) => api::ReplayPhase::Failed,
        Some(_) => api::ReplayPhase::Done,
    };
    let name = |binding: &Binding| api::PluginVersionName {
        plugin: binding.plugin.clone(),
        version: binding.version.clone(),
    };
    let ReplayRange { from, until, limit, last, .. } = started.range;
    api::ReplayStateView {
        id: id.to_string(),
        state,
        hook: started.hook,
        plugins: started.chain.iter().map(name).collect(),
        from: from.map(|at| at.0),
        until: until.map(|at| at.0),
        limit,
        last,
        started: started.begun.0,
        progress: started.running.progress(),
        report: with_report.then(|| report.as_deref().cloned()),
    }
}

/// The interfaces whose functions depend on the text.
const TEXT_INTERFACES: [&str; 2] = ["switchyard:hooks/body@", "switchyard:hooks/details@"];

/// The plugins of a replay.
enum CandidateChain {
    Screens(DryRun),
    /// Lookups. Only messages that waited for their lookup are replayed: others had a cached answer.
    Lookups(DryRun),
    Routers(DryRun),
    /// The archived verdict is kept and priced again.
    Archived,
}

/// A candidate plugin, followed by the daemon's own routing rules as in live routing.
struct PluginCandidate {
    chain: CandidateChain,
    biller: Option<DryRun>,
    routing: Arc<ApplianceRouting>,
    directory: Arc<ArcSwap<Directory>>,
    unknown_version: Arc<PluginVersion>,
}

/// Placeholder for texts that no plugin reads. A static, because threads would contend for the reference count of a
/// heap buffer.
static BLANK_TEXT: [u8; u16::MAX as usize] = [b' '; u16::MAX as usize];

/// The placeholder of an unknown peer.
pub(crate) const UNKNOWN_PEER: PeerId = PeerId(u32::MAX);

/// The message before its routing, rebuilt from the archive with the fields that routers see.
pub(crate) fn archived_message(
    archived: &ArchivedMessage,
    origin: PeerId,
    unknown_version: &Arc<PluginVersion>,
) -> Message {
    let length = archived.length as usize;
    let blank = || Bytes::from_static(&BLANK_TEXT[..length.min(BLANK_TEXT.len())]);
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
        dlr_request: archived.dlr_request,
        replace_if_present: false,
        submission: None,
        text: Text { octets, data_coding: archived.data_coding, udhi: archived.udhi, payload: false },
        tlvs: Bytes::new(),
        protocol_fields: Bytes::new(),
        sealed: None,
        accepted_at: archived.accepted_at,
        scheduled: None,
        expires_at: archived.accepted_at,
        routed: RoutingDecision {
            screening: archived.screening.as_ref().map(|screening| {
                Box::new(Screening {
                    verdict: screening.verdict,
                    by: screening.by.clone(),
                    note: None,
                    changes: screening.changes.clone(),
                    submitted_text: None,
                    host_calls: None,
                })
            }),
            lookup: archived.lookup.clone(),
            ..RoutingDecision::new(Verdict::Reject(RejectReason::NoRoute), unknown_version.clone())
        },
    }
}

/// The message after its routing, rebuilt from the archive, and whether its account or peer is unknown now.
pub(crate) fn routed_message(
    archived: &ArchivedMessage,
    directory: &Directory,
    unknown_version: &Arc<PluginVersion>,
) -> (Message, bool) {
    let id = |peer: &Arc<str>| directory.id(peer);
    let origin = id(&archived.origin);
    let mut message = archived_message(archived, origin.unwrap_or(UNKNOWN_PEER), unknown_version);
    message.routed.changes.clone_from(&archived.changes);
    message.routed.verdict = archived.verdict.map_peers(|peer| id(peer).unwrap_or(UNKNOWN_PEER));
    (message, origin.is_none())
}

impl PluginCandidate {
    /// The candidate router's verdict, after the daemon's own rules.
    fn verdict(
        &self,
        router: &DryRun,
        archived: &ArchivedMessage,
        message: &mut Message,
    ) -> CandidateDecision {
        let host_calls = archived.host_calls.as_deref().unwrap_or_default();
        let DryRunOutcome { verdict, sender, changes, note, missing, .. } =
            router.route(message, archived.decided_at, Some(host_calls));
        let verdict = match verdict {
            Ok(verdict) => verdict.unwrap_or(Verdict::Reject(RejectReason::NoRoute)),
            Err(fault) => {
                let mut judged =
                    CandidateDecision::new(CandidateVerdict::Fault(Cow::Borrowed(fault.kind.name())));
                judged.note = Some(fault.summary().into());
                return judged;
            }
        };
        let changes = changes.filter(|_| matches!(verdict, Verdict::Forward(_)));
        let routed = RoutingDecision {
            note,
            sender,
            changes,
            ..RoutingDecision::new(verdict, self.unknown_version.clone())
        };
        message.routed = self.routing.apply_own_rules(message, routed);
        let mut judged = CandidateDecision::new(self.named(&message.routed.verdict));
        judged.sender = message.routed.sender.take();
        judged.changes.clone_from(&message.routed.changes);
        judged.note = message.routed.note.take();
        judged.inexact_because = missing.map(Cow::Borrowed);
        judged
    }

    /// The verdict of the candidate screens.
    fn screening(
        &self,
        screens: &DryRun,
        archived: &ArchivedMessage,
        message: &mut Message,
    ) -> CandidateDecision {
        message.routed.screening = None;
        let host_calls = archived.screening.as_ref().and_then(|screening| screening.host_calls.as_deref());
        let ScreenOutcome { decision, missing, .. } =
            screens.screen(message, archived.accepted_at, Some(host_calls.unwrap_or_default()));
        let decision = match decision {
            Ok(decision) => decision,
            Err(fault) => {
                let mut judged =
                    CandidateDecision::new(CandidateVerdict::Fault(Cow::Borrowed(fault.kind.name())));
                judged.note = Some(fault.summary().into());
                return judged;
            }
        };
        let verdict = decision.as_ref().map_or(ScreenVerdict::Pass, |decision| decision.verdict);
        message.routed.verdict = screening_as_routing(verdict);
        let mut judged = CandidateDecision::new(self.named(&message.routed.verdict));
        if let Some(decision) = decision {
            (judged.changes, judged.note) = (decision.changes, decision.note);
        }
        let replaced = archived.screening.as_ref().is_some_and(|screening| screening.has_replaced_text);
        judged.inexact_because = if replaced {
            Some(Cow::Borrowed("a screen replaced the text"))
        } else {
            missing.map(Cow::Borrowed)
        };
        judged
    }

    /// The answer of the candidate lookups about the message's number.
    fn look_up(lookups: &DryRun, archived: &ArchivedMessage) -> CandidateDecision {
        let host_calls = archived.lookup.as_ref().and_then(|lookup| lookup.host_calls.as_deref());
        let number = LookupNumber::of(&archived.destination);
        let Some(number) = number else { return CandidateDecision::new(CandidateVerdict::Pass) };
        let LookupOutcome { answer, missing } =
            lookups.look_up_again(&number, archived.decided_at, host_calls.unwrap_or_default());
        let mut judged = match answer {
            Ok(NumberAnswer { result, attributes, note, .. }) => {
                let decided = CandidateVerdict::Decided(Verdict::Forward(Vec::new()));
                let failed = CandidateVerdict::Fault(Cow::Borrowed("try later"));
                let verdict = if result == LookupResult::Failed { failed } else { decided };
                let mut judged = CandidateDecision::new(verdict);
                (judged.changes, judged.note) = (attributes_as_changes(&attributes), note);
                judged
            }
            Err(fault) => {
                let mut judged =
                    CandidateDecision::new(CandidateVerdict::Fault(Cow::Borrowed(fault.kind.name())));
                judged.note = Some(fault.summary().into());
                judged
            }
        };
        judged.inexact_because = missing.map(Cow::Borrowed);
        judged
    }

    fn named(&self, verdict: &Verdict) -> CandidateVerdict {
        let directory = self.directory.load();
        CandidateVerdict::Decided(verdict.map_peers(|peer| directory.name(*peer)))
    }

    fn price(&self, archived: &ArchivedMessage, message: &Message, judged: &mut CandidateDecision) {
        let (Some(biller), Verdict::Forward(legs)) = (&self.biller, &message.routed.verdict) else { return };
        if !self.routing.peer_roles.load().is_account(message.origin) {
            return;
        }
        let first = legs.iter().filter(|leg| !leg.resolve).min_by_key(|leg| leg.rank);
        match biller.price(message, first, archived.decided_at) {
            Ok(Ok(Quote { charge: None, .. })) => judged.price = Some(CandidatePrice::Free),
            Ok(Ok(Quote { charge: Some(charge), .. })) => {
                judged.price =
                    Some(CandidatePrice::Charge { account: charge.account, amount: charge.amount });
            }
            Ok(Err(note)) => {
                judged.price = Some(CandidatePrice::Refuse);
                judged.note = note;
            }
            Err(fault) => {
                judged.verdict = CandidateVerdict::Fault(Cow::Borrowed(fault.kind.name()));
                judged.note = Some(fault.what.into());
            }
        }
    }
}

/// The verdict of screens in the form of a routing verdict: without legs if the message passed.
pub(crate) fn screening_as_routing<P>(verdict: ScreenVerdict) -> Verdict<P> {
    verdict.verdict_without_routing().unwrap_or(Verdict::Forward(Vec::new()))
}

/// The attributes of a number, in the form of a router's changes.
fn attributes_as_changes(attributes: &[(Box<str>, Box<str>)]) -> Option<Box<MessageChanges>> {
    let mut changes = MessageChanges::default();
    let mut sorted = attributes.to_vec();
    // Their order has no meaning.
    sorted.sort();
    for (name, value) in sorted {
        changes.set_attribute(name, value);
    }
    (!attributes.is_empty()).then(|| Box::new(changes))
}

impl Candidate for PluginCandidate {
    fn select_decision(&self, message: &mut ArchivedMessage) {
        if matches!(self.chain, CandidateChain::Lookups(_)) {
            let waited = |lookup: &&Arc<Lookup>| !lookup.cached && lookup.result != LookupResult::Failed;
            let lookup = message.lookup.as_ref().filter(waited);
            message.routed = lookup.is_some();
            message.changes = lookup.and_then(|lookup| attributes_as_changes(&lookup.attributes));
            message.verdict = Verdict::Forward(Vec::new());
            message.sender = None;
        }
        if matches!(self.chain, CandidateChain::Screens(_)) {
            let screening = message.screening.as_deref();
            let verdict = screening.map_or(ScreenVerdict::Pass, |screening| screening.verdict);
            message.verdict = screening_as_routing(verdict);
            message.changes = screening.and_then(|screening| screening.changes.clone());
            message.sender = None;
            message.routed |= screening.is_some();
        }
    }

    fn decide(&self, archived: &ArchivedMessage) -> CandidateDecision {
        let origin = self.directory.load().id(&archived.origin);
        let mut message = archived_message(archived, origin.unwrap_or(UNKNOWN_PEER), &self.unknown_version);
        let mut judged = match &self.chain {
            CandidateChain::Screens(screens) => self.screening(screens, archived, &mut message),
            CandidateChain::Lookups(lookups) => Self::look_up(lookups, archived),
            CandidateChain::Routers(routers) => self.verdict(routers, archived, &mut message),
            CandidateChain::Archived => {
                let directory = self.directory.load();
                message.routed.changes.clone_from(&archived.changes);
                message.routed.verdict =
                    archived.verdict.map_peers(|peer| directory.id(peer).unwrap_or(UNKNOWN_PEER));
                let verdict = self.named(&message.routed.verdict);
                CandidateDecision {
                    sender: archived.sender.clone(),
                    changes: archived.changes.clone(),
                    ..CandidateDecision::new(verdict)
                }
            }
        };
        self.price(archived, &message, &mut judged);
        if origin.is_none() {
            judged.inexact_because = Some(Cow::Borrowed("an unknown account or peer"));
        }
        judged
    }
}
