//! XML-RPC: the same operations as JSON's, values turned into JSON's and back.

use crate::accounts::Account;
use crate::door::Shared;
use crate::problem::{Kind, Problem};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use dxr::{Fault, FaultResponse, MethodCall, MethodResponse, TryFromValue, TryToValue, Value as Xml};
use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::{Map, Value, json};
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

/// Whether a document is nested no deeper than [`DEPTH`] and has no declarations of its own. It is cut into tags by the
/// same reader that the parser stands on: what looks like a tag to the one must not look like something else to the other.
fn is_shallow(text: &str) -> bool {
    let mut reader = Reader::from_str(text);
    let mut depth = 0_usize;
    loop {
        match reader.read_event() {
            Ok(Event::Start(_)) => depth += 1,
            Ok(Event::End(_)) => depth = depth.saturating_sub(1),
            Ok(Event::DocType(_)) => return false,
            Ok(Event::Eof) => return true,
            // The parser, which reads on from the beginning, comes no further than this.
            Err(_) => return true,
            Ok(_) => {}
        }
        if depth > DEPTH {
            return false;
        }
    }
}

/// A value as JSON has it: octets as base64 text, times as text.
fn to_json(value: &Xml, depth: usize) -> Result<Value, String> {
    if depth > DEPTH {
        return Err("nested too deeply".to_owned());
    }
    if let Ok(text) = String::try_from_value(value) {
        return Ok(text.into());
    }
    if let Ok(number) = i32::try_from_value(value) {
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
            map.insert(name, to_json(&member, depth + 1)?);
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
    let text = std::str::from_utf8(body).map_err(|_| "its answer is not UTF-8".to_owned())?;
    if !is_shallow(text) {
        return Err("its answer is nested too deeply".to_owned());
    }
    if dxr::deserialize_xml::<MethodResponse>(text).is_ok() {
        return Ok(());
    }
    match dxr::deserialize_xml::<FaultResponse>(text) {
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
    let text = std::str::from_utf8(body).map_err(|_| malformed("the request is not UTF-8".to_owned()))?;
    if !is_shallow(text) {
        return Err(malformed(
            "the document is nested too deeply, or has a declaration of its own".to_owned(),
        ));
    }
    let call: MethodCall<'_> =
        dxr::deserialize_xml(text).map_err(|error| malformed(format!("this is no methodCall: {error}")))?;
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
    let mut given = given.into_iter();
    let (first, second, rest) = (given.next(), given.next(), given.next());
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
        Some(Value::String(key)) => Some(key),
        Some(_) => return Err(None),
    };
    shared.submit(account, items, key).await.map_err(Some)
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

    #[test]
    fn deep_documents_are_refused_before_they_are_parsed() {
        let deep = format!(
            "<methodCall><methodName>m</methodName><params><param>{}",
            "<value><array><data>".repeat(40)
        );
        assert_eq!(read(deep.as_bytes()).unwrap_err().kind, Kind::Malformed);
        let hidden = format!("<a>{}", "<!-- </a></a></a> --><value>".repeat(60));
        assert!(!is_shallow(&hidden));
        let quoted = "<v a=\"/>\" ".to_owned() + &"><v b='/'".repeat(60);
        assert!(!is_shallow(&quoted));
        assert!(!is_shallow("<!DOCTYPE x [<!ENTITY a \"b\">]><methodCall/>"));
        assert!(is_shallow("<?xml version=\"1.0\"?><a><![CDATA[<b><c>]]></a>"));
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
