//! Generates questions from the types of the contract, as strategies of proptest: each value can be shrunk.

use super::front_ends;
use super::vocabulary::Vocabulary;
use crate::case_details::CaseTlvs;
use crate::case_peer::{CaseCallback, CaseSubmission};
use crate::case_receipt::{CaseAcceptedSubmission, CaseDlr, CaseDlrState, CaseEvent};
use crate::plugin_host::{
    CaseAddress, CaseAttempt, CaseErrorClass, CaseFirstLeg, CaseMessage, CaseQuestion, CaseSettlement,
    CaseText,
};
use model::Hook;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::{Just, Strategy as _, any, prop_oneof};
use proptest::sample::select;
use proptest::strategy::BoxedStrategy;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Maximum length of an address, in octets (SMPP 3.4 §5.2.8, without the final NUL).
const MAX_ADDRESS: usize = 20;
/// The largest integer of a file of cases, which is TOML.
const MAX_INTEGER: u64 = i64::MAX as u64;
/// A month in milliseconds: more than the usual age or validity of a message.
const MONTH_MS: u64 = 30 * 86_400_000;

/// Questions to a plugin of a hook.
pub(super) fn questions(hook: Hook, vocabulary: &Vocabulary) -> BoxedStrategy<CaseQuestion> {
    match hook {
        Hook::Screen => message(vocabulary).prop_map(CaseQuestion::Screen).boxed(),
        Hook::Router => message(vocabulary).prop_map(CaseQuestion::Route).boxed(),
        Hook::Lookup => {
            // The host asks about numbers only.
            let number = |(text, international): (String, bool)| {
                let value: String = text.chars().filter(char::is_ascii_digit).take(MAX_ADDRESS).collect();
                let value = if value.is_empty() { "0".to_owned() } else { value };
                CaseQuestion::LookUp(CaseAddress { ton: u8::from(international), npi: 1, value })
            };
            (address_text(vocabulary), any::<bool>()).prop_map(number).boxed()
        }
        Hook::Resolver => {
            // The host removes a leading plus sign.
            let number = |text: String| CaseQuestion::Resolve(text.trim_start_matches('+').to_owned());
            address_text(vocabulary).prop_map(number).boxed()
        }
        Hook::DeliveryPolicy => (message(vocabulary), attempt(vocabulary))
            .prop_map(|(message, attempt)| CaseQuestion::Next(message, attempt))
            .boxed(),
        Hook::Receipt => (message(vocabulary), accepted_submission(vocabulary), event())
            .prop_map(|(message, submission, event)| CaseQuestion::Receipt(message, submission, event))
            .boxed(),
        Hook::FrontEnd => front_ends::questions(),
        Hook::Biller => prop_oneof![
            4 => (message(vocabulary), option::of(first_leg(vocabulary)))
                .prop_map(|(message, leg)| CaseQuestion::Price(message, leg)),
            1 => vec(settlement(vocabulary), 0..=8).prop_map(CaseQuestion::Settle),
        ]
        .boxed(),
        Hook::Peer => prop_oneof![
            1 => submission(vocabulary).prop_map(CaseQuestion::Submit),
            1 => callback(vocabulary).prop_map(CaseQuestion::Callback),
        ]
        .boxed(),
    }
}

fn submission(vocabulary: &Vocabulary) -> BoxedStrategy<CaseSubmission> {
    (message(vocabulary), select(vocabulary.names.clone()), 1..=5_u16, any::<bool>())
        .prop_map(|(message, peer, number, wants_receipts)| CaseSubmission {
            message,
            peer,
            number,
            wants_receipts,
        })
        .boxed()
}

