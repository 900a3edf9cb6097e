//! Checks JSON against the OpenAPI document of an API, usually the admin's: the answers of a daemon under test, and the prepared answers
//! (fixtures) of tests of its clients. A fixture that passes has the form of a real answer, because a behaviour test checks the
//! real answers of all operations against the same document.
//!
//! The check is strict: an object may have only members that the document describes. It supports the JSON Schema keywords and
//! formats that the document uses for answers, and fails on any other.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value};
use std::sync::LazyLock;

static DOCUMENT: LazyLock<Value> = LazyLock::new(admin::document);

/// The OpenAPI document of the admin's API, as `GET /v1/openapi.json` answers it.
#[must_use]
pub fn document() -> &'static Value {
    &DOCUMENT
}

/// A prepared answer of the admin API, for a test. `path` is the path of a request, for example `/v1/messages?limit=5`;
/// `body` is null for an answer without a body. Returns the body.
///
/// # Panics
/// The daemon could not give this answer; see [`check_answer`].
#[must_use]
#[track_caller]
#[allow(clippy::panic, reason = "a wrong fixture is a wrong test")]
pub fn fixture(method: &str, path: &str, status: u16, body: Value) -> Value {
    let content = Some(&body).filter(|body| !body.is_null());
    if let Err(error) = check_answer(method, path, status, content) {
        panic!("the fixture does not conform to the API document: {error:#}");
    }
    body
}

/// Checks an answer of the admin's API against the document: whether the operation exists and describes the query parameters and
/// the status, and whether the body conforms. `body`: `None` for an answer without a body.
///
/// # Errors
/// The first difference, with its position.
pub fn check_answer(method: &str, path: &str, status: u16, body: Option<&Value>) -> Result<()> {
    check_answer_of(document(), method, path, status, body)
}

/// As [`check_answer`], for the API in another document.
///
/// # Errors
/// The first difference, with its position.
pub fn check_answer_of(
    document: &Value,
    method: &str,
    path: &str,
    status: u16,
    body: Option<&Value>,
) -> Result<()> {
    check_described(document, method, path, status, body).with_context(|| format!("{method} {path} {status}"))
}

fn check_described(
    document: &Value,
    method: &str,
    path: &str,
    status: u16,
    body: Option<&Value>,
) -> Result<()> {
    let response = described_response(document, method, path, status)?;
    let Some(body) = body else {
        ensure!(response.get("content").is_none(), "the body is missing");
        return Ok(());
    };
    let mut contents = response["content"].as_object().into_iter().flatten();
    let content = contents.find(|(kind, _)| is_json(kind)).map(|(_, content)| content);
    check(document, &content.context("this answer has no JSON body")?["schema"], body, "")?;
    ensure!(status < 400 || !is_problem(body) || body["status"] == status, "/status: is not {status}");
    Ok(())
}

/// The media type of an answer, as the document describes it; `None` if the answer has no body. If there are several, the first.
///
/// # Errors
/// If the document does not describe the answer.
pub fn media_type(method: &str, path: &str, status: u16) -> Result<Option<String>> {
    let response = described_response(document(), method, path, status)
        .with_context(|| format!("{method} {path} {status}"))?;
    Ok(response["content"].as_object().and_then(|contents| contents.keys().next().cloned()))
}

fn is_json(media_type: &str) -> bool {
    media_type.ends_with("json") && !media_type.contains("ndjson")
}

/// Whether a body is a problem document; `GET /v1/ready` has another one for its status 503.
fn is_problem(body: &Value) -> bool {
    body.get("detail").is_some()
}

fn described_response<'a>(document: &'a Value, method: &str, path: &str, status: u16) -> Result<&'a Value> {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let Some(operation) = operation(document, method, path) else {
        // As the daemon answers an unknown path or method.
        ensure!([404, 405].contains(&status), "there is no such operation");
        return document.pointer("/components/responses/Problem").context("no response Problem");
    };
    check_query(operation, query)?;
    response(document, operation, status)
}

