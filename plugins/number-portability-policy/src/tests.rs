use super::*;
use proptest::prelude::*;
use std::cell::RefCell;

const DOCUMENT: &str = include_str!("../../../policies/number-portability.toml");

/// Sources with one fixed answer each, which record the queries.
#[derive(Default)]
struct Fixed {
    row: Option<&'static str>,
    naptrs: Option<Result<(Vec<Naptr>, u32), Nothing>>,
    reply: Option<Result<(u16, &'static str), &'static str>>,
    asked: RefCell<Vec<String>>,
}

impl Sources for Fixed {
    fn row(&self, _: usize, number: &str) -> Option<String> {
        self.asked.borrow_mut().push(number.to_owned());
        self.row.map(str::to_owned)
    }

    fn naptrs(&self, name: &str) -> Result<(Vec<Naptr>, u32), Nothing> {
        self.asked.borrow_mut().push(name.to_owned());
        self.naptrs.clone().unwrap_or(Err(Nothing::Unknown(None)))
    }

    fn fetch(&self, request: Request) -> Result<(u16, Vec<u8>), String> {
        self.asked.borrow_mut().push(request.url);
        match self.reply.unwrap_or(Ok((404, ""))) {
            Ok((status, body)) => Ok((status, body.as_bytes().to_vec())),
            Err(why) => Err(why.to_owned()),
        }
    }
}

const ALL: &str = r#"
valid = "2h"
unknown-valid = "5m"
[numbers]
national = "0"
country-code = "49"
[[source]]
table = "ported"
ported = true
[[source]]
enum = "e164.arpa"
[[source]]
http = "https://hlr.example/v1/{number}"
fields = { mcc = "/mcc", mnc = "/mnc", ported = "/is/ported" }
network = "/operator"
[[network]]
name = "north"
mcc = "262"
mnc = "01"
line-type = "mobile"
rn = ["49D001"]
[[network]]
name = "south"
mcc = "262"
mnc = "03"
rn = ["49D0", "49D003"]
spn = ["South Mobile"]
"#;

fn look_up(document: &str, digits: &str, sources: &Fixed) -> Outcome {
    let number = Number { digits, international: !digits.starts_with('0') };
    Policy::parse(document).unwrap().look_up(number, sources)
}

fn known(outcome: &Outcome) -> String {
    match &outcome.answer {
        Answer::Found(attributes, valid) => {
            let all: Vec<String> = attributes.iter().map(|(name, value)| format!("{name}={value}")).collect();
            format!("{} for {}", all.join(" "), valid.as_secs())
        }
        other => format!("{other:?}"),
    }
}

fn naptr(uri: &str) -> Vec<Naptr> {
    let regexp = format!("!^.*$!{uri}!");
    vec![Naptr { flags: "u".to_owned(), services: "E2U+pstn:tel".to_owned(), regexp }]
}

#[test]
fn the_schema_is_up_to_date() {
    policy_values::schema::assert_up_to_date::<Document>("number-portability");
}

#[test]
fn the_shipped_document_is_valid() {
    let policy = Policy::parse(DOCUMENT).unwrap();
    assert_eq!(policy.tables().collect::<Vec<_>>(), [(0, "ported")]);
    // Including commented-out examples.
    let whole: Vec<&str> = DOCUMENT
        .lines()
        .map(|line| {
            line.strip_prefix("# ")
                .filter(|rest| rest.contains(" = ") || rest.starts_with('['))
                .unwrap_or(line)
        })
        .collect();
    assert_eq!(Policy::parse(&whole.join("\n")).unwrap().sources.len(), 3);
}

#[test]
fn rows_name_a_network_or_its_codes() {
    let row = |row| {
        let sources = Fixed { row: Some(row), ..Fixed::default() };
        known(&look_up(ALL, "4915112345", &sources))
    };
    assert_eq!(row("north"), "mcc=262 mnc=01 line-type=mobile ported=yes for 7200");
    assert_eq!(row("310-410,not-ported,fixed"), "mcc=310 mnc=410 ported=no line-type=fixed for 7200");
    assert_eq!(row("south, ,voip"), "mcc=262 mnc=03 ported=yes line-type=voip for 7200");
    assert_eq!(row("nobody"), "TryLater");
}

#[test]
fn a_national_number_is_looked_up_in_international_form() {
    let sources = Fixed::default();
    assert_eq!(known(&look_up(ALL, "0151123", &sources)), "Unknown(300s)");
    let asked = ["49151123", "3.2.1.1.5.1.9.4.e164.arpa", "https://hlr.example/v1/49151123"];
    assert_eq!(*sources.asked.borrow(), asked);
}

#[test]
fn enum_records_name_the_network_by_routing_number_or_provider() {
    let uri = |uri: &str| {
        let sources = Fixed { naptrs: Some(Ok((naptr(uri), 60))), ..Fixed::default() };
        known(&look_up(ALL, "4915112345", &sources))
    };
    assert_eq!(
        uri("tel:+4915112345;npdi;rn=+49D0014915112345"),
        "ported=yes mcc=262 mnc=01 line-type=mobile rn=49D0014915112345 for 60"
    );
    // The longest prefix counts.
    assert_eq!(uri("tel:+49;rn=+49D00349"), "ported=yes mcc=262 mnc=03 rn=49D00349 for 60");
    assert_eq!(uri("tel:+49;npdi;spn=South%20Mobile"), "ported=no mcc=262 mnc=03 spn=South Mobile for 60");
    assert_eq!(uri("tel:+49;npdi"), "ported=no for 60");
    assert_eq!(uri("sip:a@example.org"), "Unknown(60s)");
}

#[test]
fn json_pointers_become_attributes() {
    let reply = |status, body| {
        let sources = Fixed { reply: Some(Ok((status, body))), ..Fixed::default() };
        let outcome = look_up(ALL, "4915112345", &sources);
        format!("{}; {}", known(&outcome), outcome.note)
    };
    assert_eq!(
        reply(200, r#"{"mcc":262,"mnc":"02","is":{"ported":false}}"#),
        "mcc=262 mnc=02 ported=no for 7200; HTTP service at hlr.example"
    );
    assert_eq!(
        reply(200, r#"{"operator":"north","is":{"ported":true}}"#),
        "ported=yes mcc=262 mnc=01 line-type=mobile for 7200; HTTP service at hlr.example"
    );
    assert_eq!(reply(200, "{}"), "Unknown(300s); in no source");
    assert_eq!(reply(404, ""), "Unknown(300s); in no source");
    assert_eq!(reply(500, ""), "TryLater; HTTP service at hlr.example: status 500");
    assert!(reply(200, "<html>").starts_with("TryLater; HTTP service at hlr.example: no JSON"));
    assert!(reply(200, r#"{"operator":"east"}"#).contains("the unknown network \"east\""));
}

#[test]
fn a_source_that_fails_leaves_the_number_to_the_next() {
    let failed = || Some(Err(Nothing::Failed("no answer in time".to_owned())));
    let sources = Fixed { naptrs: failed(), ..Fixed::default() };
    let outcome = look_up(ALL, "4915112345", &sources);
    assert_eq!((outcome.answer, &*outcome.note), (Answer::TryLater, "ENUM in e164.arpa: no answer in time"));
    let sources = Fixed { naptrs: failed(), reply: Some(Ok((200, r#"{"mcc":"262"}"#))), ..Fixed::default() };
    assert_eq!(known(&look_up(ALL, "4915112345", &sources)), "mcc=262 for 7200");
    // The shortest time of the sources that do not know it.
    let negative =
        Fixed { naptrs: Some(Err(Nothing::Unknown(Some(Duration::from_secs(20))))), ..Fixed::default() };
    assert_eq!(known(&look_up(ALL, "4915112345", &negative)), "Unknown(20s)");
}

#[test]
fn other_numbers_are_not_asked() {
    let sources = Fixed::default();
    let document = format!("only = [\"49\"]\n{ALL}");
    let outcome = look_up(&document, "4412345", &sources);
    assert_eq!(outcome.note, "not among the numbers that are looked up");
    assert_eq!(look_up(&document, "4912345678901234", &sources).note, "not a number of 1 to 15 digits");
    assert!(sources.asked.borrow().is_empty());
}

#[test]
fn errors_name_the_mistake() {
    let source = "[[source]]\ntable = \"t\"\n";
    let network = |text: &str| format!("{source}[[network]]\n{text}\n");
    for (document, expected) in [
        (String::new(), "missing field `source`"),
        ("source = []".to_owned(), "there are 0 [[source]] entries"),
        ("only = []\n".to_owned() + source, "`only` is empty"),
        ("only = [\"+49\"]\n".to_owned() + source, "`only`: prefix"),
        ("\n[[source]]\n".to_owned(), "line 2: a source has exactly one of"),
        ("[[source]]\ntable = \"t\"\nenum = \"e164.arpa\"".to_owned(), "exactly one of"),
        ("[[source]]\nenum = \"e164.arpa.\"".to_owned(), "without a dot at its end"),
        ("[[source]]\nenum = \"e164.arpa\"\nported = true".to_owned(), "`ported` goes with `table`"),
        ("[[source]]\nhttp = \"https://h/\"\nfields = { mcc = \"/m\" }".to_owned(), "{number}"),
        ("[[source]]\nhttp = \"https://{number}/\"\nfields = { mcc = \"/m\" }".to_owned(), "after the host"),
        ("[[source]]\nhttp = \"https://h/{number}\"".to_owned(), "needs `fields` or `network`"),
        (
            "[[source]]\nhttp = \"https://h/{number}\"\nfields = { mcc = \"m\" }".to_owned(),
            "not a JSON pointer",
        ),
        (
            "[[source]]\nhttp = \"https://h/{number}\"\nfields = { Mcc = \"/m\" }".to_owned(),
            "an attribute has",
        ),
        (network("name = \"\""), "line 3: `name` = \"\""),
        (network("name = \"n\"\nmcc = \"26\""), "`mcc` has three digits"),
        (network("name = \"n\"\nmnc = \"1\""), "two or three digits"),
        (network("name = \"n\"\nrn = [\"+49\"]"), "without a plus sign"),
        (network("name = \"n\"\n[[network]]\nname = \"n\""), "two networks \"n\""),
        (network("name = \"n\"\n[numbers]\nnational = \"0\""), "together"),
    ] {
        let error = Policy::parse(&document).unwrap_err();
        assert!(error.contains(expected), "{document:?}: {error}");
    }
}

proptest! {
    #[test]
    fn any_row_and_reply_give_valid_attributes(row in "\\PC{0,300}", body in "\\PC{0,40}") {
        let policy = Policy::parse(ALL).unwrap();
        if let Ok(attributes) = policy.row_attributes(&row, None, None) {
            prop_assert!(attributes.iter().all(|(_, value)| value.len() <= MAX_VALUE));
        }
        if let Source::Http(service) = &policy.sources[2] {
            let _ = json_reply::read(service, 200, body.as_bytes());
        }
    }
}
