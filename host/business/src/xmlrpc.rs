//! XML-RPC: the same operations as JSON; values are converted both ways.

use crate::accounts::Account;
use crate::calls::Shared;
use crate::problem::{Problem, ProblemKind};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use dxr::{Fault, FaultResponse, MethodCall, MethodResponse, TryFromValue, TryToValue, Value as Xml};
use encoding_rs::{Encoding, REPLACEMENT, UTF_8, UTF_16BE, UTF_16LE};
use quick_xml::events::{BytesEnd, BytesStart, Event};
use quick_xml::{Reader, Writer};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum nesting of elements, which bounds the recursion of the parser.
const DEPTH: usize = 48;

/// Methods: name, signature (result first), help.
pub(crate) const METHODS: &[(&str, &[&str], &str)] = &[
    (
        "sms.submit",
        &["array", "struct"],
        "Submits one message {from, to, text, ...}; `to` is a number or an array of numbers. Returns one struct per number: {to, id} or {to, error, detail}. The optional second parameter, a string, is the idempotency key.",
    ),
    (
        "sms.submitMany",
        &["array", "array"],
        "Submits an array of messages. If one message is malformed, all are refused. Otherwise as sms.submit.",
    ),
    ("sms.state", &["struct", "string"], "The state of one message: {id, state, final_at, error}."),
    (
        "sms.states",
        &["array", "array"],
        "The states of several messages; {id, error, detail} for unknown ones.",
    ),
    (
        "sms.fetch",
        &["struct", "struct"],
        "Fetches replies and DLRs that were not pushed: {max, wait, acknowledge} -> {batch, items}. Items are offered again unless their batch is acknowledged in time.",
    ),
    (
        "sms.acknowledge",
        &["int", "string"],
        "Acknowledges a fetched batch; a second parameter, an array of ids, acknowledges only those. Returns the number of items.",
    ),
    ("system.listMethods", &["array"], "The names of all methods."),
    ("system.methodSignature", &["array", "string"], "The signatures of a method."),
    ("system.methodHelp", &["string", "string"], "The description of a method."),
    ("system.multicall", &["array", "array"], "Calls several methods: an array of {methodName, params}."),
];

/// Decodes a document by its byte order mark or XML declaration; UTF-8 by default (XML 1.0 §4.3.3). ISO-8859-1 is read
/// as windows-1252 and GB2312 as GBK, their supersets.
///
/// # Errors
/// Fails if the encoding is unknown or the octets are invalid.
fn decode(body: &[u8]) -> Result<Cow<'_, str>, String> {
    let (encoding, marked) = match (Encoding::for_bom(body), body) {
        (Some((encoding, length)), _) => (encoding, length),
        (None, [0, b'<', ..]) => (UTF_16BE, 0),
        (None, [b'<', 0, ..]) => (UTF_16LE, 0),
        (None, _) => (declared(body)?, 0),
    };
    encoding
        .decode_without_bom_handling_and_without_replacement(body.get(marked..).unwrap_or_default())
        .ok_or_else(|| format!("the document is not {}", encoding.name()))
}

/// The encoding named by the XML declaration. It cannot be UTF-16, because the declaration was readable as ASCII.
fn declared(body: &[u8]) -> Result<&'static Encoding, String> {
    let Some((declaration, _)) = body.strip_prefix(b"<?xml").and_then(|rest| {
        rest.iter().position(|octet| *octet == b'>').and_then(|end| rest.split_at_checked(end))
    }) else {
        return Ok(UTF_8);
    };
    let declaration = String::from_utf8_lossy(declaration);
    let Some((_, rest)) = declaration.split_once("encoding") else { return Ok(UTF_8) };
    let mut quoted = rest.trim_start().strip_prefix('=').unwrap_or_default().trim_start().chars();
    let name = match quoted.next() {
        Some(quote @ ('"' | '\'')) => quoted.as_str().split(quote).next().unwrap_or_default(),
        _ => "",
    };
    Encoding::for_label(name.as_bytes())
        .filter(|encoding| ![REPLACEMENT, UTF_16BE, UTF_16LE].contains(encoding))
        .ok_or_else(|| {
            let name: String = name.chars().take(40).collect();
            format!(
                "the document declares the encoding {name:?}; use UTF-8, UTF-16, ISO-8859-1, GB2312 or GBK"
            )
        })
}