fn callback(vocabulary: &Vocabulary) -> BoxedStrategy<CaseCallback> {
    let form = || prop_oneof![1 => characters(0..=40), 1 => form_data(), 1 => json()];
    let headers = btree_map("[a-z][a-z-]{0,12}", "[ -~]{0,24}", 0..=3);
    (
        select(vocabulary.names.clone()),
        select(vec!["POST", "GET", "PUT"]).prop_map(str::to_owned),
        prop_oneof![4 => Just(String::new()), 1 => "/[a-z]{1,6}"],
        form_data(),
        headers,
        form(),
    )
        .prop_map(|(peer, method, path, query, headers, body)| CaseCallback {
            peer,
            method,
            path,
            query,
            headers,
            body,
        })
        .boxed()
}

/// A form with the usual fields of callbacks.
fn form_data() -> BoxedStrategy<String> {
    let names = select(vec!["id", "MessageSid", "MessageStatus", "status", "error", "from", "to", "text"]);
    let pair = (names, "[a-zA-Z0-9%+]{0,12}").prop_map(|(name, value)| format!("{name}={value}"));
    vec(pair, 0..=4).prop_map(|pairs| pairs.join("&")).boxed()
}

/// An object with the usual fields of callbacks.
fn json() -> BoxedStrategy<String> {
    let names = select(vec!["id", "status", "error", "from", "to", "text", "results"]);
    let value = prop_oneof![
        4 => "[a-z0-9]{0,8}".prop_map(|text| format!("{text:?}")),
        1 => any::<i64>().prop_map(|number| number.to_string()),
        1 => select(vec!["null", "true", "[]", "{}", "[{\"id\":\"1\"}]"]).prop_map(str::to_owned),
    ];
    let pair = (names, value).prop_map(|(name, value)| format!("{name:?}:{value}"));
    vec(pair, 0..=4).prop_map(|pairs| format!("{{{}}}", pairs.join(","))).boxed()
}

fn message(vocabulary: &Vocabulary) -> BoxedStrategy<CaseMessage> {
    let addresses = (address(vocabulary), address(vocabulary));
    let service_type = option::weighted(
        0.3,
        prop_oneof![
            4 => select(vec!["CMT", "CPT", "VMN", "VMA", "WAP", "USSD"]).prop_map(str::to_owned),
            1 => characters(1..=5).prop_map(|text| text.replace('\0', "")),
        ],
    );
    let data_coding = prop_oneof![
        4 => select(vec![0, 1, 2, 3, 4, 8, 0x10, 0x18, 0xC0, 0xD0, 0xE0, 0xF0, 0xF5]),
        1 => any::<u8>(),
    ];
    let octets = || vec(any::<u8>(), 0..=12);
    let tlvs = prop_oneof![
        4 => Just(BTreeMap::new()),
        1 => btree_map(prop_oneof![select(vec![0x0204, 0x020A, 0x1400, 0x1401]), any::<u16>()], octets(), 1..=3),
    ];
    let attributes = prop_oneof![
        4 => Just(BTreeMap::new()),
        1 => btree_map(select(vec!["brand", "mcc", "mnc"]).prop_map(str::to_owned), characters(0..=8), 1..=2),
    ];
    let esm_class = prop_oneof![4 => Just(0_u8), 1 => any::<u8>().prop_map(|octet| octet & 0xBC)];
    let protocol_id = prop_oneof![4 => Just(0_u8), 1 => any::<u8>()];
    let details = (esm_class, protocol_id, tlvs, attributes);
    (
        addresses,
        select(vocabulary.names.clone()),
        service_type,
        data_coding,
        0..=3_u8,
        text(),
        any::<bool>(),
        details,
    )
        .prop_map(|(addresses, origin, service_type, data_coding, priority, text, dlr, details)| {
            let ((destination, source), (esm_class, protocol_id, tlvs, attributes)) = (addresses, details);
            CaseMessage {
                origin,
                source,
                destination,
                service_type,
                data_coding,
                priority,
                text,
                wants_receipt: dlr,
                esm_class,
                protocol_id,
                tlvs: CaseTlvs(tlvs),
                attributes,
            }
        })
        .boxed()
}

