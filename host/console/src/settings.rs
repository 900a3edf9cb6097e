//! Forms for the settings of peers, gateways and accounts: fields, values and problems.

use crate::api_caller::ApiError;
use crate::form::Form;
use api::FieldProblem;
use maud::{Markup, html};
use serde_json::{Map, Value};

/// The value that the API returns instead of a secret, and that keeps it when sent back.
pub(crate) const UNCHANGED: &str = "(unchanged)";
/// The field with all settings that have no field of their own, as JSON.
pub(crate) const OTHER_SETTINGS: &str = "rest";

/// The type of a field.
#[derive(Debug, PartialEq)]
pub(crate) enum FieldKind {
    Text,
    Number,
    /// A checkbox; a missing setting counts as this.
    Flag(bool),
    /// A secret: never shown; if the field is empty, it is unchanged.
    Secret,
    /// A list, separated by commas.
    List,
    Choice(Vec<String>),
}

/// A field of the form.
#[derive(Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) key: String,
    pub(crate) label: String,
    pub(crate) hint: String,
    pub(crate) kind: FieldKind,
    pub(crate) required: bool,
}

/// The fields of the items of a list, by the schema of the configuration: settings with a label.
pub(crate) fn fields_of(schema: &Value, list: &str) -> Vec<Field> {
    let item = &schema["properties"][list]["items"];
    let settings = item["properties"].as_object().into_iter().flatten();
    let mut settings: Vec<_> = settings.filter(|(_, one)| one["title"].is_string()).collect();
    settings.sort_by_key(|(_, one)| one["propertyOrder"].as_u64());
    let required =
        |key: &str| item["required"].as_array().is_some_and(|all| all.iter().any(|one| one == key));
    let field = |(key, one): (&String, &Value)| Field {
        // The form takes the password, and the console stores its hash.
        key: if key == PASSWORD_HASH { "password".to_owned() } else { key.clone() },
        label: one["title"].as_str().unwrap_or_default().to_owned(),
        hint: hint(one),
        kind: kind(one),
        required: required(key),
    };
    settings.into_iter().map(field).collect()
}

fn kind(setting: &Value) -> FieldKind {
    if setting["writeOnly"] == true {
        return FieldKind::Secret;
    }
    let words = setting["oneOf"].as_array().into_iter().flatten();
    let words: Vec<String> = words.filter_map(|one| one["const"].as_str().map(str::to_owned)).collect();
    match setting["type"].as_str() {
        _ if !words.is_empty() => FieldKind::Choice(words),
        Some("boolean") => FieldKind::Flag(setting["default"] == true),
        Some("integer" | "number") => FieldKind::Number,
        Some("array") => FieldKind::List,
        _ => FieldKind::Text,
    }
}

/// The description of a setting, with its default.
fn hint(setting: &Value) -> String {
    let mut hint = setting["description"].as_str().unwrap_or_default().to_owned();
    if setting["writeOnly"] == true {
        hint.push_str(" Write-only; unchanged if empty.");
    } else if !setting["default"].is_null() && !hint.contains("Default: ") {
        hint = format!("{hint} Default: {}.", display_text(&setting["default"]));
    }
    hint
}

/// The configuration key of an account's password.
pub(crate) const PASSWORD_HASH: &str = "password-hash";

fn display_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) if text == UNCHANGED => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(all) => all
            .iter()
            .map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned))
            .collect::<Vec<_>>()
            .join(", "),
        other => other.to_string(),
    }
}

