//! The API's description of itself: what the routes say, and what is the same for all of them.

use crate::api;
use crate::rights;
use axum::http::Method;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

static WHOLE: LazyLock<Value> = LazyLock::new(make);

/// The OpenAPI 3.1 document.
#[must_use]
pub fn document() -> Value {
    WHOLE.clone()
}

/// The same, not copied.
pub(crate) fn whole() -> &'static Value {
    &WHOLE
}

/// A part of a description, as a map.
fn taken(description: &mut Value, pointer: &str) -> Map<String, Value> {
    match description.pointer_mut(pointer).map(Value::take) {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

fn make() -> Value {
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    for (operations, is_open) in [(api::open(), true), (api::guarded(), false)] {
        let Ok(mut described) = serde_json::to_value(operations.into_openapi()) else { continue };
        schemas.extend(taken(&mut described, "/components/schemas"));
        for (path, mut item) in taken(&mut described, "/paths") {
            for (method, operation) in item.as_object_mut().into_iter().flatten() {
                complete(method, &path, operation, is_open);
            }
            paths.insert(path, item);
        }
    }
    schemas.insert("Problem".to_owned(), problem());
    schemas.values_mut().chain(paths.values_mut()).for_each(plain);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Switchyard",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The admin's API of the appliance. Errors are problems as in RFC 9457.",
            "license": { "name": env!("CARGO_PKG_LICENSE") },
        },
        "security": [{ "token": [] }, { "session": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "A token of the appliance." },
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "switchyard-session",
                    "description": "A browser's session. What changes something wants the header Switchyard-CSRF beside it.",
                },
            },
            "responses": { "Problem": {
                "description": "What is wrong, and what to do (RFC 9457).",
                "content": {
                    "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } },
                },
            } },
        },
    })
}

/// What is the same for all operations.
fn complete(method: &str, path: &str, operation: &mut Value, is_open: bool) {
    let Some(operation) = operation.as_object_mut() else { return };
    let words = path.split('/').filter(|word| !word.is_empty() && *word != "v1");
    let words: Vec<&str> = words.map(|word| word.trim_matches(['{', '}'])).collect();
    // The names of handlers are not unique, methods and paths are.
    operation.insert("operationId".to_owned(), json!(format!("{method}-{}", words.join("-"))));
    operation.insert("tags".to_owned(), json!([words.first()]));
    if is_open {
        operation.insert("security".to_owned(), json!([]));
    } else {
        let needed = method.to_uppercase().parse::<Method>().ok();
        let needed = needed.and_then(|method| rights::needed(&method, path));
        operation.insert("x-right".to_owned(), json!(needed));
    }
    for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
        // One without a value is as one that is left out.
        if parameter["in"] == "query" && parameter["required"] != true {
            parameter["allowEmptyValue"] = json!(true);
        }
        // It is there or left out: there is no null outside of JSON.
        let schema = &mut parameter["schema"];
        if let Some(Value::Array(kinds)) = schema.get_mut("type") {
            kinds.retain(|kind| kind != "null");
            if let [kind] = &kinds[..] {
                schema["type"] = kind.clone();
            }
        }
        if let Some(Value::Array(kinds)) = schema.get_mut("oneOf") {
            kinds.retain(|kind| kind["type"] != "null");
        }
    }
    let problem = json!({ "$ref": "#/components/responses/Problem" });
    let responses = operation.entry("responses").or_insert_with(|| json!({}));
    if let Some(responses) = responses.as_object_mut() {
        // One that is named by its status has a meaning of its own, and is a problem all the same.
        for (status, response) in responses.iter_mut() {
            if status.starts_with(['4', '5']) && response.get("content").is_none() {
                response["content"] = json!({
                    "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } },
                });
            }
        }
        responses.insert("default".to_owned(), problem);
    }
}

/// Makes a description plainer than what it was made from: for those who make clients and tests of it.
fn plain(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.values_mut().for_each(plain);
            unwrap(map);
            merge(map);
            close(map);
            bound(map);
            if let Some(Value::String(text)) = map.get_mut("description") {
                // Links are for those who read the source.
                *text = text.replace("[`", "`").replace("`]", "`");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(plain),
        _ => {}
    }
}

