//! Tries a policy document on messages, compared to the live chain and without effects.

use crate::binding_requests::chain;
use crate::explain::hypothetical_message;
use crate::hook_service::HookService;
use crate::problems::{hook_problem, unprocessable};
use crate::replays::{UNKNOWN_PEER, archived_message, needs_texts, screening_as_routing};
use crate::traces::describe_routing;
use admin::{Problem, ProblemKind};
use api::{
    PolicyTryRequest, PolicyTryView, TriedDecisionView, TriedHostCallView, TriedLegView, TriedMessageView,
};
use archive::ArchivedMessage;
use bytes::Bytes;
use hooks::{Binding, DryRun, HostAnswer, ScreenDecision, ScreenOutcome, TracedDryRun};
use model::{
    Directory, Hook, Message, MessageChanges, NumberDisplay, PluginVersion, Quote, RejectReason,
    RoutingDecision, ScreenVerdict, SenderRequest, Text, Timestamp, Verdict,
};
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of messages per request.
const MAX_MESSAGES: usize = 100;

/// Time after which no further message is tried. A request waits as long for another try to end.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(10);

/// A message, with the recorded inputs of its routers.
pub(crate) struct Question {
    pub(crate) message: Message,
    pub(crate) origin: Arc<str>,
    pub(crate) at: Timestamp,
    /// The recorded answers of the host; `None` for a hypothetical message.
    pub(crate) host_calls: Option<Bytes>,
    /// Reason why the decision may differ from the original one; `None` if it is exact.
    pub(crate) inexact: Option<String>,
}

/// Started chains.
enum TrialChains {
    /// Only screens: routing a message that passes them is another question. `None`: no screen is bound, so all
    /// messages pass.
    Screens(Option<DryRun>),
    /// Routers and biller.
    Routing { router: DryRun, biller: Option<DryRun> },
}

impl TrialChains {
    fn start(service: &HookService, router: &[Binding], biller: &[Binding]) -> Result<Self, Problem> {
        let hooks = &service.routing.hooks;
        let start =
            |hook, chain: &[Binding]| hooks.try_run(hook, chain).map_err(|error| hook_problem(&error));
        let biller = (!biller.is_empty()).then(|| start(Hook::Biller, biller)).transpose()?;
        Ok(Self::Routing { router: start(Hook::Router, router)?, biller })
    }

    fn start_screens(service: &HookService, screens: &[Binding]) -> Result<Self, Problem> {
        let start = || service.routing.hooks.try_run(Hook::Screen, screens);
        let started = (!screens.is_empty()).then(start).transpose();
        started.map(Self::Screens).map_err(|error| hook_problem(&error))
    }

    /// References of the tried policies to names that do not exist now.
    fn unknown(&self, hook: Hook) -> Vec<api::UnknownReference> {
        match self {
            Self::Screens(screens) => screens.as_ref().map(DryRun::unknown).unwrap_or_default(),
            Self::Routing { router, .. } if hook == Hook::Router => router.unknown(),
            Self::Routing { biller, .. } => biller.as_ref().map(DryRun::unknown).unwrap_or_default(),
        }
    }
}

/// The parts of a decision that are compared.
#[derive(PartialEq)]
struct Decided {
    verdict: Verdict,
    sender: Option<Box<SenderRequest>>,
    changes: Option<Box<MessageChanges>>,
    charge: Option<(Arc<str>, u64)>,
    /// Replacement text of a screen.
    text: Option<Text>,
    fault: Option<String>,
}

