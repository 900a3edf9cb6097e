//! Adds, changes and removes a peer or an account with a patch of the configuration.

use crate::config::{ConfigRequest, change_path, print_applied};
use crate::output::{Failure, Output};
use api::CurrentConfiguration;
use clap::Args;
use client::ApiClient;
use serde_json::{Map, Value, json};
use std::io::Read;
use std::path::Path;

/// The arguments of a configuration change.
#[derive(Debug, Args)]
pub(crate) struct ConfigChangeArgs {
    /// The reason, for the history of the configuration.
    #[arg(long)]
    why: Option<String>,
    /// Revert automatically unless the change is confirmed within this time: 5m, 1h.
    #[arg(long, value_name = "TIME")]
    confirm_within: Option<String>,
}

/// Parses settings of the form KEY=VALUE. A value is JSON if it parses as JSON, otherwise a text; @FILE reads it from a file, @-
/// from standard input. A dot in the key selects an inner table; a key without a value is removed.
pub(crate) fn patch(settings: &[String]) -> Result<Map<String, Value>, Failure> {
    let mut patch = Map::new();
    for setting in settings {
        let (key, value) = match setting.split_once('=') {
            Some((key, value)) => (key, read_value(value)?),
            None => (setting.as_str(), Value::Null),
        };
        insert_setting(&mut patch, key, value).ok_or_else(|| {
            Failure::Usage(format!(
                "{setting:?}: expected KEY=VALUE, such as rate=50 or push.url=https://shop.example/sms"
            ))
        })?;
    }
    Ok(patch)
}

fn read_value(value: &str) -> Result<Value, Failure> {
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
    // A file usually ends with a newline, a secret does not.
    Ok(text.trim_end_matches(['\n', '\r']).into())
}

fn insert_setting(patch: &mut Map<String, Value>, key: &str, value: Value) -> Option<()> {
    let (first, rest) = key.split_once('.').map_or((key, None), |(first, rest)| (first, Some(rest)));
    if first.is_empty() {
        return None;
    }
    let Some(rest) = rest else {
        patch.insert(key.to_owned(), value);
        return Some(());
    };
    let inner = patch.entry(first).or_insert_with(|| json!({}));
    insert_setting(inner.as_object_mut()?, rest, value)
}

/// The section that has an entry with this name.
pub(crate) fn existing_section(
    document: &Value,
    sections: &[&'static str],
    name: &str,
) -> Option<&'static str> {
    let has =
        |section: &str| document[section].as_array().into_iter().flatten().any(|entry| entry["name"] == name);
    sections.iter().copied().find(|section| has(section))
}

