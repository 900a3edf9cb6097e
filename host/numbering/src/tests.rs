use crate::{
    DialledNumber, NormalisedNumber, NumberClass, NumberKind, NumberPlan, NumberPlans, NumberRefusal,
    NumberTarget,
};
use model::{Address, RejectReason};
use proptest::prelude::*;
use std::sync::LazyLock;

mod invalid_documents;

const DOCUMENT: &str = include_str!("../../../policies/numbering.toml");

/// A second country: area codes of any length, dialled with a zero; some services; a peer for international numbers.
const GERMANY: &str = r#"
[plan.germany]
country-code = "49"
international-prefix = ["00"]
trunk-prefix = ["0"]
trunk-needed = true
national-numbers = ["[2-9]XXXX.", "1[5-7]XXXXXXXX", "1[5-7]XXXXXXXXX"]
show = "national"
international = "peer:abroad"

[[plan.germany.range]]
name = "ours"
numbers = ["1511234XXXX"]
to = "home"

[[plan.germany.range]]
name = "ours, but ported away"
numbers = ["15112340007"]
to = "peer:carrier"

[[plan.germany.range]]
name = "the Danes'"
numbers = ["+4526."]
to = "peer:danes"

[[plan.germany.short-code]]
name = "services"
numbers = ["[2-9]XXXX"]
to = "peer:carrier"

[[plan.germany.short-code]]
name = "the weather"
numbers = ["44044"]
to = "home"

[[plan.germany.short-code]]
name = "emergency"
numbers = ["112", "110"]
to = "refuse"
"#;

fn nanp() -> &'static NumberPlan {
    static PLANS: LazyLock<NumberPlans> = LazyLock::new(|| NumberPlans::parse(DOCUMENT).unwrap());
    PLANS.get(PLANS.default_name()).unwrap()
}

fn germany() -> &'static NumberPlan {
    static PLANS: LazyLock<NumberPlans> = LazyLock::new(|| NumberPlans::parse(GERMANY).unwrap());
    PLANS.get("germany").unwrap()
}

/// The result for a number in one line: `digits class target`, or the refusal.
fn row(plan: &NumberPlan, ton: u8, digits: &str, caller: &str) -> String {
    let caller = Some(caller).filter(|caller| !caller.is_empty());
    match plan.normalise(&DialledNumber { ton, npi: 1, digits }, caller) {
        Ok(NormalisedNumber { digits, class, to, rule, .. }) => {
            let form = rule.split_once(": ").unwrap().1;
            match class {
                NumberClass::Peer(peer) => format!("{digits} peer:{peer} -> {to} ({form})"),
                class => format!("{digits} {class:?} -> {to} ({form})"),
            }
        }
        Err(refused @ NumberRefusal::Invalid(_)) => format!("invalid: {refused}"),
        Err(refused @ NumberRefusal::NotAllowed(_)) => format!("not allowed: {refused}"),
    }
}

fn check(plan: &NumberPlan, rows: &[(u8, &str, &str, &str)]) {
    for (ton, digits, caller, expected) in rows {
        assert_eq!(row(plan, *ton, digits, caller), *expected, "type {ton}, {digits:?} from {caller:?}");
    }
}

const ANN: &str = "16195550123";