/// The operation for a path of a request. Of several templates that match, the one with the most literal segments.
fn operation<'a>(document: &'a Value, method: &str, path: &str) -> Option<&'a Value> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let matching = paths.filter_map(|(template, item)| {
        let operation = item.get(method.to_lowercase())?;
        Some((literal_segments(template, path)?, operation))
    });
    matching.max_by_key(|(literals, _)| *literals).map(|(_, operation)| operation)
}

/// The number of segments that a template and a path have in common; `None` if the template does not match the path.
fn literal_segments(template: &str, path: &str) -> Option<usize> {
    let (template, path): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
    let fits = |(expected, given): (&&str, &&str)| {
        if expected.starts_with('{') { !given.is_empty() } else { expected == given }
    };
    let matches = template.len() == path.len() && template.iter().zip(&path).all(fits);
    matches.then(|| template.iter().filter(|segment| !segment.starts_with('{')).count())
}

/// Checks that a query has only described parameters, and all required ones.
fn check_query(operation: &Value, query: &str) -> Result<()> {
    let described = operation["parameters"].as_array().into_iter().flatten();
    let described: Vec<_> = described.filter(|parameter| parameter["in"] == "query").collect();
    let given = query.split('&').filter(|pair| !pair.is_empty());
    let given: Vec<&str> = given.map(|pair| pair.split('=').next().unwrap_or_default()).collect();
    for name in &given {
        let is_known = described.iter().any(|parameter| parameter["name"] == *name);
        ensure!(is_known, "the query parameter {name} is not described");
    }
    for parameter in described.iter().filter(|parameter| parameter["required"] == true) {
        let name = parameter["name"].as_str().unwrap_or_default();
        ensure!(given.contains(&name), "the query parameter {name} is missing");
    }
    Ok(())
}

fn response<'a>(document: &'a Value, operation: &'a Value, status: u16) -> Result<&'a Value> {
    let responses = &operation["responses"];
    let response = match responses.get(status.to_string()) {
        Some(response) => response,
        None => {
            ensure!(status >= 400, "the status {status} is not described");
            &responses["default"]
        }
    };
    match response.get("$ref") {
        Some(reference) => referenced(document, reference),
        None => Ok(response),
    }
}

fn referenced<'a>(document: &'a Value, reference: &Value) -> Result<&'a Value> {
    let pointer = reference.as_str().and_then(|reference| reference.strip_prefix('#'));
    let named = pointer.and_then(|pointer| document.pointer(pointer));
    named.with_context(|| format!("{reference} does not exist"))
}

/// Keywords without influence on validity.
const ANNOTATIONS: &[&str] = &["description", "title", "default", "examples", "example", "deprecated"];

/// Checks a value against a schema of a document. `at` is its position, a JSON pointer.
///
/// # Errors
/// The first difference, with its position.
pub fn check(document: &Value, schema: &Value, value: &Value, at: &str) -> Result<()> {
    conform(document, schema, value, at)?;
    for name in value.as_object().into_iter().flat_map(Map::keys) {
        ensure!(describes(document, schema, value, name), "{at}/{name}: is not described");
    }
    Ok(())
}