/// Patches an entry of a section, or removes it if `what` is null. The request fails if the configuration changed meanwhile.
pub(crate) fn change(
    api: &ApiClient,
    output: &Output,
    current: &CurrentConfiguration,
    (section, name): (&str, &str),
    what: &Value,
    change_args: &ConfigChangeArgs,
) -> Result<(), Failure> {
    let why = change_args
        .why
        .clone()
        .unwrap_or_else(|| format!("{} {name}", if what.is_null() { "removed" } else { "set" }));
    let path = change_path(&why, change_args.confirm_within.as_deref());
    let change = ConfigRequest {
        method: "PATCH",
        path: &path,
        media_type: "application/merge-patch+json",
        version: current.version,
    };
    print_applied(output, &change.send(api, &json!({ section: { name: what } }))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_api::{FakeApi, NOW, RecordedRequest, run};
    use crate::fixtures::configuration;
    use admin::{Problem, ProblemKind};
    use api::{ConfigChangeKindView, ConfigChangeView, ConfigurationChangeResult, FieldProblem};

    #[test]
    fn settings_are_parsed_as_json_or_text() {
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
        for invalid in ["=5", ".a=1", "a.=1", "password=@/no/such/file"] {
            assert!(patch(&[invalid.to_owned()]).is_err(), "{invalid}");
        }
        assert!(patch(&["a=1".to_owned(), "a.b=2".to_owned()]).is_err());
    }

    fn api() -> FakeApi {
        let document =
            json!({ "peer": [{ "name": "upstream" }], "gateway": [{ "name": "unicom" }], "account": [] });
        FakeApi::default().with("GET /v1/configuration", 200, &json!(configuration(document)))
    }

    fn sent(api: &FakeApi) -> (String, Value, Vec<(String, String)>) {
        let RecordedRequest { line, body, headers } = api.requests().pop().unwrap();
        (line, serde_json::from_str(&body).unwrap(), headers)
    }

    #[test]
    fn a_peer_is_patched_in_its_section() {
        let window = ConfigChangeView {
            pointer: "/gateway/unicom/window".to_owned(),
            what: ConfigChangeKindView::Changed,
            effect: "its connections only".to_owned(),
            before: Some(json!(16)),
            after: Some(json!(32)),
        };
        let changed = ConfigurationChangeResult {
            version: 8,
            changes: vec![window],
            restart: vec!["/peer/0/x".to_owned()],
            reverts_at: Some(NOW),
        };
        let api = api().with("PATCH /v1/configuration?why=more&confirm-within=5m", 200, &json!(changed));
        let url = api.start();
        let done =
            run(&url, &["peer", "set", "unicom", "window=32", "--why", "more", "--confirm-within", "5m"]);
        assert_eq!((done.code, done.error.as_str()), (0, "switchyard: a restart is needed for /peer/0/x\n"));
        insta::assert_snapshot!("changed", done.out);
        let (_, body, headers) = sent(&api);
        assert_eq!(body, json!({ "gateway": { "unicom": { "window": 32 } } }));
        assert!(headers.contains(&("if-match".to_owned(), "\"7\"".to_owned())), "{headers:?}");
        assert!(headers.contains(&("content-type".to_owned(), "application/merge-patch+json".to_owned())));
    }

    #[test]
    fn new_entries_go_to_the_default_section_and_removed_ones_are_null() {
        let nothing = json!(ConfigurationChangeResult {
            version: 8,
            changes: Vec::new(),
            restart: Vec::new(),
            reverts_at: None,
        });
        let api = api()
            .with("PATCH /v1/configuration?why=set%20new", 200, &nothing)
            .with("PATCH /v1/configuration?why=set%20demo", 200, &nothing)
            .with("PATCH /v1/configuration?why=removed%20upstream", 200, &nothing);
        let url = api.start();
        let done = run(&url, &["peer", "set", "new", "address=a:1", "--protocol", "sgip"]);
        assert_eq!((done.code, done.out.as_str()), (0, "no differences from version 8, which is active\n"));
        assert_eq!(sent(&api).1, json!({ "gateway": { "new": { "address": "a:1" } } }));
        assert_eq!(run(&url, &["account", "set", "demo", "rate=1"]).code, 0);
        assert_eq!(sent(&api).1, json!({ "account": { "demo": { "rate": 1 } } }));
        assert_eq!(run(&url, &["peer", "remove", "upstream"]).code, 0);
        assert_eq!(sent(&api).1, json!({ "peer": { "upstream": null } }));
        let before = api.requests().len();
        let done = run(&url, &["account", "remove", "upstream"]);
        assert_eq!((done.code, api.requests().len()), (1, before + 1), "{done:?}");
    }

    #[test]
    fn all_problems_are_printed_with_their_pointers() {
        let field = |pointer: &str, what: &str, allowed: Option<&str>| FieldProblem {
            pointer: pointer.to_owned(),
            what: what.to_owned(),
            allowed: allowed.map(str::to_owned),
        };
        let problems = vec![
            field("/peer/0/rate", "is \"x\"", Some("1 to 1000000")),
            field("/peer/0/adress", "is not known", None),
        ];
        let detail = "peer[0].rate: is \"x\"; and 1 more, all of them in `problems`";
        let invalid = Problem::new(ProblemKind::Unprocessable, detail).with_problems(problems);
        let url = api().refusing("PATCH /v1/configuration?why=set%20upstream", &invalid).start();
        let done = run(&url, &["peer", "set", "upstream", "rate=x", "adress=1"]);
        assert_eq!((done.code, done.out.as_str()), (1, ""));
        assert_eq!(
            done.error,
            "switchyard: refused: 2 problems\n\
             switchyard: /peer/0/rate: is \"x\"; allowed: 1 to 1000000\n\
             switchyard: /peer/0/adress: is not known\n"
        );
    }
}