#[test]
fn north_america_row_by_row() {
    check(
        nanp(),
        &[
            // International as written.
            (1, "16195550124", ANN, "16195550124 Home -> home (international as written, our numbers)"),
            (1, "+16195550124", ANN, "16195550124 Home -> home (international as written, our numbers)"),
            (0, "+16195550124", ANN, "16195550124 Home -> home (international as written, our numbers)"),
            (1, "12125550123", ANN, "12125550123 National -> route (international as written, this country)"),
            (
                1,
                "4930123456",
                ANN,
                "4930123456 International -> route (international as written, another country)",
            ),
            // Also if it looks like another form.
            (
                1,
                "2125550123",
                ANN,
                "2125550123 International -> route (international as written, another country)",
            ),
            (
                1,
                "77777",
                ANN,
                "invalid: nanp: international as written, but not 7 to 15 digits without a leading zero",
            ),
            (
                1,
                "01149301234",
                ANN,
                "invalid: nanp: international as written, but not 7 to 15 digits without a leading zero",
            ),
            (
                1,
                "1619555012",
                ANN,
                "invalid: nanp: international as written, but not a number of this country",
            ),
            (
                1,
                "11195550123",
                ANN,
                "invalid: nanp: international as written, but not a number of this country",
            ),
            (
                1,
                "16191550123",
                ANN,
                "invalid: nanp: international as written, but not a number of this country",
            ),
            // Eleven, ten and seven digits.
            (
                0,
                "12125550123",
                ANN,
                "12125550123 National -> route (national with trunk prefix, this country)",
            ),
            (0, "16195550124", ANN, "16195550124 Home -> home (national with trunk prefix, our numbers)"),
            (0, "2125550123", ANN, "12125550123 National -> route (national, this country)"),
            (0, "8585550199", ANN, "18585550199 Home -> home (national, our numbers in the north)"),
            (0, "8585550250", ANN, "18585550250 Home -> home (national, our numbers in the north)"),
            (0, "8585550200", ANN, "18585550200 National -> route (national, this country)"),
            (0, "5550124", ANN, "16195550124 Home -> home (local, in the caller's area, our numbers)"),
            (
                0,
                "5550124",
                "+12125550000",
                "12125550124 National -> route (local, in the caller's area, this country)",
            ),
            (0, "5550124", "", "invalid: nanp: a local number, but the caller's area code is unknown"),
            (
                0,
                "5550124",
                "4930123456",
                "invalid: nanp: a local number, but the caller's area code is unknown",
            ),
            (0, "5550124", "16", "invalid: nanp: a local number, but the caller's area code is unknown"),
            (4, "5550124", ANN, "16195550124 Home -> home (local, in the caller's area, our numbers)"),
            // Type national.
            (2, "2125550123", ANN, "12125550123 National -> route (national, this country)"),
            (
                2,
                "12125550123",
                ANN,
                "12125550123 National -> route (national with trunk prefix, this country)",
            ),
            (2, "5550124", ANN, "16195550124 Home -> home (local, in the caller's area, our numbers)"),
            (2, "77777", ANN, "77777 ShortCode -> route (short code, US short codes)"),
            (2, "01149301234", ANN, "invalid: nanp: not a national number"),
            // Area code and exchange start with 2 to 9.
            (0, "1125550123", ANN, "invalid: nanp: 10 digits match no form of the plan"),
            (0, "2121550123", ANN, "invalid: nanp: 10 digits match no form of the plan"),
            (0, "1550124", ANN, "invalid: nanp: 7 digits match no form of the plan"),
            // International.
            (
                0,
                "0114930123456",
                ANN,
                "4930123456 International -> route (dialled internationally, another country)",
            ),
            (0, "01116195550124", ANN, "16195550124 Home -> home (dialled internationally, our numbers)"),
            (
                0,
                "011493",
                ANN,
                "invalid: nanp: dialled internationally, but not 7 to 15 digits without a leading zero",
            ),
            (
                0,
                "01199",
                ANN,
                "invalid: nanp: dialled internationally, but not 7 to 15 digits without a leading zero",
            ),
            // Short codes, internal numbers, abbreviations.
            (0, "22395", ANN, "22395 ShortCode -> route (short code, US short codes)"),
            (3, "223950", ANN, "223950 ShortCode -> route (short code, US short codes)"),
            (6, "223950", ANN, "223950 ShortCode -> route (short code, US short codes)"),
            (0, "12345", ANN, "invalid: nanp: 5 digits match no form of the plan"),
            (3, "2125550123", ANN, "invalid: nanp: not a short code of the plan"),
            (0, "7001", ANN, "7001 Home -> home (internal, internal numbers)"),
            (0, "0124", ANN, "16195550124 Home -> home (abbreviated, our numbers)"),
            (0, "0999", ANN, "16195550999 Home -> home (abbreviated, our numbers)"),
            (6, "0124", ANN, "16195550124 Home -> home (abbreviated, our numbers)"),
            (0, "1000", ANN, "invalid: nanp: 4 digits match no form of the plan"),
            // Refused by the plan.
            (0, "9005550123", ANN, "not allowed: nanp: national, paid numbers: refused"),
            (1, "19005550123", ANN, "not allowed: nanp: international as written, paid numbers: refused"),
            // Invalid numbers.
            (0, "911", ANN, "invalid: nanp: 3 digits match no form of the plan"),
            (0, "", ANN, "invalid: nanp: the number is empty or contains other characters than digits"),
            (0, "*100#", ANN, "invalid: nanp: the number is empty or contains other characters than digits"),
            (0, "+", ANN, "invalid: nanp: the number is empty or contains other characters than digits"),
            (5, "THEMWI", ANN, "invalid: nanp: an alphanumeric address is not a number"),
            (7, "22395", ANN, "invalid: nanp: type of number 7 is unknown"),
            (2, "+12125550123", ANN, "invalid: nanp: a plus sign is not allowed with type of number 2"),
        ],
    );
}

