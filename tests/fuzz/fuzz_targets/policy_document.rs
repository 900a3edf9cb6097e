//! Arbitrary text as the policy document of a default plugin, or as a document of number plans: refused with a message, or valid,
//! also when it is used.
//!
//! The first octet selects the plugin, from `1`, and `:` and `;` after `9`. The question to a valid document follows after a record separator: a number, a
//! peer, a row of a table or a reply.
#![no_main]

use firewall_policy as firewall;
use fraud_guard_policy as fraud_guard;
use least_cost_policy as least_cost;
use libfuzzer_sys::fuzz_target;
use number_portability_policy as number_portability;
use numbering::{DialledNumber, NumberKind, NumberPlans, NumberTarget};
use policy_values::MessageAttributes;
use prefix_policy as prefix;
use prepaid_policy as prepaid;
use resolver_policy::{Answer, Resolution, hlr, http, is_imsi, table};
use retry_ladder_policy as retry_ladder;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

const SEPARATOR: char = '\u{1e}';

/// A year: the longest time in a document.
const LONGEST: Duration = Duration::from_secs(366 * 86_400);

fuzz_target!(|octets: &[u8]| {
    let Some((&which, text)) = octets.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let (document, query) = text.split_once(SEPARATOR).unwrap_or((text, ""));
    let read = match which.wrapping_sub(b'1') % 11 {
        0 => prefix::Policy::parse(document).map(|policy| check_prefixes(&policy, query)),
        1 => least_cost::Policy::parse(document).map(|policy| check_offers(&policy, query)),
        2 => fraud_guard::Policy::parse(document).map(|policy| check_frauds(&policy, query)),
        3 => prepaid::Policy::parse(document).map(|policy| check_tariffs(&policy, query)),
        4 => retry_ladder::Policy::parse(document).map(|policy| check_retries(&policy, query)),
        5 => table::Policy::parse(document).map(|policy| check_rows(&policy, query)),
        6 => http::Policy::parse(document).map(|policy| check_replies(&policy, query)),
        7 => hlr::Policy::parse(document).map(|policy| check_subscribers(&policy, query)),
        10 => number_portability::Policy::parse(document).map(|policy| check_lookups(&policy, query)),
        9 => firewall::Policy::parse(document).map(|policy| check_screening(&policy, query)),
        _ => NumberPlans::parse(document)
            .map(|plans| check_plans(&plans, query))
            .map_err(|error| error.to_string()),
    };
    if let Err(refusal) = read {
        assert!(!refusal.is_empty());
    }
});

/// Valid prefixes.
fn assert_prefix(prefix: &str) {
    assert!(prefix.len() <= 30 && prefix.bytes().all(|digit| digit.is_ascii_digit()), "{prefix:?}");
}

fn check_prefixes(policy: &prefix::Policy, query: &str) {
    assert!(!policy.prefixes.is_empty() || policy.default.is_some());
    for (prefix, rules) in &policy.prefixes {
        assert_prefix(prefix);
        let rules = &policy.rules[*rules as usize];
        assert!(!rules.is_empty());
        for rule in rules {
            let _ = rule.applies("acme", query, &MessageAttributes::new(|_| Some(query.to_owned())));
            check_target(&rule.target, query);
        }
    }
    if let Some(target) = &policy.default {
        check_target(target, query);
    }
}

fn check_target(target: &prefix::Target, query: &str) {
    let prefix::Action::Forward(legs) = &target.action else { return };
    assert!((1..=255).contains(&legs.len()));
    for leg in legs {
        assert!(!leg.peer.is_empty());
        if let Some(number) = leg.destination(query)
            && number != query
        {
            assert!((1..=20).contains(&number.len()), "{number:?}");
        }
    }
}

fn check_offers(policy: &least_cost::Policy, query: &str) {
    // The host's state of a peer depends only on its name.
    let state = |peer: &str| {
        let octet = *peer.as_bytes().last()?;
        (octet % 5 != 0)
            .then(|| least_cost::PeerState { links: u32::from(octet % 3), queued: u64::from(octet) })
    };
    for (prefix, index) in &policy.prefixes {
        assert_prefix(prefix);
        assert!(!policy.destinations[*index as usize].offers.is_empty());
        for parts in [0, 1, u16::MAX] {
            check_choice(policy.choose(*index, parts, state));
        }
    }
    check_choice(policy.choose(u32::MAX, 1, state));
    check_choice(policy.choose_row(query, 2, state));
    check_choice(policy.no_offer());
}