impl HookService {
    /// Decides about the messages by the requested chain and by the live one. `numbers`: how numbers of archived
    /// messages are shown, and those in their texts for plugins that read texts.
    pub(crate) fn try_document(
        &self,
        hook: Hook,
        request: PolicyTryRequest,
        numbers: NumberDisplay,
    ) -> Result<PolicyTryView, Problem> {
        let PolicyTryRequest { messages, last, message, activation } = request;
        if messages.as_ref().is_some_and(Vec::is_empty) && last.is_none() && message.is_none() {
            return check(self, hook, activation);
        }
        if !matches!(hook, Hook::Screen | Hook::Router | Hook::Biller) {
            return Err(unprocessable(format!(
                "policies of the hooks screen, router and biller can be tried, not of {}; `switchyard plugin test` runs cases of it",
                hook.name()
            )));
        }
        let live = |hook| self.routing.hooks.status(hook).live.chain;
        let (live_router, live_biller) = (live(Hook::Router), live(Hook::Biller));
        let live_screens = live(Hook::Screen);
        let live_chain = match hook {
            Hook::Screen => &live_screens,
            Hook::Router => &live_router,
            _ => &live_biller,
        };
        let tried_chain = chain(activation, live_chain)?;
        let Some(_turn) = self.replays.trying.try_lock_for(TIME_LIMIT) else { return Err(busy()) };
        let tried = match hook {
            Hook::Screen => TrialChains::start_screens(self, &tried_chain)?,
            Hook::Router => TrialChains::start(self, &tried_chain, &live_biller)?,
            _ => TrialChains::start(self, &live_router, &tried_chain)?,
        };
        let questions =
            questions(self, hook, (messages, last, message), &[&tried_chain, live_chain], (numbers, false))?;
        let live = match hook {
            Hook::Screen => TrialChains::start_screens(self, &live_screens)?,
            _ => TrialChains::start(self, &live_router, &live_biller)?,
        };
        let started = Instant::now();
        let count = questions.len();
        let mut results = Vec::with_capacity(count);
        for question in questions {
            if started.elapsed() > TIME_LIMIT {
                break;
            }
            results.push(compare(self, hook, (&tried, &live), question, numbers));
        }
        Ok(PolicyTryView {
            hook,
            plugins: names(&tried_chain),
            live: names(live_chain),
            unknown: tried.unknown(hook),
            different: results.iter().filter(|result| result.different).count() as u64,
            complete: results.len() == count,
            messages: results,
        })
    }
}

/// Checks that the plugins accept their policy documents.
fn check(
    service: &HookService,
    hook: Hook,
    activation: api::ActivationRequest,
) -> Result<PolicyTryView, Problem> {
    let hooks = &service.routing.hooks;
    let live_chain = hooks.status(hook).live.chain;
    let checked_chain = chain(activation, &live_chain)?;
    let Some(_turn) = service.replays.trying.try_lock_for(TIME_LIMIT) else { return Err(busy()) };
    let checked = hooks.try_run(hook, &checked_chain).map_err(|error| hook_problem(&error))?;
    Ok(PolicyTryView {
        hook,
        plugins: names(&checked_chain),
        live: names(&live_chain),
        unknown: checked.unknown(),
        messages: Vec::new(),
        different: 0,
        complete: true,
    })
}

/// The messages of a request: those that it contains, or the newest ones of the archive. Archived messages have their
/// texts if `with_texts` is set or a plugin reads texts, and if the caller may read them.
pub(crate) fn questions(
    service: &HookService,
    hook: Hook,
    requested: (Option<Vec<api::ExplainRequest>>, Option<u64>, Option<String>),
    chains: &[&[Binding]],
    (numbers, with_texts): (NumberDisplay, bool),
) -> Result<Vec<Question>, Problem> {
    match requested {
        (Some(messages), None, None) if (1..=MAX_MESSAGES).contains(&messages.len()) => {
            messages.iter().map(|message| hypothetical(service, message)).collect()
        }
        (None, Some(last), None) if (1..=MAX_MESSAGES as u64).contains(&last) => {
            archived(service, hook, Selected::Last(last), chains, (numbers, with_texts))
        }
        (None, None, Some(id)) => archived(service, hook, Selected::Id(&id), chains, (numbers, with_texts)),
        _ => Err(unprocessable(format!(
            "needs `messages`, a list of 1 to {MAX_MESSAGES}, or `last`, a number from 1 to {MAX_MESSAGES}, or `message`, the id \
             of an archived message"
        ))),
    }
}

pub(crate) fn busy() -> Problem {
    Problem::new(ProblemKind::Conflict, "another policy is being tried: try again in a few seconds")
}

fn names(chain: &[Binding]) -> Vec<api::PluginVersionName> {
    let name = |binding: &Binding| api::PluginVersionName {
        plugin: binding.plugin.clone(),
        version: binding.version.clone(),
    };
    chain.iter().map(name).collect()
}

