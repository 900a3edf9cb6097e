//! Adding, changing and removing a peer or an account: a patch of the configuration.

use crate::config::applied;
use crate::output::{Failure, Output};
use crate::table::word;
use clap::Args;
use client::{Appliance, segment};
use serde_json::{Map, Value, json};
use std::io::Read;
use std::path::Path;

/// How a change is made.
#[derive(Debug, Args)]
pub(crate) struct How {
    /// Why, for the history of the configuration.
    #[arg(long)]
    why: Option<String>,
    /// It reverts by itself unless it is confirmed within this time: 5m, 1h.
    #[arg(long, value_name = "TIME")]
    confirm_within: Option<String>,
}

/// Settings as KEY=VALUE: a value is JSON where it reads as such, and a text otherwise; @FILE is what is in the file, @- what
/// is on standard input; a point goes into an inner table; a key without a value is taken away.
pub(crate) fn patch(settings: &[String]) -> Result<Map<String, Value>, Failure> {
    let mut patch = Map::new();
    for setting in settings {
        let (key, value) = match setting.split_once('=') {
            Some((key, value)) => (key, read(value)?),
            None => (setting.as_str(), Value::Null),
        };
        put(&mut patch, key, value).ok_or_else(|| {
            Failure::Usage(format!(
                "{setting:?}: expected KEY=VALUE, such as rate=50 or push.url=https://shop.example/sms"
            ))
        })?;
    }
    Ok(patch)
}

fn read(value: &str) -> Result<Value, Failure> {
    let Some(file) = value.strip_prefix('@') else {
        return Ok(serde_json::from_str(value).unwrap_or_else(|_| value.into()));
    };
    let mut text = String::new();
    let path = Path::new(file);
    let read = match file {
        "-" => std::io::stdin().lock().read_to_string(&mut text).map(drop),
        _ => std::fs::read_to_string(path).map(|read| text = read),
    };
    read.map_err(Failure::file(path))?;
    // A file mostly ends with a new line, and no secret does.
    Ok(text.trim_end_matches(['\n', '\r']).into())
}

fn put(patch: &mut Map<String, Value>, key: &str, value: Value) -> Option<()> {
    let (first, rest) = key.split_once('.').map_or((key, None), |(first, rest)| (first, Some(rest)));
    if first.is_empty() {
        return None;
    }
    let Some(rest) = rest else {
        patch.insert(key.to_owned(), value);
        return Some(());
    };
    let inner = patch.entry(first).or_insert_with(|| json!({}));
    put(inner.as_object_mut()?, rest, value)
}