fn check_choice(choice: least_cost::Choice) {
    match choice {
        least_cost::Choice::NoOffer { note, .. } => assert!(!note.is_empty()),
        least_cost::Choice::Legs { legs, note } => {
            assert!(!note.is_empty());
            assert!((1..=255).contains(&legs.len()));
            assert!(legs.is_sorted_by_key(|leg| leg.rank) && legs.is_sorted_by_key(|leg| leg.cost));
            let peers: HashSet<_> = legs.iter().map(|leg| &leg.peer).collect();
            assert_eq!(peers.len(), legs.len(), "a peer that is tried twice");
        }
    }
}

/// Counters whose windows never end.
#[derive(Default)]
struct MemoryCounters {
    counted: RefCell<HashMap<(String, String), u64>>,
    /// The question to a screen.
    question: Option<String>,
}

impl fraud_guard::Counters for MemoryCounters {
    fn add(&self, name: &str, key: &str, _: Duration) -> u64 {
        let mut counted = self.counted.borrow_mut();
        let count = counted.entry((name.to_owned(), key.to_owned())).or_default();
        *count += 1;
        *count
    }

    fn sum(&self, name: &str, key: &str, _: Duration) -> u64 {
        self.counted.borrow().get(&(name.to_owned(), key.to_owned())).copied().unwrap_or(0)
    }
}

fn check_frauds(policy: &fraud_guard::Policy, query: &str) {
    let names: HashSet<_> = policy.rules.iter().map(|rule| &rule.name).collect();
    assert!(!names.is_empty() && names.len() == policy.rules.len(), "two rules of one name");
    for rule in &policy.rules {
        assert!((1..=64).contains(&rule.name.len()) && rule.allowed > 0);
        assert!((Duration::from_secs(1)..=Duration::from_secs(86_400)).contains(&rule.window));
        if let fraud_guard::RuleAction::Hold(wait) = rule.then {
            assert!((rule.window..=LONGEST).contains(&wait), "a message that holds itself");
        }
    }
    let counted = MemoryCounters::default();
    let (source, destination) = query.split_once(' ').unwrap_or(("10655", query));
    for number in ["8613900000000", "8613900000001", destination, "8613900000001", destination, "0", "ACME"] {
        if let Some(finding) = policy.evaluate("acme", source, number, &counted) {
            assert!(!finding.note.is_empty());
        }
    }
}

/// A message whose links, words and ids are those of the call.
impl firewall::Host for MemoryCounters {
    fn text(&self) -> Option<String> {
        self.question.clone()
    }

    fn urls(&self) -> Vec<String> {
        let words = self.question.iter().flat_map(|text| text.split_whitespace());
        words.filter(|word| word.contains('.')).map(str::to_owned).collect()
    }

    fn near_duplicate(&self) -> Option<u64> {
        self.question.as_ref().map(|text| text.len() as u64)
    }

    fn tlv(&self, _: u16) -> Option<Vec<u8>> {
        let id = self.question.as_ref()?.split(' ').next()?;
        Some(id.as_bytes().to_vec())
    }

    fn look_up(&self, _: usize, key: &str) -> Option<String> {
        let question = self.question.as_ref()?;
        question.contains(key).then(|| question.clone())
    }

    fn count(&self, name: &str, key: &str, window: Duration) -> u64 {
        assert!((Duration::from_secs(1)..=Duration::from_secs(86_400)).contains(&window));
        fraud_guard::Counters::add(self, name, key, window)
    }
}

fn check_screening(policy: &firewall::Policy, query: &str) {
    assert!(policy.tables().iter().all(|name| !name.is_empty()));
    let host = MemoryCounters { question: Some(query.to_owned()), ..MemoryCounters::default() };
    let source = query.split(' ').next().unwrap_or_default();
    for (destination, segments) in [("8613900000000", 1), ("+49151", 9), (query, u16::MAX)] {
        let asked = firewall::Question {
            account: "acme",
            source,
            destination,
            data_coding: 0,
            segments,
            header: false,
        };
        let outcome = policy.evaluate(&asked, &host);
        assert!(outcome.tags.len() <= 32);
        assert!(outcome.verdict == firewall::Verdict::Pass || outcome.note.is_some());
    }
}

