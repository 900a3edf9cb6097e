//! XML-RPC: the same operations as JSON's, values turned into JSON's and back.

use crate::accounts::Account;
use crate::door::Shared;
use crate::problem::{Kind, Problem};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use dxr::{Fault, FaultResponse, MethodCall, MethodResponse, TryFromValue, TryToValue, Value as Xml};
use encoding_rs::{Encoding, REPLACEMENT, UTF_8, UTF_16BE, UTF_16LE};
use quick_xml::events::{BytesEnd, BytesStart, Event};
use quick_xml::{Reader, Writer};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// How deeply elements may be nested. A parser that recurses must not be led to the end of its stack.
const DEPTH: usize = 48;

/// Methods: name, signature (result first), help.
pub(crate) const METHODS: &[(&str, &[&str], &str)] = &[
    (
        "sms.submit",
        &["array", "struct"],
        "Submits one message {from, to, text, ...}, `to` being a number or an array of numbers. Gives one struct a number: {to, id} or {to, error, detail}. A second parameter, a string, is the key under which the call may be repeated.",
    ),
    (
        "sms.submitMany",
        &["array", "array"],
        "Submits an array of messages, all or none of which are well-formed. Otherwise as sms.submit.",
    ),
    ("sms.state", &["struct", "string"], "The state of one message: {id, state, final_at, error}."),
    (
        "sms.states",
        &["array", "array"],
        "The states of several messages; {id, error, detail} for those unknown.",
    ),
    (
        "sms.fetch",
        &["struct", "struct"],
        "Fetches replies and reports that were not pushed: {max, wait, acknowledge} -> {batch, items}. Items are offered again unless their batch is acknowledged in time.",
    ),
    (
        "sms.acknowledge",
        &["int", "string"],
        "Acknowledges a fetched batch; a second parameter, an array of ids, acknowledges only those. Gives the number of items.",
    ),
    ("system.listMethods", &["array"], "The names of all methods."),
    ("system.methodSignature", &["array", "string"], "The signatures of a method."),
    ("system.methodHelp", &["string", "string"], "What a method does."),
    ("system.multicall", &["array", "array"], "Calls several methods: an array of {methodName, params}."),
];

/// The text of a document in the encoding that its byte order mark or its XML declaration names; UTF-8 where neither does
/// (XML 1.0 §4.3.3). ISO-8859-1 is read as windows-1252 and GB2312 as GBK, their supersets.
///
/// # Errors
/// Where the encoding is unknown, or the octets are not of it.
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

/// The encoding that the XML declaration of a document names, which is not UTF-16: its declaration could be read as ASCII.
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

/// A document as the parser gets it; `None` where it is nested deeper than [`DEPTH`] or has declarations of its own. It is
/// cut into tags by the same reader that the parser stands on: what looks like a tag to the one must not look like something
/// else to the other. With `wide`, integers of any name may have 64 bits: clients on 64-bit machines write telephone numbers as
/// `int`.
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
            // The parser, which reads on from the beginning, comes no further than this.
            Err(_) => return Some(text.to_owned()),
            Ok(other) => other,
        };
        if depth > DEPTH {
            return None;
        }
        writer.write_event(event).ok()?;
    }
}

/// A value as JSON has it: octets as base64 text, times as text. A member that is nil is left out.
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
    Err("a value of a kind that is not known".to_owned())
}

/// A value as XML-RPC has it. Numbers beyond 32 bits go as text, since `i4` is all that everybody reads; what is null is
/// left out.
fn to_xml(value: &Value) -> Result<Xml, String> {
    let told = |error: dxr::DxrError| error.to_string();
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
            list.try_to_value().map_err(told)?
        }
        Value::Object(map) => {
            let members = map.iter().filter(|(_, value)| !value.is_null());
            let members: HashMap<String, Xml> = members
                .map(|(name, value)| Ok((name.clone(), to_xml(value)?)))
                .collect::<Result<_, String>>()?;
            members.try_to_value().map_err(told)?
        }
    })
}

/// XML 1.0 has no place for most control characters, nor for two that are none (XML 1.0 §2.2). A handset can send them
/// all, and a business system's parser refuses the whole document for one.
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
pub(crate) fn call(method: &str, value: &Value) -> Result<String, String> {
    let call = MethodCall::new(method.to_owned(), vec![to_xml(value)?]);
    let text = dxr::serialize_xml(&call).map_err(|error| error.to_string())?;
    Ok(format!("{HEAD}{text}"))
}

