//! Numbers of subscribers in the answers of all operations: whole for callers who may read texts, masked for all others.

use super::{ApiFixture, operation, table};
use anyhow::{Context, Result, ensure};
use behaviour_tests::load::gsm::Subscribers;
use serde_json::json;
use std::collections::BTreeSet;

/// Operations whose answers contain unmasked numbers in this test, for a caller who may read texts.
const WITH_NUMBERS: [&str; 8] = [
    "GET /v1/history",
    "GET /v1/history/export",
    "GET /v1/hooks/{hook}/faults/{id}/case",
    "GET /v1/messages",
    "GET /v1/messages/{id}",
    "GET /v1/opt-outs",
    "GET /v1/subscribers/{subscriber}",
    "GET /v1/uncertain",
];

/// Properties of answers that are numbers of subscribers, if they are texts.
const NUMBER_PROPERTIES: [&str; 6] = ["source", "destination", "msisdn", "imsi", "sender", "subscriber"];

/// Schemas with such properties that are no numbers of an answer: requests, the place of a stack frame in its source, and sources of
/// plugins.
const EXEMPT: [&str; 6] =
    ["ExplainRequest", "OptOutChange", "OutdatedPlugin", "PluginOrigin", "PluginPullRequest", "StackFrame"];

const STOPPED: &str = "491700000099";

fn token(api: &ApiFixture, name: &str, bodies: bool) -> Result<String> {
    let request = json!({ "name": name, "role": "admin", "bodies": bodies }).to_string();
    let made = api.appliance.ask("POST", "/v1/tokens", request.as_bytes())?;
    Ok(format!("Bearer {}", made["token"].as_str().context("no token")?))
}

/// Whether a text has this number as a number of its own, and not as the value of a numeric JSON property.
fn shows(text: &str, number: &str) -> bool {
    text.match_indices(number).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + number.len()..].chars().next();
        !before.is_some_and(|c| c.is_ascii_digit() || c == ':') && !after.is_some_and(|c| c.is_ascii_digit())
    })
}

/// The numbers of the messages and of the subscriber that the fixture has made.
fn unmasked_numbers(api: &ApiFixture) -> Result<Vec<String>> {
    let mut numbers = vec![
        STOPPED.to_owned(),
        Subscribers::new(1, "1").msisdn(0),
        Subscribers::imsi_digits(0),
        "49171234".to_owned(),
    ];
    for page in ["/v1/history", "/v1/uncertain"] {
        let page = api.appliance.get(page)?;
        let one = &page["messages"][0]["destination"];
        let number = one.as_str().with_context(|| format!("no message in {page}"))?;
        ensure!(number.len() > 6 && !number.contains('*'), "{number}");
        numbers.push(number.to_owned());
    }
    Ok(numbers)
}

#[test]
fn numbers_are_masked_in_every_answer_unless_the_caller_may_read_texts() -> Result<()> {
    let api = ApiFixture::start()?;
    let stop = json!({ "sender": "10655", "subscriber": STOPPED, "stop": true }).to_string();
    let (status, reply) = api.appliance.request("POST", "/v1/opt-outs", stop.as_bytes())?;
    ensure!(status == 204, "{status} {reply}");
    let numbers = unmasked_numbers(&api)?;
    let (blind, reader) = (token(&api, "blind", false)?, token(&api, "reader", true)?);
    let mut found = BTreeSet::new();
    let mut rows = table::rows();
    // Before a row settles the only uncertain message.
    let comes_first = ["GET /v1/uncertain", "GET /v1/messages"];
    rows.sort_by_key(|row| !comes_first.contains(&format!("{} {}", row.method, row.path).as_str()));
    for row in rows.iter().filter(|row| !row.is_endless) {
        operation(&api.document, row)?;
        api.prepare(row)?;
        let mut request = api.request(row)?;
        // A caller without the permission is refused the text, and gets the rest without asking for it.
        request.at = request.at.replace("&body=1", "").replace("?body=true", "");
        let name = format!("{} {}", row.method, row.path);
        let is_session = request.headers.iter().any(|(name, _)| name == "authorization");
        if is_session {
            continue;
        }
        let masked = request.clone().with("authorization", &blind).send(&api.appliance)?;
        for number in &numbers {
            // A problem document may quote the request.
            let quotes =
                request.at.contains(number) || String::from_utf8_lossy(&request.body).contains(number);
            ensure!(quotes || !shows(&masked.1, number), "{name} shows {number}: {:.2000}", masked.1);
        }
        let whole = request.with("authorization", &reader).send(&api.appliance)?;
        if numbers.iter().any(|number| shows(&whole.1, number)) {
            found.insert(name);
        }
    }
    let missing: Vec<_> = WITH_NUMBERS.iter().filter(|name| !found.contains(**name)).collect();
    ensure!(
        missing.is_empty(),
        "these show no whole number to a reader of texts: {missing:?}; found: {found:?}"
    );
    Ok(())
}

#[test]
fn every_number_in_the_document_of_the_api_is_described_as_masked() -> Result<()> {
    let api = ApiFixture::start()?;
    let schemas = api.document["components"]["schemas"].as_object().context("no schemas")?;
    let mut seen = 0;
    for (name, schema) in schemas.iter().filter(|(name, _)| !EXEMPT.contains(&name.as_str())) {
        for property in NUMBER_PROPERTIES {
            let Some(described) = schema["properties"].get(property) else { continue };
            let is_text = described["type"] == "string" || described["type"] == json!(["string", "null"]);
            if !is_text {
                continue;
            }
            seen += 1;
            let text = described["description"].as_str().map(str::to_lowercase).unwrap_or_default();
            ensure!(text.contains("masked"), "{name}.{property}: {text:?}");
        }
    }
    ensure!(seen >= 12, "only {seen} properties are numbers: are they called otherwise now?");
    let described = api.document["info"]["description"].as_str().unwrap_or_default();
    ensure!(described.contains("masked"), "{described}");
    Ok(())
}