/// Sources that all return the same answer.
struct ConstantSources<'a>(&'a str);

impl number_portability::Sources for ConstantSources<'_> {
    fn row(&self, _: usize, _: &str) -> Option<String> {
        (!self.0.is_empty()).then(|| self.0.to_owned())
    }

    fn naptrs(
        &self,
        name: &str,
    ) -> Result<(Vec<number_portability::Naptr>, u32), number_portability::Nothing> {
        assert!(name.len() <= 253, "{name}");
        let record = number_portability::Naptr {
            flags: "u".to_owned(),
            services: "E2U+pstn:tel".to_owned(),
            regexp: self.0.to_owned(),
        };
        Ok((vec![record], 60))
    }

    fn fetch(&self, request: number_portability::Request) -> Result<(u16, Vec<u8>), String> {
        assert!(request.url.starts_with("http"), "{request:?}");
        Ok((200, self.0.as_bytes().to_vec()))
    }
}

fn check_lookups(policy: &number_portability::Policy, query: &str) {
    for digits in ["4915112345678", "0151", query] {
        let number = number_portability::Number { digits, international: digits.starts_with('4') };
        if let number_portability::Answer::Found(attributes, _) =
            policy.look_up(number, &ConstantSources(query)).answer
        {
            assert!(attributes.len() <= 32 && attributes.iter().all(|(_, value)| value.len() <= 255));
        }
    }
}

fn check_tariffs(policy: &prepaid::Policy, query: &str) {
    for tariff in &policy.tariffs {
        assert!(!tariff.name.is_empty() && (!tariff.prices.is_empty() || tariff.table.is_some()));
        for (prefix, price) in &tariff.prices {
            assert_prefix(prefix);
            assert!(*price <= prepaid::MAX_AMOUNT);
        }
    }
    let (origin, row) = query.split_once(' ').unwrap_or((query, "0.035"));
    for origin in ["acme", origin] {
        for parts in [0, 1, 7, u16::MAX] {
            let quote = policy.quote(origin, parts, |index, tariff| {
                assert_eq!(tariff, &policy.tariffs[index]);
                let own = tariff.prices.iter().max_by_key(|(prefix, _)| prefix.len());
                let own = own.map(|(prefix, price)| prepaid::PriceMatch {
                    length: prefix.len() as u32,
                    price: Ok(*price),
                });
                prepaid::PriceMatch::longer(
                    own,
                    tariff.table.as_ref().map(|_| prepaid::PriceMatch::row(3, row)),
                )
            });
            match quote {
                prepaid::Quote::Free => {}
                prepaid::Quote::Refuse { note } => assert!(!note.is_empty()),
                prepaid::Quote::Charge { account, amount, note, .. } => {
                    assert!((1..=prepaid::MAX_AMOUNT).contains(&amount) && !note.is_empty());
                    assert!(account == origin || (1..=64).contains(&account.len()));
                }
            }
        }
    }
}

fn check_retries(policy: &retry_ladder::Policy, query: &str) {
    use retry_ladder::{Attempt, FailureClass, Step};
    for class in FailureClass::ALL {
        for (number, leg, legs, age, left) in [
            (1, 0, 1, 0, 86_400),
            (2, 0, 2, 60, 1),
            (9, 1, 3, 3_600, 0),
            (u16::MAX, u8::MAX, u8::MAX, 100_000, 86_400),
            (0, 0, 0, 0, 0),
        ] {
            let (age, left) = (Duration::from_secs(age), Duration::from_secs(left));
            let attempt = Attempt { number, leg, legs, peer: query, class, age, left };
            let decision = policy.next(&attempt);
            assert!((1..=200).contains(&decision.note.len()), "{}", decision.note);
            match decision.step {
                Step::RetryAfter(wait) | Step::AwaitAlert(wait) => assert!(wait <= LONGEST),
                Step::NextLeg => assert!(u16::from(leg) + 1 < u16::from(legs)),
                Step::Fail => {}
            }
            let advice = decision.advice;
            assert!(
                advice.rate.is_none_or(|rate| rate.is_finite() && rate > 0.0) && advice.window != Some(0)
            );
            assert!(advice.pause.is_none_or(|pause| pause <= Duration::from_secs(3_600)));
        }
    }
}