fn address(vocabulary: &Vocabulary) -> BoxedStrategy<CaseAddress> {
    let ton = prop_oneof![4 => 0..=6_u8, 1 => any::<u8>()];
    let npi = prop_oneof![4 => select(vec![0, 1, 3, 4, 6, 8, 9, 10, 14, 18]), 1 => any::<u8>()];
    // Mostly the usual type of number for the text.
    (address_text(vocabulary), option::weighted(0.3, (ton, npi)))
        .prop_map(|(value, kind)| match kind {
            Some((ton, npi)) => CaseAddress { ton, npi, value },
            None => value.into(),
        })
        .boxed()
}

/// The text of an address. The simplest kinds come first, because values shrink towards them.
fn address_text(vocabulary: &Vocabulary) -> BoxedStrategy<String> {
    let known = if vocabulary.numbers.is_empty() {
        digits(1..=4)
    } else {
        select(vocabulary.numbers.clone()).boxed()
    };
    prop_oneof![
        6 => digits(0..=MAX_ADDRESS),
        6 => (known.clone(), digits(0..=10)).prop_map(|(prefix, rest)| first_octets(&(prefix + &rest))),
        2 => (known, digits(0..=10)).prop_map(|(prefix, rest)| first_octets(&format!("+{prefix}{rest}"))),
        1 => digits(1..=15).prop_map(|digits| format!("00{digits}")),
        2 => select(vocabulary.names.clone()).prop_map(|name| first_octets(&name)),
        2 => vec(select("ABCxyz019 .-_*#+".chars().collect::<Vec<_>>()), 1..=11)
            .prop_map(String::from_iter),
        1 => characters(0..=MAX_ADDRESS).prop_map(|text| first_octets(&text)),
        1 => (digits(0..=3), characters(1..=4)).prop_map(|(digits, text)| first_octets(&(digits + &text))),
        // Octets outside UTF-8: a plugin sees a replacement character for each.
        1 => (digits(0..=4), 1..=MAX_ADDRESS - 4)
            .prop_map(|(digits, count)| digits + &"\u{fffd}".repeat(count)),
    ]
    .boxed()
}

fn digits(count: RangeInclusive<usize>) -> BoxedStrategy<String> {
    vec(b'0'..=b'9', count).prop_map(|digits| digits.into_iter().map(char::from).collect()).boxed()
}

fn characters(count: RangeInclusive<usize>) -> BoxedStrategy<String> {
    vec(proptest::char::any(), count).prop_map(String::from_iter).boxed()
}

/// The part of a text that fits into an address. No protocol carries a NUL in an address.
fn first_octets(text: &str) -> String {
    let mut short = String::with_capacity(MAX_ADDRESS);
    for c in text.chars().filter(|c| *c != '\0') {
        if short.len() + c.len_utf8() > MAX_ADDRESS {
            break;
        }
        short.push(c);
    }
    short
}

fn text() -> BoxedStrategy<CaseText> {
    let plain = |octets| CaseText { octets, udhi: false };
    let with_header = |octets| CaseText { octets, udhi: true };
    prop_oneof![
        4 => vec(b' '..=b'~', 0..=20).prop_map(plain),
        1 => vec(b' '..=b'~', 150..=170).prop_map(plain),
        2 => characters(0..=40).prop_map(move |text| plain(text.into_bytes())),
        2 => vec(any::<u8>(), 0..=140).prop_map(plain),
        // UCS-2, including unpaired surrogates.
        1 => vec(any::<u16>(), 0..=70)
            .prop_map(move |units| plain(units.into_iter().flat_map(u16::to_be_bytes).collect())),
        // A segment of a concatenated message (3GPP TS 23.040 §9.2.3.24.1).
        2 => (any::<[u8; 3]>(), vec(any::<u8>(), 0..=40)).prop_map(move |([number, count, index], body)| {
            with_header([vec![5, 0, 3, number, count, index], body].concat())
        }),
        // A header that is longer than the text, or malformed.
        1 => vec(any::<u8>(), 0..=20).prop_map(with_header),
        // Longer than a short message.
        1 => (any::<u8>(), 255..=4_000_usize).prop_map(move |(octet, length)| plain(vec![octet; length])),
    ]
    .boxed()
}

