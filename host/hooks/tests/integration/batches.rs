//! Questions asked in a batch get the same answers as questions asked one by one.

use crate::support::{HooksFixture, NOW, directory, message, options, wait_until, with_long_deadline};
use hooks::{Binding, HooksOptions, InstanceUse, OnFault, Tolerance, TrialMode};
use model::{Hook, Leg, Message, RoutingDecision, Verdict};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::time::Duration;

/// Moods whose calls end soon.
const MOODS: [&str; 11] = [
    "ok",
    "trap",
    "hog",
    "recurse",
    "giant",
    "many-legs",
    "bad-utf8",
    "bad-utf8-peer",
    "unknown-peer",
    "try-later",
    "absurd",
];

/// Batches of each scenario.
const CASES: u32 = 3;

/// Never rolled back: a rollback happens on another thread.
fn without_rollback(binding: Binding) -> Binding {
    let tolerance = Tolerance { faults: 0, window_ms: 1_000 };
    Binding { tolerance, memory: 8 << 20, ..with_long_deadline(binding) }
}

fn on_fault(on_fault: OnFault, binding: Binding) -> Binding {
    Binding { on_fault, ..binding }
}

/// Two hosts in the same state. One is asked one by one, the other about all messages of a batch at once.
struct Pair {
    one: HooksFixture,
    many: HooksFixture,
}

impl Pair {
    fn new() -> Self {
        let open = || HooksFixture::with(HooksOptions { record: true, ..options() });
        Self { one: open(), many: open() }
    }

    fn activate(&self, hook: Hook, chain: impl Fn(&HooksFixture) -> Vec<Binding>) {
        for fixture in [&self.one, &self.many] {
            let chain = chain(fixture).into_iter().map(without_rollback).collect();
            fixture.hooks.activate(hook, NOW, chain, crate::support::FORCED).unwrap();
        }
    }

    fn start_trials(&self, mode: TrialMode, chain: impl Fn(&HooksFixture) -> Vec<Binding>) {
        for fixture in [&self.one, &self.many] {
            let chain = chain(fixture).into_iter().map(without_rollback).collect();
            fixture.hooks.start_trial(Hook::Router, NOW, mode, chain, crate::support::FORCED).unwrap();
        }
    }

    /// Routes the messages on both hosts, and compares all decisions.
    fn route(&self, messages: &[Message]) {
        self.compare_decisions(messages);
        self.compare_counts(Hook::Router);
    }

    fn compare_decisions(&self, messages: &[Message]) {
        let expected: Vec<RoutingDecision> =
            messages.iter().map(|message| self.one.hooks.route(message, NOW)).collect();
        let found = self.many.hooks.route_many(&messages.iter().collect::<Vec<_>>(), NOW);
        assert_eq!(shown(&found), shown(&expected));
    }

    /// Screens the messages on both hosts.
    fn screen(&self, messages: &[Message]) {
        let (mut one, mut many) = (messages.to_vec(), messages.to_vec());
        let expected: Vec<_> = one.iter_mut().map(|message| self.one.hooks.screen(message, NOW)).collect();
        let found = self.many.hooks.screen_many(&mut many.iter_mut().collect::<Vec<_>>(), NOW);
        let shown = |screenings: &[Result<_, Box<RoutingDecision>>], messages: &[Message]| -> Vec<String> {
            let texts =
                messages.iter().map(|message| (&message.text, message.routed.fault_message_id.is_some()));
            screenings.iter().zip(texts).map(|(screening, text)| format!("{screening:?} {text:?}")).collect()
        };
        assert_eq!(shown(&found, &many), shown(&expected, &one));
        self.compare_counts(Hook::Screen);
    }

    /// Prices the messages, which are forwarded, on both hosts.
    fn price(&self, messages: &[Message]) {
        let mut expected = Vec::new();
        for message in messages {
            let mut routed = message.routed.clone();
            self.one.hooks.price(message, &mut routed, NOW);
            expected.push(routed);
        }
        let mut priced = messages.to_vec();
        self.many.hooks.price_many(&mut priced.iter_mut().collect::<Vec<_>>(), NOW);
        let found: Vec<RoutingDecision> = priced.into_iter().map(|message| message.routed).collect();
        assert_eq!(shown(&found), shown(&expected));
        self.compare_counts(Hook::Biller);
    }

    /// Compares calls and faults of each plugin, and the examples of faults.
    fn compare_counts(&self, hook: Hook) {
        let [expected, found] = [&self.one, &self.many].map(|fixture| {
            let counts = fixture.hooks.counts(hook).into_iter();
            let counts: Vec<_> = counts
                .filter(|one| one.live)
                .map(|one| (one.by.plugin.clone(), one.counts.calls, one.counts.faults))
                .collect();
            let mut examples: Vec<_> = fixture
                .hooks
                .faults(hook)
                .into_iter()
                .map(|faulty| {
                    let examples: Vec<_> =
                        faulty.examples.into_iter().map(|one| (one.what, one.question)).collect();
                    (faulty.plugin, faulty.faults, examples)
                })
                .collect();
            examples.sort();
            (counts, examples)
        });
        assert_eq!(found, expected);
    }
}

