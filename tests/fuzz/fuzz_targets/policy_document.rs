//! Any text as the policy document of one of the default plugins, or as a document of number plans: refused with words, or sane,
//! also when it is asked.
//!
//! The first octet says which, from `1`. What follows a record separator is what a sane document is asked about: a number, a
//! peer, a row of a table or a reply.
#![no_main]

use fraud_guard_policy as fraud_guard;
use least_cost_policy as least_cost;
use libfuzzer_sys::fuzz_target;
use numbering::{Called, Kind, Plans, Target};
use prefix_policy as prefix;
use prepaid_policy as prepaid;
use resolver_policy::{Answer, Resolution, hlr, http, is_imsi, table};
use retry_ladder_policy as retry_ladder;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

const SEPARATOR: char = '\u{1e}';

/// A year: the longest time of a document.
const LONGEST: Duration = Duration::from_secs(366 * 86_400);

fuzz_target!(|octets: &[u8]| {
    let Some((&which, text)) = octets.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let (document, asked) = text.split_once(SEPARATOR).unwrap_or((text, ""));
    let read = match which.wrapping_sub(b'1') % 9 {
        0 => prefix::Policy::parse(document).map(|policy| of_prefixes(&policy, asked)),
        1 => least_cost::Policy::parse(document).map(|policy| of_offers(&policy, asked)),
        2 => fraud_guard::Policy::parse(document).map(|policy| of_frauds(&policy, asked)),
        3 => prepaid::Policy::parse(document).map(|policy| of_tariffs(&policy, asked)),
        4 => retry_ladder::Policy::parse(document).map(|policy| of_retries(&policy, asked)),
        5 => table::Policy::parse(document).map(|policy| of_rows(&policy, asked)),
        6 => http::Policy::parse(document).map(|policy| of_replies(&policy, asked)),
        7 => hlr::Policy::parse(document).map(|policy| of_subscribers(&policy, asked)),
        _ => Plans::parse(document).map(|plans| of_plans(&plans, asked)).map_err(|error| error.to_string()),
    };
    if let Err(refusal) = read {
        assert!(!refusal.is_empty());
    }
});

/// What the host takes as a prefix.
fn assert_prefix(prefix: &str) {
    assert!(prefix.len() <= 30 && prefix.bytes().all(|digit| digit.is_ascii_digit()), "{prefix:?}");
}

fn of_prefixes(policy: &prefix::Policy, asked: &str) {
    assert!(!policy.prefixes.is_empty() || policy.default.is_some());
    for (prefix, rules) in &policy.prefixes {
        assert_prefix(prefix);
        let rules = &policy.rules[*rules as usize];
        assert!(!rules.is_empty());
        for rule in rules {
            let _ = rule.applies("acme", asked);
            of_target(&rule.target, asked);
        }
    }
    if let Some(target) = &policy.default {
        of_target(target, asked);
    }
}

fn of_target(target: &prefix::Target, asked: &str) {
    let prefix::Action::Forward(legs) = &target.action else { return };
    assert!((1..=255).contains(&legs.len()));
    for leg in legs {
        assert!(!leg.peer.is_empty());
        if let Some(number) = leg.destination(asked)
            && number != asked
        {
            assert!((1..=20).contains(&number.len()), "{number:?}");
        }
    }
}

fn of_offers(policy: &least_cost::Policy, asked: &str) {
    // What the host knows of a peer depends on nothing but its name.
    let state = |peer: &str| {
        let octet = *peer.as_bytes().last()?;
        (octet % 5 != 0)
            .then(|| least_cost::PeerState { links: u32::from(octet % 3), queued: u64::from(octet) })
    };
    for (prefix, index) in &policy.prefixes {
        assert_prefix(prefix);
        assert!(!policy.destinations[*index as usize].offers.is_empty());
        for parts in [0, 1, u16::MAX] {
            of_choice(policy.choose(*index, parts, state));
        }
    }
    of_choice(policy.choose(u32::MAX, 1, state));
    of_choice(policy.choose_row(asked, 2, state));
    of_choice(policy.nothing());
}