/// As [`check`], but the object may have other members, which may belong to another part of the schema.
fn conform(document: &Value, schema: &Value, value: &Value, at: &str) -> Result<()> {
    let Some(schema) = schema.as_object() else {
        ensure!(schema == &Value::Bool(true), "{at}: {schema} allows nothing");
        return Ok(());
    };
    for (keyword, expected) in schema {
        let fits = match keyword.as_str() {
            "$ref" => {
                conform(document, referenced(document, expected)?, value, at)?;
                true
            }
            "type" => is_one_of(expected, |kind| is_of_type(kind, value)),
            "format" => has_format(expected, value),
            "enum" => is_one_of(expected, |one| one == value),
            "const" => expected == value,
            "minimum" => value.as_f64().zip(expected.as_f64()).is_none_or(|(value, least)| value >= least),
            "maximum" => value.as_f64().zip(expected.as_f64()).is_none_or(|(value, most)| value <= most),
            "minLength" => length(value).zip(expected.as_u64()).is_none_or(|(length, least)| length >= least),
            "maxLength" => length(value).zip(expected.as_u64()).is_none_or(|(length, most)| length <= most),
            // Only of parts that requests and answers share; they need no regex engine here.
            "pattern" | "minItems" | "maxItems" => true,
            "required" => {
                let mut names = expected.as_array().into_iter().flatten().filter_map(Value::as_str);
                match (value.as_object(), names.find(|name| value.get(name).is_none())) {
                    (Some(_), Some(missing)) => bail!("{at}/{missing}: is missing in {}", excerpt(value)),
                    _ => true,
                }
            }
            "properties" | "additionalProperties" => {
                check_members(document, schema, value, at)?;
                true
            }
            "propertyNames" => true,
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(document, expected, item, &format!("{at}/{index}"))?;
                }
                true
            }
            "allOf" => {
                for part in expected.as_array().into_iter().flatten() {
                    conform(document, part, value, at)?;
                }
                true
            }
            "oneOf" | "anyOf" => {
                let tried = expected.as_array().into_iter().flatten();
                let tried: Vec<_> = tried.map(|part| conform(document, part, value, at)).collect();
                let wrong: Vec<_> = tried.iter().filter_map(|one| one.as_ref().err()).collect();
                ensure!(wrong.len() < tried.len(), "{at}: none fits: {wrong:#?}");
                true
            }
            keyword => ANNOTATIONS.contains(&keyword) || keyword.starts_with("x-"),
        };
        ensure!(fits, "{at}: {} against {keyword}: {expected}", excerpt(value));
    }
    Ok(())
}

/// Checks the members that a schema itself describes, without the members of its parts.
fn check_members(document: &Value, schema: &Map<String, Value>, value: &Value, at: &str) -> Result<()> {
    let known = schema.get("properties");
    for (name, value) in value.as_object().into_iter().flatten() {
        let at = format!("{at}/{name}");
        match known.and_then(|known| known.get(name)).or_else(|| schema.get("additionalProperties")) {
            Some(Value::Bool(false)) => bail!("{at}: is not described"),
            Some(schema) => check(document, schema, value, &at)?,
            None => {}
        }
    }
    Ok(())
}

/// Whether a schema, or one of its parts that fit the object, describes a member. A schema that describes no member at all allows
/// any.
fn describes(document: &Value, schema: &Value, object: &Value, name: &str) -> bool {
    const PARTS: [&str; 6] = ["$ref", "allOf", "oneOf", "anyOf", "properties", "additionalProperties"];
    let Some(schema) = schema.as_object() else { return true };
    if !PARTS.iter().any(|keyword| schema.contains_key(*keyword)) {
        return true;
    }
    let parts = |keyword: &str| schema.get(keyword).and_then(Value::as_array).into_iter().flatten();
    let described_by = |part: &Value| describes(document, part, object, name);
    schema.get("properties").is_some_and(|known| known.get(name).is_some())
        || schema.get("additionalProperties").is_some_and(|more| more != &Value::Bool(false))
        || schema.get("$ref").is_some_and(|reference| referenced(document, reference).is_ok_and(described_by))
        || parts("allOf").any(described_by)
        || parts("oneOf")
            .chain(parts("anyOf"))
            .any(|part| described_by(part) && conform(document, part, object, "").is_ok())
}

/// The beginning of a value, for messages.
fn excerpt(value: &Value) -> String {
    value.to_string().chars().take(500).collect()
}

fn is_one_of(expected: &Value, fits: impl Fn(&Value) -> bool) -> bool {
    expected.as_array().map_or_else(|| fits(expected), |all| all.iter().any(&fits))
}