/// Prepares a document for the parser; `None` if it is nested deeper than [`DEPTH`] or has a DTD. It uses the same
/// tokenizer as the parser, so that both see the same tags. With `wide`, integers of any type may have 64 bits, because
/// clients on 64-bit machines send phone numbers as `int`.
fn plain(text: &str, wide: bool) -> Option<String> {
    let mut reader = Reader::from_str(text);
    let mut writer = Writer::new(Vec::with_capacity(text.len()));
    let is_integer = |name: &[u8]| wide && matches!(name, b"int" | b"i4");
    let mut depth = 0_usize;
    loop {
        let event = match reader.read_event() {
            Ok(Event::Start(start)) => {
                depth += 1;
                let integer = is_integer(start.name().as_ref());
                Event::Start(if integer { BytesStart::new("i8") } else { start })
            }
            Ok(Event::End(end)) => {
                depth = depth.saturating_sub(1);
                let integer = is_integer(end.name().as_ref());
                Event::End(if integer { BytesEnd::new("i8") } else { end })
            }
            Ok(Event::DocType(_)) => return None,
            Ok(Event::Eof) => return String::from_utf8(writer.into_inner()).ok(),
            // The parser starts at the beginning, and does not get beyond this position.
            Err(_) => return Some(text.to_owned()),
            Ok(other) => other,
        };
        if depth > DEPTH {
            return None;
        }
        writer.write_event(event).ok()?;
    }
}

/// Converts to JSON: octets become base64 text, times text. Nil members are omitted.
fn to_json(value: &Xml, depth: usize) -> Result<Value, String> {
    if depth > DEPTH {
        return Err("nested too deeply".to_owned());
    }
    if let Ok(None) = Option::<Xml>::try_from_value(value) {
        return Ok(Value::Null);
    }
    if let Ok(text) = String::try_from_value(value) {
        return Ok(text.into());
    }
    if let Ok(number) = i64::try_from_value(value) {
        return Ok(number.into());
    }
    if let Ok(truth) = bool::try_from_value(value) {
        return Ok(truth.into());
    }
    if let Ok(number) = f64::try_from_value(value) {
        return Ok(json!(number));
    }
    if let Ok(members) = HashMap::<String, Xml>::try_from_value(value) {
        let mut map = Map::new();
        for (name, member) in members {
            let member = to_json(&member, depth + 1)?;
            if !member.is_null() {
                map.insert(name, member);
            }
        }
        return Ok(Value::Object(map));
    }
    if let Ok(list) = Vec::<Xml>::try_from_value(value) {
        return list.iter().map(|one| to_json(one, depth + 1)).collect::<Result<_, _>>().map(Value::Array);
    }
    if let Ok(octets) = Vec::<u8>::try_from_value(value) {
        return Ok(STANDARD.encode(octets).into());
    }
    if let Ok(at) = dxr::chrono::NaiveDateTime::try_from_value(value) {
        return Ok(at.format("%Y-%m-%dT%H:%M:%SZ").to_string().into());
    }
    Err("unknown value type".to_owned())
}