fn of_choice(choice: least_cost::Choice) {
    match choice {
        least_cost::Choice::Nowhere { note, .. } => assert!(!note.is_empty()),
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
struct Counted(RefCell<HashMap<(String, String), u64>>);

impl fraud_guard::Counters for Counted {
    fn add(&self, name: &str, key: &str, _: Duration) -> u64 {
        let mut counted = self.0.borrow_mut();
        let count = counted.entry((name.to_owned(), key.to_owned())).or_default();
        *count += 1;
        *count
    }

    fn sum(&self, name: &str, key: &str, _: Duration) -> u64 {
        self.0.borrow().get(&(name.to_owned(), key.to_owned())).copied().unwrap_or(0)
    }
}

fn of_frauds(policy: &fraud_guard::Policy, asked: &str) {
    let names: HashSet<_> = policy.rules.iter().map(|rule| &rule.name).collect();
    assert!(!names.is_empty() && names.len() == policy.rules.len(), "two rules of one name");
    for rule in &policy.rules {
        assert!((1..=64).contains(&rule.name.len()) && rule.allowed > 0);
        assert!((Duration::from_secs(1)..=Duration::from_secs(86_400)).contains(&rule.window));
        if let fraud_guard::Then::Hold(wait) = rule.then {
            assert!((rule.window..=LONGEST).contains(&wait), "a message that holds itself");
        }
    }
    let counted = Counted::default();
    let (source, destination) = asked.split_once(' ').unwrap_or(("10655", asked));
    for number in ["8613900000000", "8613900000001", destination, "8613900000001", destination, "0", "ACME"] {
        if let Some(finding) = policy.judge("acme", source, number, &counted) {
            assert!(!finding.note.is_empty());
        }
    }
}

fn of_tariffs(policy: &prepaid::Policy, asked: &str) {
    for tariff in &policy.tariffs {
        assert!(!tariff.name.is_empty() && (!tariff.prices.is_empty() || tariff.table.is_some()));
        for (prefix, price) in &tariff.prices {
            assert_prefix(prefix);
            assert!(*price <= prepaid::MOST);
        }
    }
    let (origin, row) = asked.split_once(' ').unwrap_or((asked, "0.035"));
    for origin in ["acme", origin] {
        for parts in [0, 1, 7, u16::MAX] {
            let quote = policy.quote(origin, parts, |index, tariff| {
                assert_eq!(tariff, &policy.tariffs[index]);
                let own = tariff.prices.iter().max_by_key(|(prefix, _)| prefix.len());
                let own = own
                    .map(|(prefix, price)| prepaid::Found { length: prefix.len() as u32, price: Ok(*price) });
                prepaid::Found::longer(own, tariff.table.as_ref().map(|_| prepaid::Found::row(3, row)))
            });
            match quote {
                prepaid::Quote::Free => {}
                prepaid::Quote::Refuse { note } => assert!(!note.is_empty()),
                prepaid::Quote::Charge { account, amount, note, .. } => {
                    assert!((1..=prepaid::MOST).contains(&amount) && !note.is_empty());
                    assert!(account == origin || (1..=64).contains(&account.len()));
                }
            }
        }
    }
}

fn of_retries(policy: &retry_ladder::Policy, asked: &str) {
    use retry_ladder::{Attempt, Class, Step};
    for class in Class::ALL {
        for (number, leg, legs, age, left) in [
            (1, 0, 1, 0, 86_400),
            (2, 0, 2, 60, 1),
            (9, 1, 3, 3_600, 0),
            (u16::MAX, u8::MAX, u8::MAX, 100_000, 86_400),
            (0, 0, 0, 0, 0),
        ] {
            let (age, left) = (Duration::from_secs(age), Duration::from_secs(left));
            let attempt = Attempt { number, leg, legs, peer: asked, class, age, left };
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

fn of_rows(policy: &table::Policy, asked: &str) {
    assert!(!policy.table.is_empty());
    let (number, row) = asked.split_once(' ').unwrap_or(("49151", asked));
    let resolution = policy.resolve(number, |number| {
        assert!((1..=15).contains(&number.len()) && number.bytes().all(|digit| digit.is_ascii_digit()));
        Some(row.to_owned())
    });
    of_resolution(&resolution);
    of_resolution(&policy.resolve(number, |_| None));
}

fn of_replies(policy: &http::Policy, asked: &str) {
    for number in ["49151", "+0049151", asked] {
        let Some(request) = policy.request(number) else {
            of_resolution(&policy.no_number(number));
            continue;
        };
        let place = request.url.strip_prefix("https://").or_else(|| request.url.strip_prefix("http://"));
        assert!(place.is_some_and(|place| !place.is_empty()), "{}", request.url);
        assert!(!request.url.chars().any(|c| c.is_whitespace() || c.is_control()), "{}", request.url);
        assert!(!request.url.contains("{msisdn}") && !request.body.contains("{msisdn}"));
        assert!(request.method == "POST" || request.body.is_empty());
        // Whatever the number is, it goes to the same place.
        let authority = |url: &str| url.split(['/', '?', '#']).nth(2).map(str::to_owned);
        assert_eq!(Some(request.url).as_deref().and_then(authority), {
            policy.request("1").as_ref().map(|other| other.url.as_str()).and_then(authority)
        });
    }
    for status in [200, 204, 301, 404, 503] {
        of_resolution(&policy.reply(status, asked.as_bytes()));
    }
}

fn of_subscribers(policy: &hlr::Policy, asked: &str) {
    let (number, imsi) = asked.split_once(' ').unwrap_or(("49151", asked));
    for reply in [
        hlr::Reply::Subscriber { imsi: imsi.to_owned(), serving: Some(number.to_owned()) },
        hlr::Reply::Unknown,
        hlr::Reply::Unreachable,
    ] {
        of_resolution(&policy.resolve(number, |number| {
            assert!((1..=15).contains(&number.len()) && number.bytes().all(|digit| digit.is_ascii_digit()));
            reply
        }));
    }
}

fn of_plans(plans: &Plans, asked: &str) {
    assert!(plans.get(plans.default_name()).is_some());
    assert!(plans.peers().iter().all(|peer| !peer.is_empty()));
    // A type of number, what was dialled and by whom.
    let mut asked = asked.splitn(3, ' ');
    let ton = asked.next().and_then(|ton| ton.parse().ok()).unwrap_or(0);
    let digits = asked.next().unwrap_or("5550124");
    let caller = asked.next();
    for (_, plan) in plans.iter() {
        let called = Called { ton, npi: 1, digits };
        let number = match plan.normalise(&called, caller) {
            Ok(number) => number,
            Err(refused) => {
                assert!(!refused.to_string().is_empty());
                continue;
            }
        };
        assert!(!number.digits.is_empty() && number.digits.bytes().all(|octet| octet.is_ascii_digit()));
        assert!(number.kind == Kind::Short || (7..=15).contains(&number.digits.len()));
        assert!(number.to != Target::Refuse && !number.rule.is_empty());
        let address = number.address();
        let again = plan.normalise(&Called::of(&address).expect("text"), None).expect("its own form");
        assert_eq!((&again.digits, again.kind, &again.class, &again.to), {
            (&number.digits, number.kind, &number.class, &number.to)
        });
        let shown = plan.display(&address);
        let answered = plan.normalise(&Called::of(&shown).expect("text"), None).expect("as it was shown");
        assert_eq!(answered.digits, number.digits);
    }
}

fn of_resolution(resolution: &Resolution) {
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
