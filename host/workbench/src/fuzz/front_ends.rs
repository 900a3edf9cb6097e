//! Generates questions to front ends: requests in the form of the usual HTTP APIs, and outcomes.

use crate::case_front_end::{CaseBody, CaseReply, CaseRequest};
use crate::plugin_host::CaseQuestion;
use hooks::{FrontEndOutcome, FrontEndRefusal, FrontEndResult, RefusalReason};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::{Just, Strategy as _, any, prop_oneof};
use proptest::sample::select;
use proptest::strategy::BoxedStrategy;

/// Names of parameters in the APIs of Kannel, Jasmin and Twilio.
const PARAMETERS: [&str; 24] = [
    "username",
    "user",
    "password",
    "pass",
    "to",
    "To",
    "from",
    "From",
    "text",
    "content",
    "Body",
    "hex-content",
    "coding",
    "charset",
    "mclass",
    "udh",
    "validity",
    "deferred",
    "priority",
    "dlr-mask",
    "dlr-url",
    "dlr-level",
    "ValidityPeriod",
    "SendAt",
];

const PATHS: [&str; 5] =
    ["/cgi-bin/sendsms", "/send", "/2010-04-01/Accounts/shop/Messages.json", "/sms/send", "/"];

pub(super) fn questions() -> BoxedStrategy<CaseQuestion> {
    prop_oneof![
        3 => request().prop_map(CaseQuestion::Read),
        2 => (request(), outcome())
            .prop_map(|(request, outcome)| CaseQuestion::Reply(CaseReply { request, outcome })),
    ]
    .boxed()
}

fn request() -> BoxedStrategy<CaseRequest> {
    let path = prop_oneof![6 => select(PATHS.to_vec()).prop_map(str::to_owned), 1 => "/[ -~]{0,20}"];
    let body = prop_oneof![
        2 => Just(Vec::new()),
        4 => form().prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 0..=40),
    ];
    let content_type = select(vec![
        "application/x-www-form-urlencoded",
        "application/x-www-form-urlencoded; charset=UTF-8",
        "text/plain",
        "application/json",
        "",
    ]);
    let authorization = prop_oneof![
        2 => Just("Basic c2hvcDpzZWNyZXQ=".to_owned()),
        1 => "Basic [A-Za-z0-9+/=]{0,20}",
        1 => "[ -~]{0,20}",
    ];
    let headers =
        (option::of(content_type), option::of(authorization), btree_map("[a-z-]{1,8}", "[ -~]{0,9}", 0..2));
    (select(vec!["GET", "POST"]), path, form(), body, headers)
        .prop_map(|(method, path, query, body, (content_type, authorization, mut headers))| {
            headers.extend(content_type.map(|value| ("content-type".to_owned(), value.to_owned())));
            headers.extend(authorization.map(|value| ("authorization".to_owned(), value)));
            CaseRequest { method: method.to_owned(), path, query, headers, body: CaseBody(body) }
        })
        .boxed()
}

/// Parameters with values, which may have percent signs.
fn form() -> BoxedStrategy<String> {
    let value = prop_oneof![
        3 => "[0-9]{1,15}",
        3 => "[a-zA-Z0-9+ ]{0,12}",
        2 => "(%[0-9A-Fa-f]{2}){1,6}",
        1 => "[ -~&&[^&]]{0,12}",
        1 => select(vec!["%", "%4", "%zz", "%00", "-1", "99999999999999999999", "UTF-16BE", "ISO-8859-1"])
            .prop_map(str::to_owned),
    ];
    let pair = (select(PARAMETERS.to_vec()), value).prop_map(|(name, value)| format!("{name}={value}"));
    vec(pair, 0..=9).prop_map(|pairs| pairs.join("&")).boxed()
}

fn outcome() -> BoxedStrategy<FrontEndOutcome> {
    let result = prop_oneof![
        3 => (any::<u32>(), any::<u16>())
            .prop_map(|(id, segments)| FrontEndResult::Accepted { id: id.to_string(), segments }),
        1 => refusal().prop_map(FrontEndResult::Refused),
    ];
    prop_oneof![
        3 => vec(result, 1..=4).prop_map(FrontEndOutcome::Results),
        2 => refusal().prop_map(FrontEndOutcome::Refused),
    ]
    .boxed()
}

fn refusal() -> BoxedStrategy<FrontEndRefusal> {
    use RefusalReason as R;
    let reasons = vec![
        R::Unauthenticated,
        R::Invalid,
        R::NoRoute,
        R::InvalidDestination,
        R::InvalidSource,
        R::Prohibited,
        R::NotAuthorised,
        R::NoCredit,
        R::Throttled,
        R::Unavailable,
        R::KeyReused,
        R::Internal,
    ];
    let fields = vec!["destination", "source", "content", "validity", "schedule", "user-data-header"];
    (select(reasons), "\\PC{0,20}", option::of(select(fields)))
        .prop_map(|(reason, detail, field)| FrontEndRefusal {
            reason,
            detail,
            field: field.map(str::to_owned),
        })
        .boxed()
}