/// Converts to XML-RPC. Numbers beyond 32 bits become text, because only `i4` is universally supported; null members
/// are omitted.
fn to_xml(value: &Value) -> Result<Xml, String> {
    let response = |error: dxr::DxrError| error.to_string();
    Ok(match value {
        Value::Null => Xml::string(String::new()),
        Value::Bool(truth) => Xml::boolean(*truth),
        Value::Number(number) => match number.as_i64().map(i32::try_from) {
            Some(Ok(small)) => Xml::i4(small),
            Some(Err(_)) => Xml::string(number.to_string()),
            None => Xml::double(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => Xml::string(writable(text)),
        Value::Array(list) => {
            let list: Vec<Xml> = list.iter().map(to_xml).collect::<Result<_, _>>()?;
            list.try_to_value().map_err(response)?
        }
        Value::Object(map) => {
            let members = map.iter().filter(|(_, value)| !value.is_null());
            let members: HashMap<String, Xml> = members
                .map(|(name, value)| Ok((name.clone(), to_xml(value)?)))
                .collect::<Result<_, String>>()?;
            members.try_to_value().map_err(response)?
        }
    })
}

/// Replaces characters that XML 1.0 cannot contain (§2.2): most control characters and two non-characters. A handset
/// can send them, and one of them would make a business system's parser reject the whole document.
fn writable(text: &str) -> String {
    let fits = |c: char| match c {
        '\t' | '\n' | '\r' => true,
        '\u{FFFE}' | '\u{FFFF}' => false,
        c => !c.is_control(),
    };
    text.chars().map(|c| if fits(c) { c } else { '\u{FFFD}' }).collect()
}

const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

/// A method call with one value.
pub(crate) fn call(method: &str, value: &impl Serialize) -> Result<String, String> {
    let value = serde_json::to_value(value).map_err(|error| error.to_string())?;
    let call = MethodCall::new(method.to_owned(), vec![to_xml(&value)?]);
    let text = dxr::serialize_xml(&call).map_err(|error| error.to_string())?;
    Ok(format!("{HEAD}{text}"))
}

/// Checks that a method response is not a fault.
pub(crate) fn read_answer(body: &[u8]) -> Result<(), String> {
    let text = decode(body).map_err(|error| format!("the answer is malformed: {error}"))?;
    let Some(text) = plain(&text, false) else { return Err("the answer is nested too deeply".to_owned()) };
    if dxr::deserialize_xml::<MethodResponse>(&text).is_ok() {
        return Ok(());
    }
    match dxr::deserialize_xml::<FaultResponse>(&text) {
        Ok(fault) => match Fault::try_from(fault) {
            Ok(fault) => Err(format!("fault {}: {}", fault.code(), fault.string())),
            Err(_) => Err("the answer is a fault".to_owned()),
        },
        Err(_) => Err("the answer is not a methodResponse".to_owned()),
    }
}

fn respond(result: Result<Value, Problem>) -> String {
    let answered = result.and_then(|value| {
        to_xml(&value)
            .and_then(|xml| dxr::serialize_xml(&MethodResponse::new(xml)).map_err(|error| error.to_string()))
            .map_err(|error| Problem::new(ProblemKind::Internal, error))
    });
    let text = answered.or_else(|problem| {
        // The fault may quote the request.
        let fault = problem.fault();
        let fault = Fault::new(fault.code(), writable(fault.string()));
        dxr::serialize_xml(&FaultResponse::from(fault))
    });
    format!("{HEAD}{}", text.unwrap_or_default())
}

/// A method and its parameters.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) method: String,
    pub(crate) parameters: Vec<Value>,
}

/// Parses a request.
pub(crate) fn read(body: &[u8]) -> Result<Call, Problem> {
    let malformed = |detail: String| Problem::new(ProblemKind::Malformed, detail);
    let text = decode(body).map_err(malformed)?;
    let Some(text) = plain(&text, true) else {
        return Err(malformed("the document is nested too deeply, or contains a declaration".to_owned()));
    };
    let call: MethodCall<'_> =
        dxr::deserialize_xml(&text).map_err(|error| malformed(format!("not a methodCall: {error}")))?;
    let method = call.name().to_owned();
    let parameters = call.params().iter().map(|value| to_json(value, 0)).collect::<Result<_, _>>();
    Ok(Call { method, parameters: parameters.map_err(malformed)? })
}

/// Answers a request of an account.
pub(crate) async fn answer(shared: &Arc<Shared>, account: &Arc<Account>, body: &[u8]) -> String {
    let result = match read(body) {
        Ok(call) => dispatch(shared, account, call).await,
        Err(problem) => Err(problem),
    };
    respond(result)
}

/// A fault for a request that was not dispatched.
pub(crate) fn refuse(problem: Problem) -> String {
    respond(Err(problem))
}

async fn dispatch(shared: &Arc<Shared>, account: &Arc<Account>, call: Call) -> Result<Value, Problem> {
    if call.method == "system.multicall" {
        let calls = call.parameters.into_iter().next();
        let Some(Value::Array(calls)) = calls else { return Err(parameters("system.multicall")) };
        let most = account.options.batch;
        if calls.len() > most {
            let detail = format!("{} calls in one; at most {most} are allowed", calls.len());
            return Err(Problem::new(ProblemKind::Invalid, detail));
        }
        let mut results = Vec::new();
        for one in calls {
            let result = match one_of_many(one) {
                Ok(call) => method(shared, account, call).await,
                Err(problem) => Err(problem),
            };
            results.push(match result {
                Ok(value) => json!([value]),
                Err(problem) => {
                    let fault = problem.fault();
                    json!({ "faultCode": fault.code(), "faultString": fault.string() })
                }
            });
        }
        return Ok(Value::Array(results));
    }
    method(shared, account, call).await
}

fn one_of_many(value: Value) -> Result<Call, Problem> {
    let Value::Object(mut map) = value else { return Err(parameters("system.multicall")) };
    match (map.remove("methodName"), map.remove("params")) {
        (Some(Value::String(method)), Some(Value::Array(parameters))) if method != "system.multicall" => {
            Ok(Call { method, parameters })
        }
        _ => Err(parameters("system.multicall")),
    }
}

fn parameters(method: &str) -> Problem {
    let usage = METHODS.iter().find(|(name, ..)| *name == method).map_or("", |(_, _, help)| *help);
    Problem::new(ProblemKind::Parameters, format!("{method}: {usage}"))
}

fn known(name: &Value) -> Result<&'static (&'static str, &'static [&'static str], &'static str), Problem> {
    METHODS.iter().find(|(method, ..)| name.as_str() == Some(method)).ok_or_else(|| {
        Problem::new(ProblemKind::NoMethod, "unknown method; system.listMethods lists all methods")
    })
}