/// The decisions with all their visible fields.
fn shown(decisions: &[RoutingDecision]) -> Vec<String> {
    let one = |routed: &RoutingDecision| {
        let RoutingDecision {
            verdict, by, note, sender, changes, quote, host_calls, fault_message_id, ..
        } = routed;
        let has_fault = fault_message_id.is_some();
        format!("{verdict:?} {by:?} {note:?} {sender:?} {changes:?} {quote:?} {host_calls:?} {has_fault}")
    };
    decisions.iter().map(one).collect()
}

/// Messages of which few are bad.
fn messages() -> impl Strategy<Value = Vec<Message>> {
    let source = prop_oneof![7 => Just("good"), 1 => Just("bad")];
    let one = (source, "[1-9][0-9]{4,14}", 0_usize..200, any::<bool>(), "[a-z]{0,5}").prop_map(
        |(source, destination, length, has_leg, service_type)| {
            let mut message = message(source, &destination);
            message.text.octets = vec![b'x'; length].into();
            message.service_type = service_type.into_bytes().into();
            message.text.data_coding = u8::try_from(length % 16).unwrap();
            let names = directory().load_full();
            let leg = Leg::to(names.id("south").unwrap());
            message.routed.verdict = Verdict::Forward(vec![Leg { cost: 7, resolve: !has_leg, ..leg }]);
            message
        },
    );
    proptest::collection::vec(one, 0..80)
}

/// Runs a test on some batches.
fn with_batches(test: impl Fn(Vec<Message>)) {
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let tested = TestRunner::new(config).run(&messages(), |messages| {
        test(messages);
        Ok(())
    });
    tested.unwrap();
}

#[test]
fn routers_of_all_moods_answer_alike() {
    let pair = Pair::new();
    let treatments = [OnFault::Hold, OnFault::Reject, OnFault::Peer("reserve".to_owned()), OnFault::Pass];
    for (mood, then) in MOODS.into_iter().zip(treatments.into_iter().cycle()) {
        pair.activate(Hook::Router, |fixture| vec![on_fault(then.clone(), fixture.moody(mood, "north"))]);
        with_batches(|messages| pair.route(&messages));
    }
}

#[test]
fn a_late_router_costs_its_message_only() {
    let pair = Pair::new();
    for mood in ["loop", "never"] {
        for fixture in [&pair.one, &pair.many] {
            let binding = without_rollback(fixture.moody(mood, "north"));
            let binding = Binding { deadline: Duration::from_millis(100), ..binding };
            fixture.hooks.activate(Hook::Router, NOW, vec![binding], None).unwrap();
        }
        let sources = ["good", "bad", "good", "good", "bad"];
        pair.route(&sources.map(|source| message(source, "8613012345678")));
    }
}

/// A chain whose plugins use all imports that refer to the current message.
fn chain(fixture: &HooksFixture, mood: &str) -> Vec<Binding> {
    let examiner = "note text\nnote valid-until\nset-tlv 1401 north\nattribute class bulk\npass";
    vec![
        fixture.binding("test_asker", "pass north 2"),
        on_fault(OnFault::Pass, fixture.moody(mood, "no-such-peer")),
        fixture.binding("test_examiner", examiner),
        fixture.binding("test_taker", "state shared\ntake shared hold user=7\nto north"),
    ]
}

#[test]
fn chains_and_their_host_calls_answer_alike() {
    let pair = Pair::new();
    for mood in ["trap", "ok"] {
        pair.activate(Hook::Router, |fixture| chain(fixture, mood));
        with_batches(|messages| pair.route(&messages));
    }
    // A plugin's counters show the order of its calls.
    pair.activate(Hook::Router, |fixture| {
        let again = fixture.binding("test_asker", "to south 1");
        vec![fixture.binding("test_asker", "pass north 1"), again]
    });
    with_batches(|messages| pair.route(&messages));
}

#[test]
fn plugins_without_batches_answer_alike() {
    let pair = Pair::new();
    for guest in ["test_router_0_2", "test_old_router"] {
        pair.activate(Hook::Router, |fixture| vec![fixture.binding(guest, "north")]);
        with_batches(|messages| pair.route(&messages));
    }
    pair.activate(Hook::Router, |fixture| {
        let binding = fixture.moody("trap", "north");
        vec![Binding { instance: InstanceUse::PerCall, ..binding }]
    });
    with_batches(|messages| pair.route(&messages));
    for fixture in [&pair.one, &pair.many] {
        fixture.hooks.unbind(Hook::Router, NOW).unwrap();
    }
    with_batches(|messages| pair.route(&messages));
}