fn check_rows(policy: &table::Policy, query: &str) {
    assert!(!policy.table.is_empty());
    let (number, row) = query.split_once(' ').unwrap_or(("49151", query));
    let resolution = policy.resolve(number, |number| {
        assert!((1..=15).contains(&number.len()) && number.bytes().all(|digit| digit.is_ascii_digit()));
        Some(row.to_owned())
    });
    check_resolution(&resolution);
    check_resolution(&policy.resolve(number, |_| None));
}

fn check_replies(policy: &http::Policy, query: &str) {
    for number in ["49151", "+0049151", query] {
        let Some(request) = policy.request(number) else {
            check_resolution(&policy.invalid_number(number));
            continue;
        };
        let place = request.url.strip_prefix("https://").or_else(|| request.url.strip_prefix("http://"));
        assert!(place.is_some_and(|place| !place.is_empty()), "{}", request.url);
        assert!(!request.url.chars().any(|c| c.is_whitespace() || c.is_control()), "{}", request.url);
        assert!(!request.url.contains("{msisdn}") && !request.body.contains("{msisdn}"));
        assert!(request.method == "POST" || request.body.is_empty());
        // The same number always goes to the same place.
        let authority = |url: &str| url.split(['/', '?', '#']).nth(2).map(str::to_owned);
        assert_eq!(Some(request.url).as_deref().and_then(authority), {
            policy.request("1").as_ref().map(|other| other.url.as_str()).and_then(authority)
        });
    }
    for status in [200, 204, 301, 404, 503] {
        check_resolution(&policy.reply(status, query.as_bytes()));
    }
}

fn check_subscribers(policy: &hlr::Policy, query: &str) {
    let (number, imsi) = query.split_once(' ').unwrap_or(("49151", query));
    for reply in [
        hlr::HlrReply::Subscriber { imsi: imsi.to_owned(), serving: Some(number.to_owned()) },
        hlr::HlrReply::Unknown,
        hlr::HlrReply::Unreachable,
    ] {
        check_resolution(&policy.resolve(number, |number| {
            assert!((1..=15).contains(&number.len()) && number.bytes().all(|digit| digit.is_ascii_digit()));
            reply
        }));
    }
}

fn check_plans(plans: &NumberPlans, query: &str) {
    assert!(plans.get(plans.default_name()).is_some());
    assert!(plans.peers().iter().all(|peer| !peer.is_empty()));
    // Type of number, dialled number, and caller.
    let mut query = query.splitn(3, ' ');
    let ton = query.next().and_then(|ton| ton.parse().ok()).unwrap_or(0);
    let digits = query.next().unwrap_or("5550124");
    let caller = query.next();
    for (_, plan) in plans.iter() {
        let called = DialledNumber { ton, npi: 1, digits };
        let number = match plan.normalise(&called, caller) {
            Ok(number) => number,
            Err(refused) => {
                assert!(!refused.to_string().is_empty());
                continue;
            }
        };
        assert!(!number.digits.is_empty() && number.digits.bytes().all(|octet| octet.is_ascii_digit()));
        assert!(number.kind == NumberKind::Short || (7..=15).contains(&number.digits.len()));
        assert!(number.to != NumberTarget::Refuse && !number.rule.is_empty());
        let address = number.address();
        let again = plan.normalise(&DialledNumber::of(&address).expect("text"), None).expect("its own form");
        assert_eq!((&again.digits, again.kind, &again.class, &again.to), {
            (&number.digits, number.kind, &number.class, &number.to)
        });
        let shown = plan.display(&address);
        let answered =
            plan.normalise(&DialledNumber::of(&shown).expect("text"), None).expect("as it was shown");
        assert_eq!(answered.digits, number.digits);
    }
}

fn check_resolution(resolution: &Resolution) {
    assert!(resolution.note.as_ref().is_some_and(|note| !note.is_empty()));
    match &resolution.answer {
        Answer::Found { imsi, serving, valid } => {
            assert!(is_imsi(imsi), "{imsi:?}");
            assert!(serving.as_ref().is_none_or(|peer| !peer.is_empty()));
            assert!(valid.is_none_or(|valid| valid <= LONGEST));
        }
        Answer::Unknown(time) | Answer::TryLater(time) => assert!(time.is_none_or(|time| time <= LONGEST)),
    }
}