fn hypothetical(service: &HookService, asked: &api::ExplainRequest) -> Result<Question, Problem> {
    let message = hypothetical_message(&service.directory.load(), asked)?;
    let (origin, at) = (asked.origin.as_str().into(), message.accepted_at);
    Ok(Question { message, origin, at, host_calls: None, inexact: None })
}

/// The archived messages of a request.
#[derive(Clone, Copy)]
enum Selected<'a> {
    /// The given number of newest messages.
    Last(u64),
    /// The message with this id.
    Id(&'a str),
}

/// The archived message with this id, and its text.
pub(crate) fn archived_by_id(service: &HookService, id: &str) -> Result<ArchivedMessage, Problem> {
    let unknown = || {
        let what = format!(
            "message {id} is not in the archive: it is not finished, or was deleted after its retention"
        );
        Problem::new(ProblemKind::NotFound, what)
    };
    let number = id.parse().map_err(|_| unknown())?;
    service.replays.archived(number)?.ok_or_else(unknown)
}

fn archived(
    service: &HookService,
    hook: Hook,
    selected: Selected<'_>,
    chains: &[&[Binding]],
    (numbers, with_texts): (NumberDisplay, bool),
) -> Result<Vec<Question>, Problem> {
    let mut reads_texts = with_texts;
    for chain in chains {
        reads_texts |= needs_texts(&service.routing.hooks, chain)?;
    }
    let unknown_version = Arc::new(PluginVersion { plugin: String::new(), version: String::new() });
    let with_body = reads_texts && numbers == NumberDisplay::Whole;
    let found = match selected {
        Selected::Last(last) => service.replays.newest(last, with_body)?,
        Selected::Id(id) => {
            let mut found = archived_by_id(service, id)?;
            found.body = found.body.filter(|_| with_body);
            vec![found]
        }
    };
    let directory = service.directory.load();
    Ok(found
        .into_iter()
        .map(|archived| {
            let origin = directory.id(&archived.origin);
            let inexact = match (origin, archived.missing) {
                (None, _) => Some("an unknown account or peer".to_owned()),
                (_, Some(missing)) => Some(missing.name().to_owned()),
                _ if reads_texts && numbers == NumberDisplay::Masked => {
                    Some("a text that you may not read".to_owned())
                }
                _ if hook == Hook::Screen
                    && archived.screening.as_ref().is_some_and(|screening| screening.has_replaced_text) =>
                {
                    Some("a screen replaced the text".to_owned())
                }
                _ => None,
            };
            let mut message = archived_message(&archived, origin.unwrap_or(UNKNOWN_PEER), &unknown_version);
            let (at, host_calls) = match hook {
                Hook::Screen => {
                    message.routed.screening = None;
                    let screened = archived.screening.and_then(|screening| screening.host_calls);
                    (archived.accepted_at, screened.map(|calls| Bytes::from(calls.into_vec())))
                }
                _ => (archived.decided_at, archived.host_calls),
            };
            let host_calls = Some(host_calls.unwrap_or_default());
            Question { message, origin: archived.origin.clone(), at, host_calls, inexact }
        })
        .collect())
}

fn compare(
    service: &HookService,
    hook: Hook,
    (tried, live): (&TrialChains, &TrialChains),
    question: Question,
    numbers: NumberDisplay,
) -> TriedMessageView {
    let is_archived = question.host_calls.is_some();
    // Whoever typed a message in may see its numbers.
    let numbers = if is_archived { numbers } else { NumberDisplay::Whole };
    let with_keys = numbers == NumberDisplay::Whole;
    let mut question = question;
    if !is_archived && hook != Hook::Screen {
        service.routing.preview_lookup(&mut question.message);
    }
    let (tried_decided, tried, tried_missing) = decide(service, hook, tried, &question, with_keys);
    let (live_decided, live, live_missing) = decide(service, hook, live, &question, with_keys);
    let Question { message, origin, inexact, .. } = question;
    TriedMessageView {
        id: is_archived.then(|| message.id.to_string()),
        origin: origin.to_string(),
        source: numbers.address(&message.source),
        destination: numbers.address(&message.destination),
        tried,
        live,
        different: tried_decided != live_decided,
        inexact: inexact.or_else(|| tried_missing.or(live_missing).map(str::to_owned)),
    }
}