#[test]
fn candidates_see_the_same_messages() {
    let pair = Pair::new();
    pair.activate(Hook::Router, |fixture| vec![fixture.binding("test_asker", "to north 1")]);
    let faulty = |fixture: &HooksFixture| {
        vec![fixture.binding("test_asker", "pass north 1"), fixture.moody("trap", "south")]
    };
    pair.start_trials(TrialMode::Canary { share: 5_000 }, faulty);
    with_batches(|messages| pair.route(&messages));
    let asked = |fixture: &HooksFixture| {
        let candidate = fixture.hooks.status(Hook::Router).candidate.unwrap();
        (candidate.asked, candidate.failed, candidate.bypassed)
    };
    assert_eq!(asked(&pair.many), asked(&pair.one));

    pair.start_trials(TrialMode::Shadow, faulty);
    let total = std::cell::Cell::new(0);
    with_batches(|messages| {
        // A shadow adds its faults on another thread.
        pair.compare_decisions(&messages);
        total.set(total.get() + messages.len() as u64);
    });
    let compared = |fixture: &HooksFixture| {
        let comparison = || fixture.hooks.status(Hook::Router).candidate.unwrap().comparison.unwrap();
        wait_until("all are compared", || comparison().compared + comparison().skipped == total.get());
        let comparison = comparison();
        (comparison.same, comparison.different, comparison.skipped)
    };
    assert_eq!(compared(&pair.many), compared(&pair.one));
}

#[test]
fn screens_of_all_moods_answer_alike() {
    let pair = Pair::new();
    let screen = |fixture: &HooksFixture, document: &str| fixture.binding("test_moody_screen", document);
    for (mood, then) in
        MOODS.into_iter().zip([OnFault::Hold, OnFault::Reject, OnFault::Pass].into_iter().cycle())
    {
        let document = format!("{mood}\nnote text\nnote length\nnote count\ntag seen yes");
        pair.activate(Hook::Screen, |fixture| vec![on_fault(then.clone(), screen(fixture, &document))]);
        with_batches(|messages| pair.screen(&messages));
    }
    for fixture in [&pair.one, &pair.many] {
        fixture.hooks.unbind(Hook::Screen, NOW).unwrap();
    }
    with_batches(|messages| pair.screen(&messages));
}

#[test]
fn a_later_screen_of_a_batch_sees_the_text_of_an_earlier_one() {
    let pair = Pair::new();
    let rules = "[[rule]]\nname = \"long\"\nsegments-over = 1\nthen = \"quarantine\"\n\
                 [[rule]]\nname = \"prize\"\nwords = [\"prize\"]\nthen = \"reject\"\n";
    for text in [format!("claim your prize {}", "x".repeat(180)), "your prize".to_owned(), "none".to_owned()]
    {
        pair.activate(Hook::Screen, |fixture| {
            let first = fixture.binding("test_moody_screen", &format!("trap\ntext {text}"));
            vec![on_fault(OnFault::Pass, first), fixture.binding("firewall", rules)]
        });
        with_batches(|messages| pair.screen(&messages));
    }
}

#[test]
fn billers_of_all_moods_answer_alike() {
    let pair = Pair::new();
    let treatments = [OnFault::Hold, OnFault::Reject, OnFault::Pass];
    for (mood, then) in MOODS.into_iter().zip(treatments.into_iter().cycle()) {
        pair.activate(Hook::Biller, |fixture| {
            vec![on_fault(then.clone(), fixture.binding("test_moody_biller", mood))]
        });
        with_batches(|messages| pair.price(&messages));
    }
    // The leg is part of the question.
    pair.activate(Hook::Biller, |fixture| vec![fixture.binding("prepaid", PRICES)]);
    with_batches(|messages| pair.price(&messages));
}

const PRICES: &str = "default-tariff = \"standard\"\n[[tariff]]\nname = \"standard\"\n[tariff.prices]\n\
                      \"\" = \"0.05\"\n\"1\" = \"0.01\"\n";

#[test]
fn each_part_of_a_large_batch_may_fail() {
    let pair = Pair::new();
    pair.activate(Hook::Router, |fixture| vec![fixture.moody("trap", "north")]);
    let batch: Vec<Message> = (0..200)
        .map(|n| message(if n % 50 == 49 { "bad" } else { "good" }, &format!("86130{n:08}")))
        .collect();
    pair.route(&batch);
    assert_eq!(pair.many.hooks.counts(Hook::Router)[0].counts.faults, [4, 0, 0, 0, 0]);
}