fn attempt(vocabulary: &Vocabulary) -> BoxedStrategy<CaseAttempt> {
    let number = prop_oneof![4 => 1..=12_u16, 1 => 1..=u16::MAX];
    let legs = prop_oneof![4 => 1..=4_u8, 1 => 1..=u8::MAX];
    let class = select(vec![
        CaseErrorClass::Temporary,
        CaseErrorClass::Permanent,
        CaseErrorClass::Absent,
        CaseErrorClass::MemoryFull,
        CaseErrorClass::Throttled,
    ]);
    // Some values of SMPP's command_status.
    let code = prop_oneof![4 => select(vec![0, 0x08, 0x0B, 0x14, 0x45, 0x58, 0x400]), 1 => any::<u32>()];
    let time = || prop_oneof![4 => 0..=MONTH_MS, 1 => Just(0), 1 => 0..=MAX_INTEGER];
    (number, (any::<u8>(), legs), select(vocabulary.peers.clone()), class, code, time(), time())
        .prop_map(|(number, (leg, legs), peer, class, code, age_ms, left_ms)| CaseAttempt {
            number,
            leg: leg % legs,
            legs,
            peer,
            class,
            code,
            age_ms,
            left_ms,
        })
        .boxed()
}

fn accepted_submission(vocabulary: &Vocabulary) -> BoxedStrategy<CaseAcceptedSubmission> {
    let attempts = prop_oneof![4 => 1..=12_u16, 1 => 1..=u16::MAX];
    let legs = prop_oneof![4 => 1..=4_u8, 1 => 1..=u8::MAX];
    let time = || prop_oneof![4 => 0..=MONTH_MS, 1 => Just(0), 1 => 0..=MAX_INTEGER];
    (attempts, (any::<u8>(), legs), select(vocabulary.peers.clone()), time(), time())
        .prop_map(|(attempts, (leg, legs), peer, age_ms, left_ms)| CaseAcceptedSubmission {
            attempts,
            leg: leg % legs,
            legs,
            peer,
            age_ms,
            left_ms,
        })
        .boxed()
}

fn event() -> BoxedStrategy<CaseEvent> {
    let states: Vec<CaseDlrState> = CaseDlrState::all().collect();
    let error = prop_oneof![4 => select(vec![0, 1, 8, 11, 34, 255]), 1 => any::<u16>()];
    let latency = prop_oneof![4 => 0..=120_000_u64, 1 => Just(0), 1 => 0..=MAX_INTEGER];
    let network_error = option::weighted(0.2, 0..=0x00FF_FFFF_u32);
    let dlr = (select(states), option::weighted(0.2, any::<bool>()), error, network_error, latency).prop_map(
        |(state, is_final, error, network_error, latency_ms)| {
            CaseEvent::Dlr(CaseDlr { state, is_final, error, network_error, latency_ms })
        },
    );
    prop_oneof![1 => Just(CaseEvent::Accepted), 1 => Just(CaseEvent::Timeout), 4 => dlr].boxed()
}

fn first_leg(vocabulary: &Vocabulary) -> BoxedStrategy<CaseFirstLeg> {
    let cost = prop_oneof![4 => 0..=100_000_u32, 1 => any::<u32>()];
    (select(vocabulary.peers.clone()), cost).prop_map(|(peer, cost)| CaseFirstLeg { peer, cost }).boxed()
}