/// A schema beside which there is only a description of it is that schema.
fn unwrap(map: &mut Map<String, Value>) {
    let says = |part: &Value| match part.as_object() {
        Some(part) if part.keys().all(|key| key == "type" || key == "description") => {
            part.get("description").cloned()
        }
        _ => None,
    };
    let Some(parts) = map.get("allOf").and_then(Value::as_array) else { return };
    let ([Value::Object(schema), words] | [words, Value::Object(schema)]) = parts.as_slice() else { return };
    let Some(words) = says(words) else { return };
    let schema = schema.clone();
    map.remove("allOf");
    map.extend(schema);
    map.insert("description".to_owned(), words);
}

/// Objects that are put together of objects are objects.
fn merge(map: &mut Map<String, Value>) {
    let is_plain =
        |part: &Value| part["type"] == "object" && part.get("additionalProperties") != Some(&json!(true));
    if !map.get("allOf").and_then(Value::as_array).is_some_and(|parts| parts.iter().all(is_plain)) {
        return;
    }
    let Some(Value::Array(parts)) = map.remove("allOf") else { return };
    map.insert("type".to_owned(), json!("object"));
    for part in parts {
        let Value::Object(part) = part else { continue };
        for (key, value) in part {
            match (map.get_mut(&key), value) {
                (None, value) => {
                    map.insert(key, value);
                }
                (Some(Value::Object(all)), Value::Object(more)) => all.extend(more),
                (Some(Value::Array(all)), Value::Array(more)) => all.extend(more),
                // The description of the whole stays.
                (Some(_), _) => {}
            }
        }
    }
}

/// Of those that are told apart by a word, each takes only its own keys.
fn close(map: &mut Map<String, Value>) {
    let Some(Value::Array(kinds)) = map.get_mut("oneOf") else { return };
    for kind in kinds {
        let is_tagged = kind.pointer("/properties/event/enum").is_some();
        if let (true, Some(kind)) = (is_tagged, kind.as_object_mut()) {
            kind.insert("additionalProperties".to_owned(), json!(false));
        }
    }
}

/// Numbers have an end. (What they are made from has a name for their formats that is in no register.)
fn bound(map: &mut Map<String, Value>) {
    let Some(Value::String(format)) = map.get_mut("format") else { return };
    *format = format.replace("u-int", "uint");
    let most = match format.as_str() {
        "uint8" => json!(u8::MAX),
        "uint16" => json!(u16::MAX),
        "uint32" => json!(u32::MAX),
        "uint64" => json!(u64::MAX),
        "int8" => json!(i8::MAX),
        "int32" => json!(i32::MAX),
        "int64" => json!(i64::MAX),
        _ => return,
    };
    map.entry("maximum").or_insert(most);
}