async fn method(shared: &Arc<Shared>, account: &Arc<Account>, call: Call) -> Result<Value, Problem> {
    let Call { method, parameters: arguments } = call;
    // A nil parameter equals a missing one.
    let mut arguments = arguments.into_iter().map(|value| Some(value).filter(|value| !value.is_null()));
    let mut next = || arguments.next().flatten();
    let (first, second, rest) = (next(), next(), next());
    let errors = || parameters(&method);
    if rest.is_some() {
        return Err(errors());
    }
    match (method.as_str(), first, second) {
        ("sms.submit", Some(item @ Value::Object(_)), key) => {
            submit(shared, account, vec![item], key).await.map_err(|error| error.unwrap_or_else(errors))
        }
        ("sms.submitMany", Some(Value::Array(items)), key) => {
            submit(shared, account, items, key).await.map_err(|error| error.unwrap_or_else(errors))
        }
        ("sms.state", Some(id), None) => {
            answer_value(shared.state(account, id.as_str().unwrap_or_default()).await?)
        }
        ("sms.states", Some(ids), None) => {
            let ids = serde_json::from_value(ids).map_err(|_| errors())?;
            answer_value(shared.states(account, ids).await)
        }
        ("sms.fetch", options, None) => {
            let options = options.unwrap_or_else(|| json!({}));
            answer_value(shared.fetch(account, serde_json::from_value(options).map_err(|_| errors())?).await?)
        }
        ("sms.acknowledge", Some(Value::String(batch)), ids) => {
            let ids = ids.map(serde_json::from_value).transpose().map_err(|_| errors())?;
            answer_value(shared.acknowledge(account, &batch, ids).await?)
        }
        ("system.listMethods", None, None) => Ok(METHODS.iter().map(|(name, ..)| json!(name)).collect()),
        ("system.methodSignature", Some(name), None) => Ok(json!([known(&name)?.1])),
        ("system.methodHelp", Some(name), None) => Ok(json!(known(&name)?.2)),
        (name, ..) if METHODS.iter().any(|(method, ..)| *method == name) => Err(errors()),
        _ => Err(Problem::new(ProblemKind::NoMethod, "unknown method; system.listMethods lists all methods")),
    }
}