#[test]
fn germany_row_by_row() {
    check(
        germany(),
        &[
            (1, "4915112340001", "", "4915112340001 Home -> home (international as written, ours)"),
            (0, "004915112340001", "", "4915112340001 Home -> home (dialled internationally, ours)"),
            (0, "015112340001", "", "4915112340001 Home -> home (national with trunk prefix, ours)"),
            (2, "15112340001", "", "4915112340001 Home -> home (national, ours)"),
            (2, "015112340001", "", "4915112340001 Home -> home (national with trunk prefix, ours)"),
            // A single number takes precedence over the range around it.
            (
                0,
                "015112340007",
                "",
                "4915112340007 peer:carrier -> peer:carrier (national with trunk prefix, ours, but ported away)",
            ),
            (0, "030123456", "", "4930123456 National -> route (national with trunk prefix, this country)"),
            // Without the zero it would be a local number, which the plan does not have.
            (0, "30123456", "", "invalid: germany: 8 digits match no form of the plan"),
            (0, "15112340001", "", "invalid: germany: 11 digits match no form of the plan"),
            (
                0,
                "0012125550123",
                "",
                "12125550123 International -> peer:abroad (dialled internationally, another country)",
            ),
            (
                0,
                "00452612345",
                "",
                "452612345 peer:danes -> peer:danes (dialled internationally, the Danes')",
            ),
            (
                0,
                "00452712345",
                "",
                "452712345 International -> peer:abroad (dialled internationally, another country)",
            ),
            (0, "33333", "", "33333 ShortCode -> peer:carrier (short code, services)"),
            (0, "44044", "", "44044 ShortCode -> home (short code, the weather)"),
            (0, "112", "", "not allowed: germany: short code, emergency: refused"),
            (0, "0112", "", "invalid: germany: 4 digits match no form of the plan"),
            (
                1,
                "4911234567",
                "",
                "invalid: germany: international as written, but not a number of this country",
            ),
        ],
    );
}

#[test]
fn number_in_a_range_is_valid() {
    // A private network uses unassigned numbers.
    let made_up = DOCUMENT.replace("\"6195550XXX\"", "\"9990014XXX\"");
    let plans = NumberPlans::parse(&made_up).unwrap();
    let plan = plans.get("nanp").unwrap();
    check(
        plan,
        &[
            (0, "9990014444", ANN, "19990014444 Home -> home (national, our numbers)"),
            (1, "19990014444", ANN, "19990014444 Home -> home (international as written, our numbers)"),
            (0, "4444", ANN, "19990014444 Home -> home (abbreviated, our numbers)"),
            (0, "9990024444", ANN, "invalid: nanp: 10 digits match no form of the plan"),
        ],
    );
}

#[test]
fn plan_area_code_is_the_fallback_for_callers_without_one() {
    let plans =
        NumberPlans::parse(&DOCUMENT.replace("# area-code = \"619\"", "area-code = \"858\"")).unwrap();
    check(
        plans.get("nanp").unwrap(),
        &[
            (0, "5550124", ANN, "16195550124 Home -> home (local, in the caller's area, our numbers)"),
            (
                0,
                "5550124",
                "7001",
                "18585550124 Home -> home (local, in the plan's area, our numbers in the north)",
            ),
        ],
    );
}

#[test]
fn refusals_have_a_reason() {
    let refused = |digits| nanp().normalise(&DialledNumber::typed(digits), None).unwrap_err().reason();
    assert_eq!(refused("911"), RejectReason::InvalidDestination);
    assert_eq!(refused("9005550123"), RejectReason::Prohibited);
    let telex = DialledNumber { ton: 0, npi: 4, digits: "2125550123" };
    assert!(nanp().normalise(&telex, None).unwrap_err().to_string().contains("numbering plan 4"));
    for npi in [0, 8, 9] {
        nanp().normalise(&DialledNumber { npi, ..telex }, None).unwrap();
    }
}

