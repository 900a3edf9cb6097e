//! Builds the OpenAPI documents of the HTTP APIs from the descriptions of their routes.

use serde_json::{Map, Value, json};
use utoipa::openapi::OpenApi;

/// Adds routes to the `paths` and `schemas` of a document, and the common parts of all operations: id, tags, problem
/// responses. `describe` completes each operation; its arguments are the method, the path and the operation.
pub fn add_routes(
    paths: &mut Map<String, Value>,
    schemas: &mut Map<String, Value>,
    routes: OpenApi,
    describe: impl Fn(&str, &str, &mut Map<String, Value>),
) {
    let Ok(mut description) = serde_json::to_value(routes) else { return };
    simplify(&mut description);
    schemas.extend(take_object(&mut description, "/components/schemas"));
    for (path, mut item) in take_object(&mut description, "/paths") {
        for (method, operation) in item.as_object_mut().into_iter().flatten() {
            let Some(operation) = operation.as_object_mut() else { continue };
            add_common_parts(method, &path, operation);
            describe(method, &path, operation);
        }
        paths.insert(path, item);
    }
}

/// The response `Problem`, to which all operations refer. The document needs a schema of this name.
#[must_use]
pub fn problem_response() -> Value {
    json!({ "description": "A problem document (RFC 9457).", "content": problem_content() })
}

fn problem_content() -> Value {
    json!({ "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } })
}

/// Takes an object out of a JSON value.
fn take_object(description: &mut Value, pointer: &str) -> Map<String, Value> {
    match description.pointer_mut(pointer).map(Value::take) {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

fn add_common_parts(method: &str, path: &str, operation: &mut Map<String, Value>) {
    let segments = path.split('/').filter(|word| !word.is_empty() && *word != "v1");
    let segments: Vec<&str> = segments.map(|word| word.trim_matches(['{', '}'])).collect();
    // Handler names are not unique; methods with paths are.
    operation.insert("operationId".to_owned(), json!(format!("{method}-{}", segments.join("-"))));
    operation.insert("tags".to_owned(), json!([segments.first()]));
    for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
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
                response["content"] = problem_content();
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

/// Replaces an `allOf` of a schema and its description with the schema.
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