fn length(value: &Value) -> Option<u64> {
    value.as_str().map(|text| text.chars().count() as u64)
}

fn is_of_type(kind: &Value, value: &Value) -> bool {
    match kind.as_str() {
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("string") => value.is_string(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        Some("number") => value.is_number(),
        Some("integer") => value.is_u64() || value.is_i64(),
        _ => false,
    }
}

/// Whether a value has a format. Values of other types have every format: the keyword `type` excludes them.
fn has_format(format: &Value, value: &Value) -> bool {
    let fits = |least: i128, most: i128| {
        let number = value.as_u64().map(i128::from).or_else(|| value.as_i64().map(i128::from));
        number.is_none_or(|number| (least..=most).contains(&number))
    };
    match format.as_str() {
        Some("uint8") => fits(0, u8::MAX.into()),
        Some("uint16") => fits(0, u16::MAX.into()),
        Some("uint32") => fits(0, u32::MAX.into()),
        Some("uint64") => fits(0, u64::MAX.into()),
        Some("int8") => fits(i8::MIN.into(), i8::MAX.into()),
        Some("int32") => fits(i32::MIN.into(), i32::MAX.into()),
        Some("int64") => fits(i64::MIN.into(), i64::MAX.into()),
        Some("float" | "double") => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeSet;

    #[test]
    fn nonconforming_values_are_detected() {
        let document: Value = serde_json::from_str(
            r##"{ "components": { "schemas": {
                "One": {
                    "type": "object", "required": ["a"], "additionalProperties": false,
                    "properties": {
                        "a": { "type": "integer", "minimum": 1, "maximum": 3 },
                        "b": { "type": ["string", "null"], "maxLength": 2 },
                        "c": { "type": "array", "items": { "oneOf": [{ "enum": ["x"] }, { "type": "boolean" }] } },
                        "e": { "type": "integer", "format": "uint8" }
                    }
                },
                "Two": { "type": "object", "required": ["a"], "properties": { "a": { "type": "integer" } } },
                "Three": {
                    "allOf": [
                        { "$ref": "#/components/schemas/Two" },
                        { "oneOf": [
                            { "type": "object", "required": ["b"], "properties": { "b": { "enum": ["x"] }, "c": {} } },
                            { "type": "object", "required": ["b"], "properties": { "b": { "enum": ["y"] } } }
                        ] }
                    ]
                },
                "Map": { "type": "object", "additionalProperties": { "type": "integer" } },
                "Any": { "type": "object" }
            } } }"##,
        )
        .unwrap();
        let checked = |name: &str, value: &str| {
            let schema = json!({ "$ref": format!("#/components/schemas/{name}") });
            check(&document, &schema, &serde_json::from_str(value).unwrap(), "")
        };
        for (name, good) in [
            ("One", r#"{"a":1}"#),
            ("One", r#"{"a":3,"b":null,"c":[],"e":255}"#),
            ("One", r#"{"a":2,"b":"xy","c":["x",true]}"#),
            ("Two", r#"{"a":1}"#),
            ("Three", r#"{"a":1,"b":"x","c":[1]}"#),
            ("Three", r#"{"a":1,"b":"y"}"#),
            ("Map", r#"{"a":1,"b":2}"#),
            ("Any", r#"{"a":1,"b":"x"}"#),
        ] {
            checked(name, good).unwrap();
        }
        for (name, wrong) in [
            ("One", "{}"),
            ("One", "[]"),
            ("One", r#"{"a":0}"#),
            ("One", r#"{"a":4}"#),
            ("One", r#"{"a":1.5}"#),
            ("One", r#"{"a":1,"b":1}"#),
            ("One", r#"{"a":1,"b":"xyz"}"#),
            ("One", r#"{"a":1,"c":["y"]}"#),
            ("One", r#"{"a":1,"d":1}"#),
            ("One", r#"{"a":1,"e":256}"#),
            // Closed by the check, not by the schema.
            ("Two", r#"{"a":1,"b":1}"#),
            ("Three", r#"{"a":1,"b":"z"}"#),
            ("Three", r#"{"a":1,"b":"x","d":1}"#),
            // Described by the other alternative only.
            ("Three", r#"{"a":1,"b":"y","c":[1]}"#),
            ("Map", r#"{"a":"x"}"#),
        ] {
            assert!(checked(name, wrong).is_err(), "{name} {wrong}");
        }
        assert!(check(&document, &json!({ "if": {} }), &Value::Null, "").is_err(), "an unknown keyword");
        assert!(
            check(&document, &json!({ "format": "ipv7" }), &json!("x"), "").is_err(),
            "an unknown format"
        );
    }

    /// Collects the positions at which a schema allows any value, or any object.
    fn collect_free(schema: &Value, at: &str, seen: &mut BTreeSet<String>, found: &mut BTreeSet<String>) {
        const PARTS: [&str; 7] =
            ["properties", "additionalProperties", "oneOf", "anyOf", "allOf", "enum", "const"];
        if let Some(reference) = schema.get("$ref") {
            let name = reference.as_str().unwrap().rsplit('/').next().unwrap().to_owned();
            if seen.insert(name.clone()) {
                collect_free(referenced(document(), reference).unwrap(), &name, seen, found);
            }
            return;
        }
        let is_object = schema.get("type").is_none_or(|kind| is_one_of(kind, |kind| kind == "object"));
        if is_object && PARTS.iter().all(|part| schema.get(part).is_none()) {
            found.insert(at.to_owned());
        }
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            collect_free(member, &format!("{at}/{name}"), seen, found);
        }
        let parts = ["allOf", "oneOf", "anyOf"].map(|part| schema[part].as_array());
        let parts = parts.into_iter().flatten().flatten();
        for part in parts.chain(["items", "additionalProperties"].iter().filter_map(|part| schema.get(part)))
        {
            if part.is_object() {
                collect_free(part, at, seen, found);
            }
        }
    }

    /// A fixture of such a value is not checked: extend the list only for values without a fixed form.
    #[test]
    fn only_documents_and_archived_traces_have_no_fixed_form() {
        let (mut seen, mut found) = (BTreeSet::new(), BTreeSet::new());
        for (path, item) in document()["paths"].as_object().into_iter().flatten() {
            for (method, operation) in item.as_object().into_iter().flatten() {
                for status in operation["responses"].as_object().unwrap().keys() {
                    // `default` is the problem document.
                    let response = response(document(), operation, status.parse().unwrap_or(599)).unwrap();
                    for (_, content) in response["content"].as_object().into_iter().flatten() {
                        let at = format!("{} {path}", method.to_uppercase());
                        collect_free(&content["schema"], &at, &mut seen, &mut found);
                    }
                }
            }
        }
        let expected = [
            "ConfigurationChange/after",
            "ConfigurationChange/before",
            "ConfigurationDifference/after",
            "ConfigurationDifference/before",
            "ConfigurationVersion/document",
            "CurrentConfiguration/document",
            "FinishedMessage/trace",
            "GET /v1/configuration/schema",
            "GET /v1/openapi.json",
            "GET /v1/plugins/{name}/{version}/policy-schema",
            "GET /v1/plugins/{name}/{version}/sbom",
        ];
        assert_eq!(found, BTreeSet::from(expected.map(str::to_owned)));
        assert!(seen.len() > 50, "{seen:?}");
    }

    fn settled() -> Value {
        json!({ "settled": 2, "skipped": 1 })
    }

    fn error_of(method: &str, path: &str, status: u16, body: &Value) -> String {
        format!("{:#}", check_answer(method, path, status, Some(body)).unwrap_err())
    }

    #[test]
    fn a_misspelt_or_missing_member_of_a_fixture_is_refused() {
        let path = "/v1/uncertain/settle";
        assert_eq!(fixture("POST", path, 200, settled()), settled());
        let mut misspelt = settled();
        misspelt["skiped"] = misspelt.as_object_mut().unwrap().remove("skipped").unwrap();
        let error = error_of("POST", path, 200, &misspelt);
        assert!(
            error.contains("POST /v1/uncertain/settle 200") && error.contains("/skipped: is missing"),
            "{error}"
        );
        let mut more = settled();
        more["skiped"] = json!(1);
        assert!(error_of("POST", path, 200, &more).contains("/skiped: is not described"));
        let mut missing = settled();
        missing.as_object_mut().unwrap().remove("settled");
        assert!(error_of("POST", path, 200, &missing).contains("/settled: is missing"));
        let mut other_type = settled();
        other_type["settled"] = json!("2");
        assert!(error_of("POST", path, 200, &other_type).contains("/settled: \"2\" against"));
    }

    #[test]
    #[should_panic(expected = "/skipped: is missing")]
    fn a_wrong_fixture_stops_its_test() {
        let _ = fixture("POST", "/v1/uncertain/settle", 200, json!({ "settled": 2 }));
    }

    #[test]
    fn a_wrong_name_in_a_nested_object_or_of_an_enum_is_refused() {
        let subject = |kind: &str| json!({ "kind": kind, "name": "upstream" });
        let finding = |subject: &Value| {
            json!([{
                "severity": "error", "code": "peer-down", "subject": subject, "since": null, "text": "x", "remedy": null,
            }])
        };
        let path = "/v1/attention";
        check_answer("GET", path, 200, Some(&finding(&subject("peer")))).unwrap();
        assert!(error_of("GET", path, 200, &finding(&subject("pear"))).contains("/0/subject/kind"));
        let mut more = subject("peer");
        more["of"] = json!(1);
        assert!(error_of("GET", path, 200, &finding(&more)).contains("/0/subject/of: is not described"));
    }

    #[test]
    fn a_wrong_request_or_status_of_a_fixture_is_refused() {
        let wrong = [
            ("GET", "/v1/statuses", 200),
            ("PATCH", "/v1/status", 200),
            ("POST", "/v1/uncertain/settle", 201),
            ("POST", "/v1/uncertain/settle?peer=a", 200),
        ];
        for (method, path, status) in wrong {
            assert!(
                check_answer(method, path, status, Some(&settled())).is_err(),
                "{method} {path} {status}"
            );
        }
        // A required query parameter.
        assert!(media_type("GET", "/v1/configuration/diff?from=1&to=2", 200).is_ok());
        assert!(media_type("GET", "/v1/configuration/diff?from=1", 200).is_err());
        // Without a body, and with one that is not JSON.
        check_answer("DELETE", "/v1/users/ann", 204, None).unwrap();
        assert!(check_answer("DELETE", "/v1/users/ann", 204, Some(&json!({}))).is_err());
        assert!(check_answer("GET", "/v1/status", 200, None).is_err());
        assert_eq!(media_type("GET", "/v1/backup", 200).unwrap().as_deref(), Some("application/x-tar"));
        // Not the operation `/v1/queue-actions/{id}`.
        assert!(error_of("POST", "/v1/queue-actions/preview", 200, &json!({})).contains("is missing"));
    }

    #[test]
    fn a_problem_document_has_the_status_of_its_answer() {
        let problem = json!({ "title": "not found", "status": 404, "detail": "there is no user carl" });
        for path in ["/v1/users/carl", "/v1/no/such/path"] {
            check_answer("GET", path, 404, Some(&problem)).unwrap();
        }
        assert!(error_of("GET", "/v1/users/carl", 409, &problem).contains("/status: is not 409"));
        let without_status = json!({ "title": "not found", "detail": "there is no user carl" });
        assert!(error_of("GET", "/v1/users/carl", 404, &without_status).contains("/status: is missing"));
    }
}