/// Where of the configuration someone is, who is there already.
pub(crate) fn section(document: &Value, sections: &[&'static str], name: &str) -> Option<&'static str> {
    let has =
        |section: &str| document[section].as_array().into_iter().flatten().any(|party| party["name"] == name);
    sections.iter().copied().find(|section| has(section))
}

/// Patches one of a section, or takes it away (null), as long as nobody else changes the configuration meanwhile.
pub(crate) fn change(
    appliance: &Appliance,
    output: &Output,
    current: &Value,
    (section, name): (&str, &str),
    what: &Value,
    how: &How,
) -> Result<(), Failure> {
    let why = how
        .why
        .clone()
        .unwrap_or_else(|| format!("{} {name}", if what.is_null() { "removed" } else { "set" }));
    let mut path = format!("/v1/configuration?why={}", segment(&why));
    if let Some(within) = &how.confirm_within {
        path.push_str(&format!("&confirm-within={}", segment(within)));
    }
    let tag = format!("\"{}\"", word(&current["version"]));
    let headers = [("content-type", "application/merge-patch+json"), ("if-match", tag.as_str())];
    let patch = json!({ section: { name: what } });
    let answer = appliance.send("PATCH", &path, &headers, patch.to_string().as_bytes())?;
    applied(output, &answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stub::{Asked, NOW, Stub, run};

    #[test]
    fn settings_are_read_as_they_look() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, "50\n").unwrap();
        let settings =
            ["rate=50", "name=5 o'clock", "retry=[\"1m\"]", "sgip.node=1", "sgip.version=\"1.3\"", "tls"];
        let mut settings: Vec<String> = settings.map(str::to_owned).to_vec();
        settings.push(format!("password=@{}", file.display()));
        assert_eq!(
            Value::Object(patch(&settings).unwrap()),
            json!({
                "rate": 50, "name": "5 o'clock", "retry": ["1m"], "sgip": { "node": 1, "version": "1.3" },
                "tls": null, "password": "50",
            })
        );
        for wrong in ["=5", ".a=1", "a.=1", "password=@/no/such/file"] {
            assert!(patch(&[wrong.to_owned()]).is_err(), "{wrong}");
        }
        assert!(patch(&["a=1".to_owned(), "a.b=2".to_owned()]).is_err());
    }

    fn appliance() -> Stub {
        let document =
            json!({ "peer": [{ "name": "upstream" }], "gateway": [{ "name": "unicom" }], "account": [] });
        Stub::default().with("GET /v1/configuration", 200, &json!({ "version": 7, "document": document }))
    }

    fn sent(stub: &Stub) -> (String, Value, Vec<(String, String)>) {
        let Asked { what, body, headers } = stub.asked().pop().unwrap();
        (what, serde_json::from_str(&body).unwrap(), headers)
    }

    #[test]
    fn a_peer_is_changed_where_it_stands() {
        let changed = json!({
            "version": 8, "reverts-at": NOW, "restart": ["/peer/0/x"],
            "changes": [{ "pointer": "/gateway/unicom/window", "what": "changed", "effect": "its connections only" }],
        });
        let stub = appliance().with("PATCH /v1/configuration?why=more&confirm-within=5m", 200, &changed);
        let url = stub.start();
        let done =
            run(&url, &["peer", "set", "unicom", "window=32", "--why", "more", "--confirm-within", "5m"]);
        assert_eq!((done.code, done.error.as_str()), (0, "switchyard: a restart is needed for /peer/0/x\n"));
        insta::assert_snapshot!("changed", done.out);
        let (_, body, headers) = sent(&stub);
        assert_eq!(body, json!({ "gateway": { "unicom": { "window": 32 } } }));
        assert!(headers.contains(&("if-match".to_owned(), "\"7\"".to_owned())), "{headers:?}");
        assert!(headers.contains(&("content-type".to_owned(), "application/merge-patch+json".to_owned())));
    }

    #[test]
    fn what_is_new_is_where_it_is_said_and_what_goes_is_null() {
        let nothing = json!({ "version": 8, "changes": [] });
        let stub = appliance()
            .with("PATCH /v1/configuration?why=set%20new", 200, &nothing)
            .with("PATCH /v1/configuration?why=set%20demo", 200, &nothing)
            .with("PATCH /v1/configuration?why=removed%20upstream", 200, &nothing);
        let url = stub.start();
        let done = run(&url, &["peer", "set", "new", "address=a:1", "--protocol", "sgip"]);
        assert_eq!(
            (done.code, done.out.as_str()),
            (0, "nothing is different from version 8, which is in force\n")
        );
        assert_eq!(sent(&stub).1, json!({ "gateway": { "new": { "address": "a:1" } } }));
        assert_eq!(run(&url, &["account", "set", "demo", "rate=1"]).code, 0);
        assert_eq!(sent(&stub).1, json!({ "account": { "demo": { "rate": 1 } } }));
        assert_eq!(run(&url, &["peer", "remove", "upstream"]).code, 0);
        assert_eq!(sent(&stub).1, json!({ "peer": { "upstream": null } }));
        let before = stub.asked().len();
        let done = run(&url, &["account", "remove", "upstream"]);
        assert_eq!((done.code, stub.asked().len()), (1, before + 1), "{done:?}");
    }

    #[test]
    fn everything_that_is_wrong_is_told_with_its_place() {
        let wrong = json!({
            "title": "refused", "status": 422, "detail": "peer[0].rate: is \"x\"; and 1 more, all of them in `problems`",
            "problems": [
                { "pointer": "/peer/0/rate", "what": "is \"x\"", "allowed": "1 to 1000000" },
                { "pointer": "/peer/0/adress", "what": "is not known" },
            ],
        });
        let url = appliance().with("PATCH /v1/configuration?why=set%20upstream", 422, &wrong).start();
        let done = run(&url, &["peer", "set", "upstream", "rate=x", "adress=1"]);
        assert_eq!((done.code, done.out.as_str()), (1, ""));
        assert_eq!(
            done.error,
            "switchyard: refused: 2 things are wrong\n\
             switchyard: /peer/0/rate: is \"x\"; allowed: 1 to 1000000\n\
             switchyard: /peer/0/adress: is not known\n"
        );
    }
}
