//! Builds the OpenAPI document: the descriptions of the routes, completed with everything common to all operations.

#[cfg(test)]
mod reference;

use crate::backend;
use crate::permissions;
use axum::http::Method;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

static DOCUMENT: LazyLock<Value> = LazyLock::new(build);

/// The OpenAPI 3.1 document.
#[must_use]
pub fn document() -> Value {
    DOCUMENT.clone()
}

/// The OpenAPI document by reference.
pub(crate) fn document_ref() -> &'static Value {
    &DOCUMENT
}

/// Takes an object out of a JSON value.
fn take_object(description: &mut Value, pointer: &str) -> Map<String, Value> {
    match description.pointer_mut(pointer).map(Value::take) {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

fn build() -> Value {
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    for (operations, is_public) in [(backend::public_routes(), true), (backend::protected_routes(), false)] {
        let Ok(mut description) = serde_json::to_value(operations.into_openapi()) else { continue };
        schemas.extend(take_object(&mut description, "/components/schemas"));
        for (path, mut item) in take_object(&mut description, "/paths") {
            for (method, operation) in item.as_object_mut().into_iter().flatten() {
                add_common_parts(method, &path, operation, is_public);
            }
            paths.insert(path, item);
        }
    }
    schemas.insert("Problem".to_owned(), problem_schema());
    schemas.values_mut().chain(paths.values_mut()).for_each(simplify);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Switchyard",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The admin's API of the appliance. Errors are problem documents (RFC 9457).",
            "license": { "name": env!("CARGO_PKG_LICENSE") },
        },
        "security": [{ "token": [] }, { "session": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "The root token, or a named token." },
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "switchyard-session",
                    "description": "The session of a browser. Requests that change something must also send the header Switchyard-CSRF.",
                },
            },
            "responses": { "Problem": {
                "description": "A problem document (RFC 9457).",
                "content": {
                    "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } },
                },
            } },
        },
    })
}

