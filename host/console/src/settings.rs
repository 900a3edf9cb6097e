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
pub(crate) enum FieldKind {
    Text,
    Number,
    Flag,
    /// A secret: never shown; if the field is empty, it is unchanged.
    Secret,
    /// A list, separated by commas.
    List,
    Choice(&'static [&'static str]),
}

/// A field of the form.
pub(crate) struct Field {
    pub(crate) key: &'static str,
    pub(crate) label: &'static str,
    pub(crate) hint: &'static str,
    pub(crate) kind: FieldKind,
    pub(crate) required: bool,
}

const fn field(key: &'static str, label: &'static str, hint: &'static str, kind: FieldKind) -> Field {
    Field { key, label, hint, kind, required: false }
}

const fn required(key: &'static str, label: &'static str, hint: &'static str, kind: FieldKind) -> Field {
    Field { key, label, hint, kind, required: true }
}

/// The common settings of a peer.
pub(crate) const PEER: &[Field] = &[
    required("address", "Address", "Host and port: smsc.example.net:2775", FieldKind::Text),
    field("system-id", "System id", "Your system id at the peer", FieldKind::Text),
    field("password", "Password", "Write-only; unchanged if empty", FieldKind::Secret),
    field("bind", "Bind as", "", FieldKind::Choice(&["transceiver", "transmitter", "receiver"])),
    field("links", "Links", "Number of connections, 1 to 256", FieldKind::Number),
    field("window", "Window", "Maximum number of unanswered messages of a link", FieldKind::Number),
    field("rate", "Rate", "Messages a second, all links together; no limit if empty", FieldKind::Number),
    field("dlrs", "Requests DLRs", "", FieldKind::Flag),
    field("uncertain", "Uncertain messages", "", FieldKind::Choice(&["await-dlr", "send-again", "query"])),
    field("retry", "Retry schedule", "10s, 1m, 5m, 1h", FieldKind::List),
    field("group", "Group", "Peers of a group share their DLRs", FieldKind::Text),
    field("default-account", "Default account", "For MO messages without a route", FieldKind::Text),
];

/// The common settings of a gateway.
pub(crate) const GATEWAY: &[Field] = &[
    required("address", "Address", "Host and port: smg.example.net:8801", FieldKind::Text),
    required(
        "node",
        "Node number",
        "Your node number, ten digits assigned by the operator: 3010012345",
        FieldKind::Number,
    ),
    field("login-name", "Login name", "For your login at the gateway", FieldKind::Text),
    field("login-password", "Password", "Write-only; unchanged if empty", FieldKind::Secret),
    field(
        "inbound-login-name",
        "Inbound login name",
        "For the gateway's login at the appliance",
        FieldKind::Text,
    ),
    field("inbound-login-password", "Inbound password", "Write-only; unchanged if empty", FieldKind::Secret),
    field("networks", "Source networks", "192.0.2.0/24, 2001:db8::/32; any if empty", FieldKind::List),
    field("connections", "Connections", "Number of connections to the gateway, 1 to 60", FieldKind::Number),
    field("window", "Window", "Maximum number of unanswered messages of a connection", FieldKind::Number),
    field(
        "rate",
        "Rate",
        "Messages a second, all connections together; no limit if empty",
        FieldKind::Number,
    ),
    field("dlrs", "Requests DLRs", "", FieldKind::Flag),
    field("uncertain", "Uncertain messages", "", FieldKind::Choice(&["send-again", "await-dlr"])),
    field("retry", "Retry schedule", "10s, 1m, 5m, 1h", FieldKind::List),
    field("default-account", "Default account", "For MO messages without a route", FieldKind::Text),
];

