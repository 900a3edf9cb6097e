//! Builds the OpenAPI document: the descriptions of the routes, completed with everything common to all operations.

#[cfg(test)]
mod reference;

use crate::backend;
use crate::permissions;
use api::openapi::{add_routes, problem_response};
use axum::http::Method;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

static DOCUMENT: LazyLock<Value> = LazyLock::new(build);

/// The OpenAPI 3.1 document.
#[must_use]
pub fn document() -> Value {
    DOCUMENT.clone()
}

/// The OpenAPI document, built once.
pub(crate) fn document_ref() -> &'static Value {
    &DOCUMENT
}

fn build() -> Value {
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    let (public_routes, routes) = (backend::public_routes(), backend::protected_routes());
    add_routes(&mut paths, &mut schemas, public_routes.into_openapi(), |_, _, operation| {
        operation.insert("security".to_owned(), json!([]));
        allow_empty_values(operation);
    });
    add_routes(&mut paths, &mut schemas, routes.into_openapi(), |method, path, operation| {
        let method = method.to_uppercase().parse::<Method>().ok();
        let permission = method.and_then(|method| permissions::required_permission(&method, path));
        operation.insert("x-permission".to_owned(), json!(permission));
        allow_empty_values(operation);
    });
    schemas.insert("Problem".to_owned(), problem_schema());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Switchyard",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The admin's API of the appliance. Errors are problem documents (RFC 9457). Numbers of subscribers (MSISDN, IMSI, sender and \
                            recipient of a message) are whole for callers who may read message texts (permission `read-bodies`), and masked for all others, \
                            in all answers.",
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
            "responses": { "Problem": problem_response() },
        },
    })
}

/// A query parameter with an empty value counts as omitted.
fn allow_empty_values(operation: &mut Map<String, Value>) {
    for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
        if parameter["in"] == "query" && parameter["required"] != true {
            parameter["allowEmptyValue"] = json!(true);
        }
    }
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

    /// If two schemas had the same name, the document would silently contain only one.
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