#[test]
fn several_plans_list_their_peers() {
    let plans = NumberPlans::parse(&format!("{DOCUMENT}\n{GERMANY}")).unwrap();
    assert_eq!(plans.default_name(), "nanp");
    assert_eq!(plans.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["germany", "nanp"]);
    assert_eq!(plans.peers(), ["abroad", "carrier", "danes"]);
    assert_eq!(plans.get("germany").unwrap().country_code(), "49");
    assert!(plans.get("france").is_none());
}

#[test]
fn numbers_are_displayed_in_the_plan_form() {
    let shown = |plan: &NumberPlan, ton, value: &str| {
        let shown = plan.display(&Address::new(ton, 1, value.as_bytes()));
        format!("{} {}", shown.ton, shown.text())
    };
    let (nanp, germany) = (nanp(), germany());
    assert_eq!(shown(nanp, 1, "16195550123"), "1 16195550123");
    assert_eq!(shown(nanp, 0, "+16195550123"), "1 16195550123");
    assert_eq!(shown(nanp, 0, "22395"), "0 22395");
    assert_eq!(shown(nanp, 5, "THEMWI"), "5 THEMWI");
    assert_eq!(shown(nanp, 1, "abc"), "1 abc");
    assert_eq!(shown(germany, 1, "4915112340001"), "0 015112340001");
    assert_eq!(shown(germany, 1, "12125550123"), "1 12125550123");
    assert_eq!(shown(germany, 1, "4911234567"), "1 4911234567", "no number of the country's");
    // The national form would match a service.
    let short = GERMANY.replace("\"[2-9]XXXX\"", "\"[2-9]XXXX\", \"0151.\"");
    let short = NumberPlans::parse(&short).unwrap().get("germany").unwrap().clone();
    assert_eq!(shown(&short, 1, "4915112340001"), "1 4915112340001");
    assert_eq!(nanp.display(&Address::new(0, 1, &[0xff])), Address::new(0, 1, &[0xff]));
}

fn any_number() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9]{0,17}",
        "(011|00|1|0)?[2-9][0-9]{2}[2-9][0-9]{6}",
        "0?1511234[0-9]{4}",
        "(\\+?1)?619555[0-9]{4}",
        "\\+?[0-9*#a]{0,24}",
        ".{0,8}",
    ]
}

proptest! {
    #[test]
    fn normalising_is_idempotent(
        ton in 0_u8..9,
        npi in 0_u8..11,
        digits in any_number(),
        caller in proptest::option::of(any_number()),
    ) {
        for plan in [nanp(), germany()] {
            let dialled = DialledNumber { ton, npi, digits: &digits };
            let Ok(number) = plan.normalise(&dialled, caller.as_deref()) else { continue };
            prop_assert!(number.digits.bytes().all(|octet| octet.is_ascii_digit()));
            prop_assert!(number.to != NumberTarget::Refuse);
            prop_assert!(number.kind == NumberKind::Short || (7..=15).contains(&number.digits.len()));
            let address = number.address();
            let again = plan.normalise(&DialledNumber::of(&address).unwrap(), None).unwrap();
            prop_assert_eq!(&again.digits, &number.digits);
            prop_assert_eq!(again.kind, number.kind);
            prop_assert_eq!(&again.class, &number.class);
            prop_assert_eq!(&again.to, &number.to);
            // An answer reaches the sender.
            let shown = plan.display(&address);
            let answered = plan.normalise(&DialledNumber::of(&shown).unwrap(), None).unwrap();
            prop_assert_eq!(answered.digits, number.digits);
        }
    }

    #[test]
    fn refusals_and_rules_do_not_contain_the_number(digits in "[0-9]{7,15}", ton in 0_u8..7) {
        for plan in [nanp(), germany()] {
            let words = match plan.normalise(&DialledNumber { ton, npi: 1, digits: &digits }, Some(ANN)) {
                Ok(number) => number.rule,
                Err(refused) => refused.to_string(),
            };
            prop_assert!(!words.contains(&digits[..7]), "{}", words);
        }
    }
}