fn settlement(vocabulary: &Vocabulary) -> BoxedStrategy<CaseSettlement> {
    let number = || prop_oneof![4 => 0..=100_000_u64, 1 => 0..=MAX_INTEGER];
    (number(), number(), select(vocabulary.names.clone()), number(), any::<bool>(), number())
        .prop_map(|(serial, message, account, amount, captured, at)| CaseSettlement {
            serial,
            message,
            account,
            amount,
            captured,
            at,
        })
        .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin_host::CaseSetup;
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    use std::collections::BTreeSet;

    fn generate(hook: Hook, policy: &str, count: usize) -> Vec<CaseQuestion> {
        let setup = CaseSetup { policy: policy.to_owned(), ..CaseSetup::default() };
        let strategy = questions(hook, &Vocabulary::of(&setup));
        let mut runner = TestRunner::deterministic();
        (0..count).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
    }

    #[test]
    fn messages_have_all_kinds_of_values() {
        let questions = generate(Hook::Router, "route 8613 north", 3_000);
        let messages: Vec<&CaseMessage> = questions
            .iter()
            .map(|question| match question {
                CaseQuestion::Route(message) => message,
                other => panic!("{other:?}"),
            })
            .collect();
        let any = |kind: &str, found: &dyn Fn(&CaseMessage) -> bool| {
            assert!(messages.iter().any(|message| found(message)), "no message has {kind}");
        };
        any("the document's name as origin", &|message| message.origin == "north");
        any("the document's prefix", &|message| message.destination.value.starts_with("8613"));
        any("a plus sign", &|message| message.destination.value.starts_with("+8613"));
        any("an empty destination", &|message| message.destination.value.is_empty());
        any("replaced octets", &|message| message.destination.value.contains('\u{fffd}'));
        any("a full address", &|message| message.source.value.len() == MAX_ADDRESS);
        any("characters of several octets", &|message| !message.source.value.is_ascii());
        any("an unusual type of number", &|message| message.source.ton > 6);
        any("a service type", &|message| message.service_type.is_some());
        any("octets outside UTF-8", &|message| std::str::from_utf8(&message.text.octets).is_err());
        any("a UDH", &|message| message.text.udhi && message.text.octets.starts_with(&[5, 0, 3]));
        any("an empty UDH", &|message| message.text.udhi && message.text.octets.is_empty());
        any("a long text", &|message| message.text.octets.len() > 1_000);
        let priorities: BTreeSet<u8> = messages.iter().map(|message| message.priority).collect();
        assert_eq!(priorities.len(), 4);
        let codings: BTreeSet<u8> = messages.iter().map(|message| message.data_coding).collect();
        assert!(codings.len() > 100, "{codings:?}");
        // As on an appliance, except for the replacement characters: they have three octets each.
        let longest = messages.iter().map(|message| message.destination.value.chars().count()).max();
        assert!(longest <= Some(MAX_ADDRESS), "{longest:?}");
    }

    #[test]
    fn every_hook_has_its_questions() {
        for question in generate(Hook::Resolver, "", 500) {
            assert!(matches!(&question, CaseQuestion::Resolve(number) if !number.starts_with('+')));
        }
        let mut classes = Vec::new();
        for question in generate(Hook::DeliveryPolicy, "", 500) {
            let CaseQuestion::Next(_, attempt) = question else { panic!("{question:?}") };
            assert!(attempt.number > 0 && attempt.leg < attempt.legs, "{attempt:?}");
            if !classes.contains(&attempt.class) {
                classes.push(attempt.class);
            }
        }
        assert_eq!(classes.len(), 5);
        let billed = generate(Hook::Biller, "", 500);
        for found in [
            |question: &CaseQuestion| matches!(question, CaseQuestion::Price(_, Some(_))),
            |question: &CaseQuestion| matches!(question, CaseQuestion::Price(_, None)),
            |question: &CaseQuestion| matches!(question, CaseQuestion::Settle(all) if all.len() > 1),
        ] {
            assert!(billed.iter().any(found));
        }
    }
}