/// Whether the answer to a method call is one, and no fault.
pub(crate) fn read_answer(body: &[u8]) -> Result<(), String> {
    let text = decode(body).map_err(|error| format!("its answer is not readable: {error}"))?;
    let Some(text) = plain(&text, false) else { return Err("its answer is nested too deeply".to_owned()) };
    if dxr::deserialize_xml::<MethodResponse>(&text).is_ok() {
        return Ok(());
    }
    match dxr::deserialize_xml::<FaultResponse>(&text) {
        Ok(fault) => match Fault::try_from(fault) {
            Ok(fault) => Err(format!("fault {}: {}", fault.code(), fault.string())),
            Err(_) => Err("its answer is a fault".to_owned()),
        },
        Err(_) => Err("its answer is no methodResponse".to_owned()),
    }
}

fn respond(result: Result<Value, Problem>) -> String {
    let answered = result.and_then(|value| {
        to_xml(&value)
            .and_then(|xml| dxr::serialize_xml(&MethodResponse::new(xml)).map_err(|error| error.to_string()))
            .map_err(|error| Problem::new(Kind::Internal, error))
    });
    let text = answered.or_else(|problem| {
        // It may quote what was asked.
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

/// Reads a request.
pub(crate) fn read(body: &[u8]) -> Result<Call, Problem> {
    let malformed = |detail: String| Problem::new(Kind::Malformed, detail);
    let text = decode(body).map_err(malformed)?;
    let Some(text) = plain(&text, true) else {
        return Err(malformed(
            "the document is nested too deeply, or has a declaration of its own".to_owned(),
        ));
    };
    let call: MethodCall<'_> =
        dxr::deserialize_xml(&text).map_err(|error| malformed(format!("this is no methodCall: {error}")))?;
    let method = call.name().to_owned();
    let parameters = call.params().iter().map(|value| to_json(value, 0)).collect::<Result<_, _>>();
    Ok(Call { method, parameters: parameters.map_err(malformed)? })
}

/// Answers a request of an account's.
pub(crate) async fn answer(shared: &Arc<Shared>, account: &Arc<Account>, body: &[u8]) -> String {
    let result = match read(body) {
        Ok(call) => dispatch(shared, account, call).await,
        Err(problem) => Err(problem),
    };
    respond(result)
}

/// A refusal before anybody was asked.
pub(crate) fn refuse(problem: Problem) -> String {
    respond(Err(problem))
}

async fn dispatch(shared: &Arc<Shared>, account: &Arc<Account>, call: Call) -> Result<Value, Problem> {
    if call.method == "system.multicall" {
        let calls = call.parameters.into_iter().next();
        let Some(Value::Array(calls)) = calls else { return Err(parameters("system.multicall")) };
        let most = account.options.batch;
        if calls.len() > most {
            let detail = format!("{} calls in one; at most {most} are taken", calls.len());
            return Err(Problem::new(Kind::Invalid, detail));
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
    Problem::new(Kind::Parameters, format!("{method}: {usage}"))
}

fn known(name: &Value) -> Result<&'static (&'static str, &'static [&'static str], &'static str), Problem> {
    METHODS
        .iter()
        .find(|(method, ..)| name.as_str() == Some(method))
        .ok_or_else(|| Problem::new(Kind::NoMethod, "no such method; system.listMethods names all of them"))
}

async fn method(shared: &Arc<Shared>, account: &Arc<Account>, call: Call) -> Result<Value, Problem> {
    let Call { method, parameters: given } = call;
    // A parameter that is nil is one that is not given.
    let mut given = given.into_iter().map(|value| Some(value).filter(|value| !value.is_null()));
    let mut next = || given.next().flatten();
    let (first, second, rest) = (next(), next(), next());
    let wrong = || parameters(&method);
    if rest.is_some() {
        return Err(wrong());
    }
    match (method.as_str(), first, second) {
        ("sms.submit", Some(item @ Value::Object(_)), key) => {
            submit(shared, account, vec![item], key).await.map_err(|error| error.unwrap_or_else(wrong))
        }
        ("sms.submitMany", Some(Value::Array(items)), key) => {
            submit(shared, account, items, key).await.map_err(|error| error.unwrap_or_else(wrong))
        }
        ("sms.state", Some(id), None) => shared.state(account, id.as_str().unwrap_or_default()).await,
        ("sms.states", Some(Value::Array(ids)), None) => Ok(shared.states(account, &ids).await),
        ("sms.fetch", options, None) => {
            let options = options.unwrap_or_else(|| json!({}));
            shared.fetch(account, serde_json::from_value(options).map_err(|_| wrong())?).await
        }
        ("sms.acknowledge", Some(Value::String(batch)), ids) => {
            let ids = match ids {
                None => None,
                Some(Value::Array(ids)) => Some(ids),
                Some(_) => return Err(wrong()),
            };
            shared.acknowledge(account, &batch, ids.as_deref()).await.map(|count| json!(count))
        }
        ("system.listMethods", None, None) => Ok(METHODS.iter().map(|(name, ..)| json!(name)).collect()),
        ("system.methodSignature", Some(name), None) => Ok(json!([known(&name)?.1])),
        ("system.methodHelp", Some(name), None) => Ok(json!(known(&name)?.2)),
        (name, ..) if METHODS.iter().any(|(method, ..)| *method == name) => Err(wrong()),
        _ => Err(Problem::new(Kind::NoMethod, "no such method; system.listMethods names all of them")),
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
    shared.submit(account, items, key).await.map_err(Some)
}

/// Makes an integer the text of its digits.
fn digits(value: &mut Value) {
    if let Some(number) = value.as_u64() {
        *value = number.to_string().into();
    }
}

/// A message whose telephone numbers are text, also where they came as integers.
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
    fn values_go_there_and_back() {
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
        let fault = refuse(Problem::new(Kind::Invalid, "unknown field `\u{1}\u{FFFF}`"));
        assert!(fault.contains("`\u{FFFD}\u{FFFD}`"), "{fault}");
    }

    #[test]
    fn what_other_libraries_write_is_read() {
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
    fn integers_of_any_name_and_size_and_nil_are_read() {
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
    fn a_document_is_read_in_the_encoding_that_it_declares() {
        let text = |octets: &[u8]| super::read(octets).map(|call| call.parameters);
        let latin: Vec<u8> = document("ISO-8859-1", "Gr\u{fc}\u{df}e").chars().map(|c| c as u8).collect();
        assert_eq!(text(&latin).unwrap(), [json!("Grüße")]);
        for label in ["GB2312", "gbk"] {
            let (octets, ..) = encoding_rs::GBK.encode("你好");
            let parts = document(label, "@");
            let (front, back) = parts.split_once('@').unwrap();
            let whole = [front.as_bytes(), &octets, back.as_bytes()].concat();
            assert_eq!(text(&whole).unwrap(), [json!("你好")], "{label}");
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
            let parts = document(label, "@");
            let (front, back) = parts.split_once('@').unwrap();
            let whole = [front.as_bytes(), octets, back.as_bytes()].concat();
            let problem = super::read(&whole).unwrap_err();
            assert_eq!(problem.kind, Kind::Malformed, "{label}");
        }
    }

    #[test]
    fn deep_documents_are_refused_before_they_are_parsed() {
        let deep = format!(
            "<methodCall><methodName>m</methodName><params><param>{}",
            "<value><array><data>".repeat(40)
        );
        assert_eq!(read(deep.as_bytes()).unwrap_err().kind, Kind::Malformed);
        let hidden = format!("<a>{}", "<!-- </a></a></a> --><value>".repeat(60));
        assert!(plain(&hidden, true).is_none());
        let quoted = "<v a=\"/>\" ".to_owned() + &"><v b='/'".repeat(60);
        assert!(plain(&quoted, true).is_none());
        assert!(plain("<!DOCTYPE x [<!ENTITY a \"b\">]><methodCall/>", true).is_none());
        let plainly = "<?xml version=\"1.0\"?><a><![CDATA[<b><c>]]></a>";
        assert_eq!(plain(plainly, true).as_deref(), Some(plainly));
    }

    #[test]
    fn depth_cannot_be_hidden_from_the_scan() {
        let value = "<value><array><data>";
        let end = "</data></array></value>";
        // What one reader takes for the end of a comment, a tag or an instruction, and another does not.
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
            assert_eq!(read(deep.as_bytes()).unwrap_err().kind, Kind::Malformed, "{hidden}");
            assert!(read_answer(deep.as_bytes()).is_err(), "{hidden}");
        }
    }

    #[test]
    fn answers_of_business_systems() {
        let good = respond(Ok(json!(true)));
        assert_eq!(read_answer(good.as_bytes()), Ok(()));
        let bad = refuse(Problem::new(Kind::Invalid, "no"));
        assert_eq!(read_answer(bad.as_bytes()), Err("fault 3: invalid: no".to_owned()));
        assert!(read_answer(b"<html>").is_err() && read_answer(&[0xFF]).is_err());
    }
}