/// The settings without a field of their own.
fn other_settings(fields: &[Field], one: &Value) -> Map<String, Value> {
    let known =
        |key: &str| key == "name" || key == PASSWORD_HASH || fields.iter().any(|field| &*field.key == key);
    let all = one.as_object().into_iter().flatten();
    all.filter(|(key, _)| !known(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// The form values of an entry.
pub(crate) fn form_values(fields: &[Field], one: &Value) -> Form {
    let mut all: Vec<(String, String)> = Vec::new();
    for field in fields {
        let value = &one[&field.key];
        // An unticked checkbox is not sent.
        let text = match field.kind {
            FieldKind::Flag(default) if !value.as_bool().unwrap_or(default) => continue,
            FieldKind::Flag(_) => "true".to_owned(),
            _ if value.is_null() => continue,
            _ => display_text(value),
        };
        all.push((field.key.clone(), text));
    }
    let rest = other_settings(fields, one);
    let rest =
        if rest.is_empty() { String::new() } else { serde_json::to_string_pretty(&rest).unwrap_or_default() };
    all.push((OTHER_SETTINGS.to_owned(), rest));
    Form::of(all)
}

fn parse_value(kind: &FieldKind, text: &str) -> Value {
    match kind {
        FieldKind::Number => match (text.parse::<u64>(), text.parse::<f64>()) {
            (Ok(number), _) => number.into(),
            (_, Ok(number)) if number.is_finite() => number.into(),
            // The API reports the problem.
            _ => text.into(),
        },
        FieldKind::List => {
            text.split([',', '\n']).map(str::trim).filter(|one| !one.is_empty()).map(Value::from).collect()
        }
        _ => text.into(),
    }
}

/// The entry that a form describes. Secrets that are not changed keep their value.
pub(crate) fn settings_from_form(fields: &[Field], form: &Form, before: &Value) -> Result<Value, ApiError> {
    let rest = form.multiline(OTHER_SETTINGS);
    let mut one: Map<String, Value> = match rest.trim() {
        "" => Map::new(),
        rest => serde_json::from_str(rest).map_err(|error| ApiError {
            problems: vec![FieldProblem {
                pointer: format!("/{OTHER_SETTINGS}"),
                what: error.to_string(),
                allowed: None,
            }],
            ..ApiError::bad_request("The other settings must be a JSON object, or empty.")
        })?,
    };
    if let Some(name) = before.get("name") {
        one.insert("name".to_owned(), name.clone());
    }
    for field in fields {
        let (key, text) = (&*field.key, form.text(&field.key));
        let value = match &field.kind {
            // A flag that was never set stays unset.
            FieldKind::Flag(default) if form.has(key) == *default && before.get(key).is_none() => continue,
            FieldKind::Flag(_) => Value::Bool(form.has(key)),
            FieldKind::Secret => match (form.raw(key), before.get(key)) {
                ("", None) => continue,
                ("", Some(known)) => known.clone(),
                (secret, _) => secret.into(),
            },
            _ if text.is_empty() => continue,
            kind => parse_value(kind, text),
        };
        one.insert(field.key.clone(), value);
    }
    Ok(Value::Object(one))
}

/// The problems of a field.
fn problems_of<'a>(error: Option<&'a ApiError>, key: &str) -> Vec<&'a FieldProblem> {
    let problems = error.map(|error| error.problems.as_slice()).unwrap_or_default();
    problems.iter().filter(|problem| setting_of(&problem.pointer) == Some(key)).collect()
}

/// The setting of a pointer: `address` for `/peer/3/address` and for `/peer/north/address/0`.
fn setting_of(pointer: &str) -> Option<&str> {
    let mut parts = pointer.split('/').skip(1);
    let first = parts.next()?;
    if first == OTHER_SETTINGS {
        return Some(OTHER_SETTINGS);
    }
    parts.nth(1)
}

/// The problems that belong to no field.
pub(crate) fn other_problems(fields: &[Field], error: &ApiError) -> ApiError {
    let at_a_field = |problem: &FieldProblem| {
        setting_of(&problem.pointer).is_some_and(|key| {
            key == OTHER_SETTINGS || key == "name" || fields.iter().any(|field| &*field.key == key)
        })
    };
    let problems = error.problems.iter().filter(|problem| !at_a_field(problem)).cloned().collect();
    ApiError { problems, ..error.clone() }
}

/// A label, an input and its problems.
pub(crate) fn labelled_input(
    key: &str,
    label: &str,
    hint: &str,
    error: Option<&ApiError>,
    input: impl Fn(&str, bool) -> Markup,
) -> Markup {
    let problems = problems_of(error, key);
    let describes = format!("{key}-hint");
    html! {
        p.invalid[!problems.is_empty()] {
            label for=(format!("field-{key}")) { (label) }
            (input(&describes, !problems.is_empty()))
            small id=(describes) {
                @for problem in &problems {
                    strong.problem { (problem.what) @if let Some(allowed) = &problem.allowed { " (allowed: " (allowed) ")" } } " "
                }
                (hint)
            }
        }
    }
}

/// The fields with their values and problems.
pub(crate) fn fields(fields: &[Field], form: &Form, is_new: bool, error: Option<&ApiError>) -> Markup {
    html! {
        @for field in fields {
            (labelled_input(&field.key, &field.label, &field.hint, error, |describes, is_wrong| {
                let id = format!("field-{}", field.key);
                let invalid = is_wrong.then_some("true");
                let text = form.text(&field.key);
                html! {
                    @match &field.kind {
                        FieldKind::Flag(_) => { input id=(id) name=(field.key) type="checkbox" value="true" checked[form.has(&field.key)] aria-describedby=(describes) aria-invalid=[invalid]; }
                        FieldKind::Secret => { input id=(id) name=(field.key) type="password" autocomplete="new-password" aria-describedby=(describes) aria-invalid=[invalid] required[field.required && is_new]; }
                        FieldKind::Choice(words) => {
                            select id=(id) name=(field.key) aria-describedby=(describes) aria-invalid=[invalid] {
                                option value="" { "default" }
                                @for word in words { option value=(word) selected[text == word.as_str()] { (word) } }
                            }
                        }
                        FieldKind::Number => { input id=(id) name=(field.key) value=(text) inputmode="decimal" autocomplete="off" aria-describedby=(describes) aria-invalid=[invalid]; }
                        _ => { input id=(id) name=(field.key) value=(text) autocomplete="off" spellcheck="false" aria-describedby=(describes) aria-invalid=[invalid] required[field.required]; }
                    }
                }
            }))
        }
        details.wide open[!problems_of(error, OTHER_SETTINGS).is_empty()] {
            summary { "Other settings" }
            (labelled_input(OTHER_SETTINGS, "Other settings, as JSON", "With the keys of the configuration; empty if there are none.", error, |describes, _| html! {
                textarea #field-rest name=(OTHER_SETTINGS) rows="6" spellcheck="false" aria-describedby=(describes) { (form.multiline(OTHER_SETTINGS)) }
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::StatusCode;
    use serde_json::json;

    fn peer() -> Vec<Field> {
        let setting = |order: u64, kind: &str| json!({ "type": kind, "title": "x", "propertyOrder": order });
        let properties = json!({
            "address": setting(0, "string"),
            "password": { "type": "string", "title": "Password", "propertyOrder": 1, "writeOnly": true, "description": "Secret." },
            "links": setting(2, "integer"),
            "window": { "type": "integer", "title": "Window", "propertyOrder": 3, "default": 10, "description": "Open." },
            "rate": setting(4, "number"),
            "dlrs": { "type": "boolean", "title": "DLRs", "propertyOrder": 5, "default": true },
            "bind": { "oneOf": [{ "const": "transceiver" }], "title": "Bind as", "propertyOrder": 6 },
            "retry": setting(7, "array"),
            "tls": { "type": "object" },
        });
        let items = json!({ "properties": properties, "required": ["name", "address"] });
        fields_of(&json!({ "properties": { "peer": { "items": items } } }), "peer")
    }

    #[test]
    fn the_schema_decides_which_fields_there_are() {
        let fields = peer();
        let keys: Vec<&str> = fields.iter().map(|field| &*field.key).collect();
        assert_eq!(keys, ["address", "password", "links", "window", "rate", "dlrs", "bind", "retry"]);
        assert!(fields[0].required && !fields[3].required);
        assert_eq!(
            (&*fields[3].hint, &*fields[1].hint),
            ("Open. Default: 10.", "Secret. Write-only; unchanged if empty.")
        );
        assert_eq!((&fields[5].kind, &fields[7].kind), (&FieldKind::Flag(true), &FieldKind::List));
        assert_eq!(fields[6].kind, FieldKind::Choice(vec!["transceiver".to_owned()]));
    }

    #[test]
    fn settings_survive_the_form_unchanged() {
        let one = json!({
            "name": "north", "address": "a:1", "links": 2, "rate": 12.5, "dlrs": false, "password": UNCHANGED,
            "retry": ["10s", "1m"], "tls": { "ca": "x.pem" }, "long-text": "udh",
        });
        assert_eq!(settings_from_form(&peer(), &form_values(&peer(), &one), &one).unwrap(), one);
        let least = json!({ "name": "north", "address": "a:1" });
        assert_eq!(settings_from_form(&peer(), &form_values(&peer(), &least), &least).unwrap(), least);
    }

    #[test]
    fn a_secret_is_never_shown_and_a_new_one_is_accepted() {
        let one = json!({ "name": "n", "address": "a:1", "password": UNCHANGED });
        let html_text = fields(&peer(), &form_values(&peer(), &one), false, None).into_string();
        assert!(!html_text.contains(UNCHANGED), "{html_text}");
        let form = Form::of(vec![("address".into(), "a:1".into()), ("password".into(), " p ".into())]);
        assert_eq!(settings_from_form(&peer(), &form, &one).unwrap()["password"], " p ");
    }

    #[test]
    fn problems_are_shown_at_their_fields() {
        let problem = |pointer: &str| FieldProblem {
            pointer: pointer.into(),
            what: format!("bad {pointer}"),
            allowed: Some("1 to <9>".into()),
        };
        let error = ApiError {
            problems: vec![problem("/peer/3/window"), problem("/account/0/rate/x"), problem("/listener")],
            ..ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "")
        };
        let html_text = fields(&peer(), &Form::default(), true, Some(&error)).into_string();
        assert!(html_text.contains("bad /peer/3/window (allowed: 1 to &lt;9&gt;)"), "{html_text}");
        assert_eq!(html_text.matches("aria-invalid").count(), 2);
        assert_eq!(other_problems(&peer(), &error).problems.len(), 1);
    }
}