/// Decides about a message by these chains. Returns the compared parts, the view, and the first kind of host call that
/// was not recorded.
fn decide(
    service: &HookService,
    hook: Hook,
    chains: &TrialChains,
    question: &Question,
    with_keys: bool,
) -> (Decided, TriedDecisionView, Option<&'static str>) {
    let (router, biller) = match chains {
        TrialChains::Screens(screens) => return decide_screening(screens.as_ref(), question, with_keys),
        TrialChains::Routing { router, biller } => (router, biller),
    };
    let Question { message, at, host_calls, .. } = question;
    let mut traced: Option<TracedDryRun> = None;
    let (mut cpu, mut fault) = (Duration::ZERO, None);
    let mut routed = service.routing.route_by(message, || {
        let (result, took) = timed(|| router.trace_route(message, *at, host_calls.as_deref()));
        cpu = took;
        let unknown_version =
            || Arc::new(PluginVersion { plugin: "none".to_owned(), version: String::new() });
        let by = result.by.clone().unwrap_or_else(unknown_version);
        let outcome = traced.insert(result).outcome.clone();
        let verdict = match outcome.verdict {
            Ok(verdict) => verdict.unwrap_or(Verdict::Reject(RejectReason::NoRoute)),
            Err(failed) => {
                fault = Some(format!("{}: {}", failed.kind.name(), failed.summary()));
                Verdict::Reject(RejectReason::Fault)
            }
        };
        let changes = outcome.changes.filter(|_| matches!(verdict, Verdict::Forward(_)));
        RoutingDecision {
            note: outcome.note,
            sender: outcome.sender,
            changes,
            ..RoutingDecision::new(verdict, by)
        }
    });
    if hook == Hook::Biller {
        cpu = Duration::ZERO;
    }
    let mut price = None;
    if let (Some(biller), Verdict::Forward(legs)) = (biller, &routed.verdict)
        && service.routing.peer_roles.load().is_account(message.origin)
    {
        let first = legs.iter().filter(|leg| !leg.resolve).min_by_key(|leg| leg.rank);
        let (priced, took) = timed(|| biller.price(message, first, *at));
        if hook == Hook::Biller {
            cpu = took;
        }
        match priced {
            Ok(Ok(quote)) => price = Some(quote),
            Ok(Err(note)) => {
                routed.verdict = Verdict::Reject(RejectReason::NoCredit);
                routed.note = note;
            }
            Err(failed) => fault = Some(format!("{}: {}", failed.kind.name(), failed.summary())),
        }
    }
    let missing = traced.as_ref().and_then(|traced| traced.outcome.missing);
    let host_answers = traced.map(|traced| traced.host_answers).unwrap_or_default();
    let view = TriedDecisionView {
        by: Some(format!("{} {}", routed.by.plugin, routed.by.version).trim_end().to_owned()),
        decision: match &fault {
            Some(_) => "fault".to_owned(),
            None => describe_routing(
                &service.directory.load(),
                &routed.verdict,
                routed.sender.as_deref(),
                routed.changes.as_deref(),
            ),
        },
        note: routed.note.as_deref().map(str::to_owned),
        legs: legs(&service.directory.load(), &routed.verdict),
        price: price.as_ref().map(price_view),
        fault: fault.clone(),
        host_calls: host_answers.into_iter().map(|answer| host_call(answer, with_keys)).collect(),
        cpu_ns: u64::try_from(cpu.as_nanos()).unwrap_or(u64::MAX),
    };
    let charge = price.and_then(|quote| quote.charge).map(|charge| (charge.account, charge.amount));
    let RoutingDecision { verdict, sender, changes, .. } = routed;
    (Decided { verdict, sender, changes, charge, text: None, fault }, view, missing)
}