/// [`crate::Problem`], whose reason may be left out with all that belongs to it.
fn problem() -> Value {
    json!({
        "type": "object",
        "required": ["title", "status", "detail"],
        "properties": {
            "title": { "type": "string", "description": "In a word or two." },
            "status": { "type": "integer", "description": "The HTTP status." },
            "detail": { "type": "string", "description": "What exactly, and what would be right." },
            "reason": { "type": "string", "description": "The same in a word of a fixed set, for programs." },
            "state": {
                "enum": ["idle+up", "idle+down", "busy+up", "busy+down"],
                "description": "The state of a pool's number that stands in the way.",
            },
            "retry-after-ms": {
                "type": "integer",
                "description": "Milliseconds after which it may be otherwise; left out where time does not help.",
            },
            "problems": {
                "type": "array",
                "description": "Everything that is wrong with a document, each at its place.",
                "items": {
                    "type": "object",
                    "required": ["pointer", "what"],
                    "properties": {
                        "pointer": { "type": "string", "description": "Where: a JSON pointer (RFC 6901)." },
                        "what": { "type": "string", "description": "What is wrong there." },
                        "allowed": { "type": "string", "description": "What would be right." },
                    },
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::document;
    use crate::problem::{Kind, Misplaced, Problem, Reason};
    use model::NumberState;
    use serde_json::{Value, json};
    use std::collections::BTreeSet;

    /// All values under a key, however deep.
    fn all<'a>(value: &'a Value, key: &str, found: &mut Vec<&'a Value>) {
        match value {
            Value::Object(map) => {
                found.extend(map.get(key));
                map.values().for_each(|value| all(value, key, found));
            }
            Value::Array(items) => items.iter().for_each(|item| all(item, key, found)),
            _ => {}
        }
    }

    /// The names that the schemas of a source file have in the document.
    fn named(source: &str, names: &mut Vec<String>) {
        let mut lines = source.lines();
        while let Some(line) = lines.next() {
            if !line.starts_with("#[derive(") || !line.contains("ToSchema") {
                continue;
            }
            let (mut name, mut other) = (None, None);
            while let (None, Some(line)) = (&name, lines.next()) {
                let word = |rest: &str| rest.split(|c: char| !c.is_alphanumeric()).next().map(str::to_owned);
                let is_item = !line.starts_with(['#', '/', ' ']);
                other = other.or(line.strip_prefix("#[schema(as = ").and_then(word));
                let rest = line.split_once("struct ").or_else(|| line.split_once("enum "));
                name = rest.filter(|_| is_item).and_then(|(_, rest)| word(rest));
            }
            names.extend(other.or(name));
        }
    }

    fn named_below(folder: &std::path::Path, names: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                named_below(&path, names);
            } else {
                named(&std::fs::read_to_string(&path).unwrap(), names);
            }
        }
    }

    /// Of two of the same name, one would silently stand for both.
    #[test]
    fn no_two_schemas_have_the_same_name() {
        let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut names = Vec::new();
        named_below(&here.join("src"), &mut names);
        named_below(&here.join("../access/src"), &mut names);
        names.sort_unstable();
        assert!(names.len() > 80, "{names:?}");
        let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| &pair[0]).collect();
        assert!(twice.is_empty(), "{twice:?}: give one of them another name by #[schema(as = ...)]");
    }

    #[test]
    fn what_is_referred_to_is_there() {
        let document = document();
        let mut references = Vec::new();
        all(&document, "$ref", &mut references);
        assert!(references.len() > 20);
        for reference in references {
            let place = reference.as_str().and_then(|reference| reference.strip_prefix('#'));
            assert!(document.pointer(place.unwrap()).is_some(), "{reference}");
        }
    }

    #[test]
    fn every_operation_has_a_name_of_its_own_a_summary_and_all_parts_of_its_path() {
        let document = document();
        let mut names = BTreeSet::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                let name = operation["operationId"].as_str().unwrap();
                assert!(names.insert(name.to_owned()), "{name} twice");
                assert!(
                    operation["summary"].as_str().is_some_and(|text| !text.is_empty()),
                    "{method} {path}"
                );
                assert!(operation["responses"]["default"].is_object(), "{method} {path}");
                let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
                let mut named: Vec<_> = parameters.iter().filter(|one| one["in"] == "path").collect();
                named.retain(|one| path.contains(&format!("{{{}}}", one["name"].as_str().unwrap())));
                assert_eq!(named.len(), path.matches('{').count(), "{method} {path}");
                let described = |one: &Value| one["description"].is_string();
                assert!(parameters.iter().all(described), "{method} {path}: {parameters:#?}");
            }
        }
        assert!(names.len() > 40, "{names:?}");
    }

    #[test]
    fn a_problem_says_what_is_described_and_no_more() {
        let mut problem = Problem::new(Kind::Conflict, "no").because(Reason {
            reason: "wrong-state",
            state: Some(NumberState::BusyUp),
            retry_after_ms: Some(7),
        });
        let allowed = Some("b".to_owned());
        problem.problems.push(Misplaced { pointer: "/a".to_owned(), what: "a".to_owned(), allowed });
        let told = json!(problem);
        let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
        let described = &document()["components"]["schemas"]["Problem"]["properties"];
        assert_eq!(keys(&told), keys(described));
        assert_eq!(keys(&told["problems"][0]), keys(&described["problems"]["items"]["properties"]));
    }
}