/// The common settings of an account.
pub(crate) const ACCOUNT: &[Field] = &[
    field(
        "system-id",
        "System id",
        "The system id of its binds; the account's name if empty",
        FieldKind::Text,
    ),
    field(
        "password",
        "Password",
        "Write-only, stored as an argon2 hash; unchanged if empty",
        FieldKind::Secret,
    ),
    field("bind", "Permitted binds", "transmitter, receiver, transceiver; all if empty", FieldKind::List),
    field("networks", "Source networks", "192.0.2.0/24, 2001:db8::/32; any if empty", FieldKind::List),
    field("rate", "Rate", "Submissions a second; no limit if empty", FieldKind::Number),
    field("window", "Window", "Maximum number of unanswered submissions of a session", FieldKind::Number),
    field("sessions", "Sessions", "Maximum number of sessions", FieldKind::Number),
    field("validity", "Validity", "Default validity period of its messages: 2d", FieldKind::Text),
    field("dlrs", "DLRs", "", FieldKind::Choice(&["merged", "per-segment"])),
];

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
        |key: &str| key == "name" || key == PASSWORD_HASH || fields.iter().any(|field| field.key == key);
    let all = one.as_object().into_iter().flatten();
    all.filter(|(key, _)| !known(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// The form values of an entry.
pub(crate) fn form_values(fields: &[Field], one: &Value) -> Form {
    let mut all: Vec<(String, String)> = fields
        .iter()
        .filter(|field| !one[field.key].is_null())
        .map(|field| (field.key.to_owned(), display_text(&one[field.key])))
        .collect();
    // An unticked checkbox is not sent; a missing flag counts as `true`.
    all.retain(|(key, text)| {
        text != "false"
            || !fields.iter().any(|field| field.key == key && matches!(field.kind, FieldKind::Flag))
    });
    for field in
        fields.iter().filter(|field| matches!(field.kind, FieldKind::Flag) && one[field.key].is_null())
    {
        all.push((field.key.to_owned(), "true".to_owned()));
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
        let text = form.text(field.key);
        let value = match &field.kind {
            FieldKind::Flag => match (form.has(field.key), before.get(field.key)) {
                // A flag that was never set stays unset.
                (true, None) => continue,
                (is_ticked, _) => Value::Bool(is_ticked),
            },
            FieldKind::Secret => match (form.raw(field.key), before.get(field.key)) {
                ("", None) => continue,
                ("", Some(known)) => known.clone(),
                (secret, _) => secret.into(),
            },
            _ if text.is_empty() => continue,
            kind => parse_value(kind, text),
        };
        one.insert(field.key.to_owned(), value);
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
            key == OTHER_SETTINGS || key == "name" || fields.iter().any(|field| field.key == key)
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
            (labelled_input(field.key, field.label, field.hint, error, |describes, is_wrong| {
                let id = format!("field-{}", field.key);
                let invalid = is_wrong.then_some("true");
                let text = form.text(field.key);
                html! {
                    @match &field.kind {
                        FieldKind::Flag => { input id=(id) name=(field.key) type="checkbox" value="true" checked[form.has(field.key)] aria-describedby=(describes) aria-invalid=[invalid]; }
                        FieldKind::Secret => { input id=(id) name=(field.key) type="password" autocomplete="new-password" aria-describedby=(describes) aria-invalid=[invalid] required[field.required && is_new]; }
                        FieldKind::Choice(words) => {
                            select id=(id) name=(field.key) aria-describedby=(describes) aria-invalid=[invalid] {
                                option value="" { "default (" (words.first().copied().unwrap_or_default()) ")" }
                                @for word in *words { option value=(word) selected[text == *word] { (word) } }
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

    #[test]
    fn settings_survive_the_form_unchanged() {
        let one = json!({
            "name": "north", "address": "a:1", "links": 2, "rate": 12.5, "dlrs": false, "password": UNCHANGED,
            "retry": ["10s", "1m"], "tls": { "ca": "x.pem" }, "long-text": "udh",
        });
        assert_eq!(settings_from_form(PEER, &form_values(PEER, &one), &one).unwrap(), one);
        let least = json!({ "name": "north", "address": "a:1" });
        assert_eq!(settings_from_form(PEER, &form_values(PEER, &least), &least).unwrap(), least);
    }

    #[test]
    fn a_secret_is_never_shown_and_a_new_one_is_accepted() {
        let one = json!({ "name": "n", "address": "a:1", "password": UNCHANGED });
        let html_text = fields(PEER, &form_values(PEER, &one), false, None).into_string();
        assert!(!html_text.contains(UNCHANGED), "{html_text}");
        let form = Form::of(vec![("address".into(), "a:1".into()), ("password".into(), " p ".into())]);
        assert_eq!(settings_from_form(PEER, &form, &one).unwrap()["password"], " p ");
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
        let html_text = fields(PEER, &Form::default(), true, Some(&error)).into_string();
        assert!(html_text.contains("bad /peer/3/window (allowed: 1 to &lt;9&gt;)"), "{html_text}");
        assert_eq!(html_text.matches("aria-invalid").count(), 2);
        assert_eq!(other_problems(PEER, &error).problems.len(), 1);
    }
}