/// As [`decide`], by screens.
fn decide_screening(
    screens: Option<&DryRun>,
    Question { message, at, host_calls, .. }: &Question,
    with_keys: bool,
) -> (Decided, TriedDecisionView, Option<&'static str>) {
    let (traced, cpu) = timed(|| {
        screens.map_or_else(
            || TracedDryRun {
                outcome: ScreenOutcome { decision: Ok(None), missing: None, call_log: None },
                by: None,
                host_answers: Vec::new(),
            },
            |screens| screens.trace_screen(message, *at, host_calls.as_deref()),
        )
    });
    let TracedDryRun { outcome: ScreenOutcome { decision, missing, .. }, by, host_answers } = traced;
    let passed = ScreenDecision { verdict: ScreenVerdict::Pass, changes: None, text: None, note: None };
    let (decision, fault) = match decision {
        Ok(decision) => (decision.unwrap_or(passed), None),
        Err(failed) => (passed, Some(format!("{}: {}", failed.kind.name(), failed.summary()))),
    };
    let view = TriedDecisionView {
        by: by.map(|by| format!("{} {}", by.plugin, by.version)),
        decision: if fault.is_some() { "fault".to_owned() } else { decision.to_string() },
        note: decision.note.as_deref().map(str::to_owned),
        legs: Vec::new(),
        price: None,
        fault: fault.clone(),
        host_calls: host_answers.into_iter().map(|answer| host_call(answer, with_keys)).collect(),
        cpu_ns: u64::try_from(cpu.as_nanos()).unwrap_or(u64::MAX),
    };
    let ScreenDecision { verdict, changes, text, .. } = decision;
    let verdict = screening_as_routing(verdict);
    (Decided { verdict, sender: None, changes, charge: None, text, fault }, view, missing)
}

/// Calls a function and measures its CPU time on this thread.
fn timed<T>(call: impl FnOnce() -> T) -> (T, Duration) {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
    };
    let started = now();
    let result = call();
    (result, now().saturating_sub(started))
}

fn legs(directory: &Directory, verdict: &Verdict) -> Vec<TriedLegView> {
    let Verdict::Forward(legs) = verdict else { return Vec::new() };
    let view = |leg: &model::Leg| TriedLegView {
        peer: directory.name(leg.peer).to_string(),
        rank: leg.rank,
        weight: leg.weight,
        cost: leg.cost,
    };
    legs.iter().map(view).collect()
}

fn price_view(quote: &Quote) -> api::PriceView {
    api::PriceView {
        plugin: quote.by.plugin.clone(),
        version: quote.by.version.clone(),
        note: quote.note.as_deref().map(str::to_owned),
        account: quote.charge.as_ref().map(|charge| charge.account.to_string()),
        amount: quote.charge.as_ref().map_or(0, |charge| charge.amount),
    }
}

/// A host call for display. Keys can be subscribers' numbers, so they are left out for callers who may not see numbers.
fn host_call(answer: HostAnswer, with_keys: bool) -> TriedHostCallView {
    let key = |key: String| with_keys.then_some(key);
    let (call, name, key, answer) = match answer {
        HostAnswer::Peer(name, None) => ("peer", name, None, "unknown".to_owned()),
        HostAnswer::Peer(name, Some(state)) => {
            let plural = if state.links == 1 { "" } else { "s" };
            ("peer", name, None, format!("{} link{plural}, {} queued", state.links, state.queued))
        }
        HostAnswer::Pool(name, None) => ("pool", name, None, "unknown".to_owned()),
        HostAnswer::Pool(name, Some(state)) => {
            let answer = format!("{} of {} ready, {} busy", state.ready, state.total, state.busy);
            ("pool", name, None, answer)
        }
        HostAnswer::Counter { name, key: counted, before, .. } => {
            ("counter", name, key(counted), format!("{before} before the call"))
        }
        HostAnswer::Table(name, looked_up, value) => {
            ("table", name, key(looked_up), value.unwrap_or_else(|| "no row".to_owned()))
        }
        HostAnswer::Quality { peer, value, figures, .. } => {
            let answer = format!("{} accepted, {} delivered", figures.accepted, figures.delivered);
            ("quality", peer, key(value), answer)
        }
        HostAnswer::Attribute(name, value) => {
            ("attribute", name, None, value.unwrap_or_else(|| "none".to_owned()))
        }
    };
    TriedHostCallView { call: call.to_owned(), name, key, answer }
}