/// Adds what is common to all operations: id, tags, permission, problem responses.
fn add_common_parts(method: &str, path: &str, operation: &mut Value, is_public: bool) {
    let Some(operation) = operation.as_object_mut() else { return };
    let segments = path.split('/').filter(|word| !word.is_empty() && *word != "v1");
    let segments: Vec<&str> = segments.map(|word| word.trim_matches(['{', '}'])).collect();
    // Handler names are not unique; methods with paths are.
    operation.insert("operationId".to_owned(), json!(format!("{method}-{}", segments.join("-"))));
    operation.insert("tags".to_owned(), json!([segments.first()]));
    if is_public {
        operation.insert("security".to_owned(), json!([]));
    } else {
        let permission = method.to_uppercase().parse::<Method>().ok();
        let permission = permission.and_then(|method| permissions::required_permission(&method, path));
        operation.insert("x-permission".to_owned(), json!(permission));
    }
    for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
        // A parameter with an empty value counts as omitted.
        if parameter["in"] == "query" && parameter["required"] != true {
            parameter["allowEmptyValue"] = json!(true);
        }
        // A parameter is present or omitted; null exists only in JSON.
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
        // An error response with its own description is a problem too.
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

/// Simplifies a schema for generators of clients and tests.
fn simplify(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.values_mut().for_each(simplify);
            unwrap_single_all_of(map);
            merge_all_of(map);
            close_variants(map);
            add_maximum(map);
            if let Some(Value::String(text)) = map.get_mut("description") {
                // Rust doc links mean nothing in the API description.
                *text = text.replace("[`", "`").replace("`]", "`");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        _ => {}
    }
}

/// Replaces an `allOf` of a schema and its description by the schema.
fn unwrap_single_all_of(map: &mut Map<String, Value>) {
    let description_only = |part: &Value| match part.as_object() {
        Some(part) if part.keys().all(|key| key == "type" || key == "description") => {
            part.get("description").cloned()
        }
        _ => None,
    };
    let Some(parts) = map.get("allOf").and_then(Value::as_array) else { return };
    let ([Value::Object(schema), text] | [text, Value::Object(schema)]) = parts.as_slice() else { return };
    let Some(text) = description_only(text) else { return };
    let schema = schema.clone();
    map.remove("allOf");
    map.extend(schema);
    map.insert("description".to_owned(), text);
}

/// Merges an `allOf` of objects into one object.
fn merge_all_of(map: &mut Map<String, Value>) {
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

/// Closes the variants of a tagged union: each accepts only its own keys.
fn close_variants(map: &mut Map<String, Value>) {
    let Some(Value::Array(kinds)) = map.get_mut("oneOf") else { return };
    for kind in kinds {
        let is_tagged = kind.pointer("/properties/event/enum").is_some();
        if let (true, Some(kind)) = (is_tagged, kind.as_object_mut()) {
            kind.insert("additionalProperties".to_owned(), json!(false));
        }
    }
}

/// Adds maximums to integers, and corrects the names of unsigned formats.
fn add_maximum(map: &mut Map<String, Value>) {
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

/// The schema of [`crate::Problem`]. The fields of its reason are optional.
fn problem_schema() -> Value {
    json!({
        "type": "object",
        "required": ["title", "status", "detail"],
        "properties": {
            "title": { "type": "string", "description": "Short summary." },
            "status": { "type": "integer", "description": "The HTTP status." },
            "detail": { "type": "string", "description": "The cause, and what would be valid." },
            "reason": { "type": "string", "description": "The reason for programs: one of a fixed set of codes." },
            "state": {
                "enum": ["idle+up", "idle+down", "busy+up", "busy+down"],
                "description": "The state of the pool's number that prevents the operation.",
            },
            "retry-after-ms": {
                "type": "integer",
                "description": "Milliseconds after which a retry may succeed; omitted if waiting does not help.",
            },
            "problems": {
                "type": "array",
                "description": "All errors of a document, each with its pointer.",
                "items": {
                    "type": "object",
                    "required": ["pointer", "what"],
                    "properties": {
                        "pointer": { "type": "string", "description": "JSON pointer (RFC 6901) of the place." },
                        "what": { "type": "string", "description": "The error." },
                        "allowed": { "type": "string", "description": "The allowed values." },
                    },
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::document;
    use crate::problem::{Problem, ProblemKind};
    use api::{FieldProblem, ProblemReason};
    use model::NumberState;
    use serde_json::{Value, json};
    use std::collections::BTreeSet;

    /// All values of a key, at any depth.
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

    /// The schema names that a source file defines.
    fn schema_names_in_file(source: &str, names: &mut Vec<String>) {
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

    fn schema_names_in_folder(folder: &std::path::Path, names: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                schema_names_in_folder(&path, names);
            } else {
                schema_names_in_file(&std::fs::read_to_string(&path).unwrap(), names);
            }
        }
    }

    /// With two schemas of one name, the document would silently contain only one.
    #[test]
    fn schema_names_are_unique() {
        let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut names = Vec::new();
        schema_names_in_folder(&here.join("src"), &mut names);
        schema_names_in_folder(&here.join("../api/src"), &mut names);
        names.sort_unstable();
        assert!(names.len() > 80, "{names:?}");
        let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| &pair[0]).collect();
        assert!(twice.is_empty(), "{twice:?}: give one of them another name by #[schema(as = ...)]");
    }

    #[test]
    fn every_reference_resolves() {
        let document = document();
        let mut references = Vec::new();
        all(&document, "$ref", &mut references);
        assert!(references.len() > 20);
        for reference in references {
            let pointer = reference.as_str().and_then(|reference| reference.strip_prefix('#'));
            assert!(document.pointer(pointer.unwrap()).is_some(), "{reference}");
        }
    }

    #[test]
    fn operations_have_unique_ids_summaries_and_path_parameters() {
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
                let mut path_parameters: Vec<_> =
                    parameters.iter().filter(|one| one["in"] == "path").collect();
                path_parameters
                    .retain(|one| path.contains(&format!("{{{}}}", one["name"].as_str().unwrap())));
                assert_eq!(path_parameters.len(), path.matches('{').count(), "{method} {path}");
                let description = |one: &Value| one["description"].is_string();
                assert!(parameters.iter().all(description), "{method} {path}: {parameters:#?}");
            }
        }
        assert!(names.len() > 40, "{names:?}");
    }

    #[test]
    fn problem_has_only_described_members() {
        let mut problem = Problem::new(ProblemKind::Conflict, "no").with_reason(ProblemReason {
            reason: "wrong-state".into(),
            state: Some(NumberState::BusyUp),
            retry_after_ms: Some(7),
        });
        let allowed = Some("b".to_owned());
        problem.problems.push(FieldProblem { pointer: "/a".to_owned(), what: "a".to_owned(), allowed });
        let json_problem = json!(problem);
        let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
        let description = &document()["components"]["schemas"]["Problem"]["properties"];
        assert_eq!(keys(&json_problem), keys(description));
        assert_eq!(keys(&json_problem["problems"][0]), keys(&description["problems"]["items"]["properties"]));
    }
}