async fn submit(
    shared: &Arc<Shared>,
    account: &Arc<Account>,
    items: Vec<Value>,
    key: Option<Value>,
) -> Result<Value, Option<Problem>> {
    let key = match key {
        None => None,
        Some(mut key) => {
            digits(&mut key);
            let Value::String(key) = key else { return Err(None) };
            Some(key)
        }
    };
    let items = items.into_iter().map(numbers).collect();
    let results = shared.submit(account, items, key).await?;
    answer_value(results).map_err(Some)
}

/// An answer, for the conversion to XML-RPC.
fn answer_value(answer: impl Serialize) -> Result<Value, Problem> {
    serde_json::to_value(answer).map_err(|error| Problem::new(ProblemKind::Internal, error.to_string()))
}

/// Converts an integer to its digits.
fn digits(value: &mut Value) {
    if let Some(number) = value.as_u64() {
        *value = number.to_string().into();
    }
}

/// Converts phone numbers that came as integers to text.
fn numbers(mut item: Value) -> Value {
    for name in ["from", "to"] {
        match item.get_mut(name) {
            Some(Value::Array(list)) => list.iter_mut().for_each(digits),
            Some(one) => digits(one),
            None => {}
        }
    }
    item
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_a_round_trip() {
        let value = json!({ "a": [1, true, "x<&>y", -2.5], "b": { "c": "你好" } });
        let text = call("sms.test", &value).unwrap();
        let read = read(text.as_bytes()).unwrap();
        assert_eq!((read.method.as_str(), read.parameters), ("sms.test", vec![value]));
        let big = call("m", &json!(5_000_000_000_u64)).unwrap();
        assert_eq!(super::read(big.as_bytes()).unwrap().parameters, [json!("5000000000")]);
        let control = call("m", &json!("a\u{1}b\u{FFFE}c\u{FFFF}")).unwrap();
        assert_eq!(
            super::read(control.as_bytes()).unwrap().parameters,
            [json!("a\u{FFFD}b\u{FFFD}c\u{FFFD}")]
        );
        let fault = refuse(Problem::new(ProblemKind::Invalid, "unknown field `\u{1}\u{FFFF}`"));
        assert!(fault.contains("`\u{FFFD}\u{FFFD}`"), "{fault}");
    }

    #[test]
    fn reads_documents_of_other_libraries() {
        let text = "<?xml version='1.0'?>\n<methodCall>\n<methodName>sms.submit</methodName>\n<params>\n<param>\n\
                    <value><struct>\n<member>\n<name>to</name>\n<value><array><data>\n<value><string>8613012345678\
                    </string></value>\n</data></array></value>\n</member>\n<member>\n<name>text</name>\n<value>\
                    <string>hi</string></value>\n</member>\n</struct></value>\n</param>\n</params>\n</methodCall>\n";
        let read = read(text.as_bytes()).unwrap();
        assert_eq!(read.parameters, [json!({ "to": ["8613012345678"], "text": "hi" })]);
    }

    fn document(encoding: &str, value: &str) -> String {
        format!(
            "<?xml version=\"1.0\" encoding=\"{encoding}\"?>\n<methodCall><methodName>m</methodName><params>\
             <param><value>{value}</value></param></params></methodCall>"
        )
    }

    #[test]
    fn reads_integers_of_any_type_and_nil() {
        for (value, expected) in [
            ("<i8>8613012345678</i8>", json!(8_613_012_345_678_u64)),
            ("<int>13812345678</int>", json!(13_812_345_678_u64)),
            ("<i4>-7</i4>", json!(-7)),
            ("<nil/>", Value::Null),
            ("<array><data><value><nil/></value><value><i4>1</i4></value></data></array>", json!([null, 1])),
            ("<struct><member><name>a</name><value><nil/></value></member></struct>", json!({})),
            ("<string>&lt;int&gt;5&amp;</string>", json!("<int>5&")),
        ] {
            let read = read(document("UTF-8", value).as_bytes()).unwrap();
            assert_eq!(read.parameters, [expected], "{value}");
        }
        let item = numbers(json!({ "from": 10086, "to": [8_613_012_345_678_u64, "+4930"], "priority": 2 }));
        assert_eq!(item, json!({ "from": "10086", "to": ["8613012345678", "+4930"], "priority": 2 }));
    }

    #[test]
    fn documents_are_read_in_their_declared_encoding() {
        let text = |octets: &[u8]| super::read(octets).map(|call| call.parameters);
        let latin: Vec<u8> = document("ISO-8859-1", "Gr\u{fc}\u{df}e").chars().map(|c| c as u8).collect();
        assert_eq!(text(&latin).unwrap(), [json!("Grüße")]);
        for label in ["GB2312", "gbk"] {
            let (octets, ..) = encoding_rs::GBK.encode("你好");
            let template = document(label, "@");
            let (front, back) = template.split_once('@').unwrap();
            let document = [front.as_bytes(), &octets, back.as_bytes()].concat();
            assert_eq!(text(&document).unwrap(), [json!("你好")], "{label}");
        }
        for mark in ["", "\u{FEFF}"] {
            let wide = format!("{mark}{}", document("UTF-16", "你好"));
            let little: Vec<u8> = wide.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let big: Vec<u8> = wide.encode_utf16().flat_map(u16::to_be_bytes).collect();
            assert_eq!(
                (text(&little).unwrap(), text(&big).unwrap()),
                (vec![json!("你好")], vec![json!("你好")])
            );
        }
        assert_eq!(text(format!("\u{FEFF}{}", document("utf-8", "é")).as_bytes()).unwrap(), [json!("é")]);
        for (label, octets) in
            [("UTF-8", &b"\xff"[..]), ("GBK", b"\xff"), ("klingon", b"a"), ("UTF-16", b"a")]
        {
            let template = document(label, "@");
            let (front, back) = template.split_once('@').unwrap();
            let document = [front.as_bytes(), octets, back.as_bytes()].concat();
            let problem = super::read(&document).unwrap_err();
            assert_eq!(problem.kind, ProblemKind::Malformed, "{label}");
        }
    }

    #[test]
    fn deeply_nested_documents_are_rejected_before_parsing() {
        let deep = format!(
            "<methodCall><methodName>m</methodName><params><param>{}",
            "<value><array><data>".repeat(40)
        );
        assert_eq!(read(deep.as_bytes()).unwrap_err().kind, ProblemKind::Malformed);
        let hidden = format!("<a>{}", "<!-- </a></a></a> --><value>".repeat(60));
        assert!(plain(&hidden, true).is_none());
        let quoted = "<v a=\"/>\" ".to_owned() + &"><v b='/'".repeat(60);
        assert!(plain(&quoted, true).is_none());
        assert!(plain("<!DOCTYPE x [<!ENTITY a \"b\">]><methodCall/>", true).is_none());
        let plainly = "<?xml version=\"1.0\"?><a><![CDATA[<b><c>]]></a>";
        assert_eq!(plain(plainly, true).as_deref(), Some(plainly));
    }

    #[test]
    fn the_depth_scan_cannot_be_evaded() {
        let value = "<value><array><data>";
        let end = "</data></array></value>";
        // Ends of comments, tags and instructions that parsers may interpret differently.
        for hidden in [
            format!("{value}<!-->{end}-->"),
            format!("{value}<!--->{end}-->"),
            format!("<value a=\">{end}\"><array><data>"),
            format!("<value a='>{end}'><array><data>"),
            format!("<value a='\">{end}' b='\"'><array><data>"),
            format!("{value}<?>{end}?>"),
            format!("{value}<![CDATA[]>{end}]]>"),
        ] {
            let deep =
                format!("<methodCall><methodName>m</methodName><params><param>{}", hidden.repeat(20_000));
            assert_eq!(read(deep.as_bytes()).unwrap_err().kind, ProblemKind::Malformed, "{hidden}");
            assert!(read_answer(deep.as_bytes()).is_err(), "{hidden}");
        }
    }

    #[test]
    fn reads_method_responses() {
        let good = respond(Ok(json!(true)));
        assert_eq!(read_answer(good.as_bytes()), Ok(()));
        let bad = refuse(Problem::new(ProblemKind::Invalid, "no"));
        assert_eq!(read_answer(bad.as_bytes()), Err("fault 3: invalid: no".to_owned()));
        assert!(read_answer(b"<html>").is_err() && read_answer(&[0xFF]).is_err());
    }
}
