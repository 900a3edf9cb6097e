//! Forms for the settings of a peer or an account: which fields there are, what stands in them, what was meant by them.

use crate::ask::{Misplaced, Refusal};
use crate::form::Form;
use maud::{Markup, html};
use serde_json::{Map, Value};

/// What the API says instead of a secret, and takes as "as it is".
pub(crate) const UNCHANGED: &str = "(unchanged)";
/// The field that has everything for which there is no field.
pub(crate) const REST: &str = "rest";

/// What is typed into a field.
pub(crate) enum Kind {
    Text,
    Number,
    Flag,
    /// Never shown; left empty it stays as it is.
    Secret,
    /// Several, with commas between them.
    List,
    Choice(&'static [&'static str]),
}

/// One setting.
pub(crate) struct Field {
    pub(crate) key: &'static str,
    pub(crate) label: &'static str,
    pub(crate) hint: &'static str,
    pub(crate) kind: Kind,
    pub(crate) needed: bool,
}

const fn field(key: &'static str, label: &'static str, hint: &'static str, kind: Kind) -> Field {
    Field { key, label, hint, kind, needed: false }
}

const fn needed(key: &'static str, label: &'static str, hint: &'static str, kind: Kind) -> Field {
    Field { key, label, hint, kind, needed: true }
}

/// What a peer has that most people set.
pub(crate) const PEER: &[Field] = &[
    needed("address", "Address", "Host and port: smsc.example.net:2775", Kind::Text),
    field("system-id", "System id", "Our name there", Kind::Text),
    field("password", "Password", "Write-only; left empty it stays as it is", Kind::Secret),
    field("bind", "Bind as", "", Kind::Choice(&["transceiver", "transmitter", "receiver"])),
    field("links", "Links", "Connections at a time, 1 to 256", Kind::Number),
    field("window", "Window", "Messages of a link that may be unanswered", Kind::Number),
    field("rate", "Rate", "Messages a second, of all links together; no limit if empty", Kind::Number),
    field("receipts", "Asks for receipts", "", Kind::Flag),
    field("uncertain", "What was never answered", "", Kind::Choice(&["await-receipt", "send-again", "ask"])),
    field("retry", "Tries again after", "10s, 1m, 5m, 1h", Kind::List),
    field("group", "Group", "Peers of a group share their receipts", Kind::Text),
    field(
        "default-account",
        "Default account",
        "For messages from the network that no route takes",
        Kind::Text,
    ),
];

/// What a gateway has that most people set.
pub(crate) const GATEWAY: &[Field] = &[
    needed("address", "Address", "Host and port: smg.example.net:8801", Kind::Text),
    needed(
        "node",
        "Our node number",
        "Ten digits, as the operator gave them to us: 3010012345",
        Kind::Number,
    ),
    field("login-name", "Our login name", "With which we log in there", Kind::Text),
    field("login-password", "Our password", "Write-only; left empty it stays as it is", Kind::Secret),
    field("its-name", "Its login name", "With which it logs in here", Kind::Text),
    field("its-password", "Its password", "Write-only; left empty it stays as it is", Kind::Secret),
    field("networks", "Comes from", "192.0.2.0/24, 2001:db8::/32; from anywhere if empty", Kind::List),
    field("connections", "Connections", "To it, at a time, 1 to 60", Kind::Number),
    field("window", "Window", "Messages of a connection that may be unanswered", Kind::Number),
    field("rate", "Rate", "Messages a second, of all connections together; no limit if empty", Kind::Number),
    field("receipts", "Asks for reports", "", Kind::Flag),
    field("uncertain", "What was never answered", "", Kind::Choice(&["send-again", "await-receipt"])),
    field("retry", "Tries again after", "10s, 1m, 5m, 1h", Kind::List),
    field(
        "default-account",
        "Default account",
        "For messages from the network that no route takes",
        Kind::Text,
    ),
];

/// What an account has that most people set.
pub(crate) const ACCOUNT: &[Field] = &[
    field("system-id", "System id", "Its name at our door; the account's name if empty", Kind::Text),
    field(
        "password",
        "Password",
        "Write-only, kept as an argon2 hash; left empty it stays as it is",
        Kind::Secret,
    ),
    field("bind", "May bind as", "transmitter, receiver, transceiver; all of them if empty", Kind::List),
    field("networks", "Comes from", "192.0.2.0/24, 2001:db8::/32; from anywhere if empty", Kind::List),
    field("rate", "Rate", "Submissions a second; no limit if empty", Kind::Number),
    field("window", "Window", "Submissions of a session that may be unanswered", Kind::Number),
    field("sessions", "Sessions", "At a time", Kind::Number),
    field("validity", "Validity", "How long its messages are tried: 2d", Kind::Text),
    field("reports", "Reports", "", Kind::Choice(&["merged", "per-part"])),
];

/// The account's secret as the configuration has it.
pub(crate) const HASH: &str = "password-hash";

fn shown(value: &Value) -> String {
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

/// What has no field of its own.
fn rest(fields: &[Field], one: &Value) -> Map<String, Value> {
    let known = |key: &str| key == "name" || key == HASH || fields.iter().any(|field| field.key == key);
    let all = one.as_object().into_iter().flatten();
    all.filter(|(key, _)| !known(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// The texts of a form for what there is.
pub(crate) fn texts(fields: &[Field], one: &Value) -> Form {
    let mut all: Vec<(String, String)> = fields
        .iter()
        .filter(|field| !one[field.key].is_null())
        .map(|field| (field.key.to_owned(), shown(&one[field.key])))
        .collect();
    // A box that is not ticked sends nothing; `true` if nothing is said of it.
    all.retain(|(key, text)| {
        text != "false" || !fields.iter().any(|field| field.key == key && matches!(field.kind, Kind::Flag))
    });
    for field in fields.iter().filter(|field| matches!(field.kind, Kind::Flag) && one[field.key].is_null()) {
        all.push((field.key.to_owned(), "true".to_owned()));
    }
    let rest = rest(fields, one);
    let rest =
        if rest.is_empty() { String::new() } else { serde_json::to_string_pretty(&rest).unwrap_or_default() };
    all.push((REST.to_owned(), rest));
    Form::of(all)
}

fn meant(kind: &Kind, text: &str) -> Value {
    match kind {
        Kind::Number => match (text.parse::<u64>(), text.parse::<f64>()) {
            (Ok(number), _) => number.into(),
            (_, Ok(number)) if number.is_finite() => number.into(),
            // The API says what is wrong with it.
            _ => text.into(),
        },
        Kind::List => {
            text.split([',', '\n']).map(str::trim).filter(|one| !one.is_empty()).map(Value::from).collect()
        }
        _ => text.into(),
    }
}

/// What a form means: the whole thing as it is to be. What is hidden stays.
pub(crate) fn read(fields: &[Field], form: &Form, before: &Value) -> Result<Value, Refusal> {
    let rest = form.whole(REST);
    let mut one: Map<String, Value> = match rest.trim() {
        "" => Map::new(),
        rest => serde_json::from_str(rest).map_err(|error| Refusal {
            problems: vec![Misplaced {
                pointer: format!("/{REST}"),
                what: error.to_string(),
                allowed: String::new(),
            }],
            ..Refusal::bad("Everything else must be a JSON object, or empty.")
        })?,
    };
    if let Some(name) = before.get("name") {
        one.insert("name".to_owned(), name.clone());
    }
    for field in fields {
        let text = form.text(field.key);
        let value = match &field.kind {
            Kind::Flag => match (form.has(field.key), before.get(field.key)) {
                // What nobody has ever said is not said by looking at it.
                (true, None) => continue,
                (is_ticked, _) => Value::Bool(is_ticked),
            },
            Kind::Secret => match (form.raw(field.key), before.get(field.key)) {
                ("", None) => continue,
                ("", Some(known)) => known.clone(),
                (secret, _) => secret.into(),
            },
            _ if text.is_empty() => continue,
            kind => meant(kind, text),
        };
        one.insert(field.key.to_owned(), value);
    }
    Ok(Value::Object(one))
}

/// What is wrong with a field: whatever list and place it stands in.
fn wrong<'a>(refusal: Option<&'a Refusal>, key: &str) -> Vec<&'a Misplaced> {
    let problems = refusal.map(|refusal| refusal.problems.as_slice()).unwrap_or_default();
    problems.iter().filter(|problem| key_of(&problem.pointer) == Some(key)).collect()
}

/// The setting that a pointer is about: `/peer/3/address` and `/peer/north/address/0` are about `address`.
fn key_of(pointer: &str) -> Option<&str> {
    let mut parts = pointer.split('/').skip(1);
    let first = parts.next()?;
    if first == REST {
        return Some(REST);
    }
    parts.nth(1)
}

/// Those problems that stand at none of the fields.
pub(crate) fn elsewhere(fields: &[Field], refusal: &Refusal) -> Refusal {
    let at_a_field = |problem: &Misplaced| {
        key_of(&problem.pointer)
            .is_some_and(|key| key == REST || key == "name" || fields.iter().any(|field| field.key == key))
    };
    let problems = refusal.problems.iter().filter(|problem| !at_a_field(problem)).cloned().collect();
    Refusal { problems, ..refusal.clone() }
}

/// A label, an input and what is wrong with it.
pub(crate) fn labelled(
    key: &str,
    label: &str,
    hint: &str,
    refusal: Option<&Refusal>,
    input: impl Fn(&str, bool) -> Markup,
) -> Markup {
    let wrong = wrong(refusal, key);
    let describes = format!("{key}-hint");
    html! {
        p.wrong[!wrong.is_empty()] {
            label for=(format!("field-{key}")) { (label) }
            (input(&describes, !wrong.is_empty()))
            small id=(describes) {
                @for problem in &wrong {
                    strong.what { (problem.what) @if !problem.allowed.is_empty() { " (allowed: " (problem.allowed) ")" } } " "
                }
                (hint)
            }
        }
    }
}

/// The fields, with what stands in them and what is wrong with it.
pub(crate) fn fields(fields: &[Field], form: &Form, is_new: bool, refusal: Option<&Refusal>) -> Markup {
    html! {
        @for field in fields {
            (labelled(field.key, field.label, field.hint, refusal, |describes, is_wrong| {
                let id = format!("field-{}", field.key);
                let invalid = is_wrong.then_some("true");
                let text = form.text(field.key);
                html! {
                    @match &field.kind {
                        Kind::Flag => { input id=(id) name=(field.key) type="checkbox" value="true" checked[form.has(field.key)] aria-describedby=(describes) aria-invalid=[invalid]; }
                        Kind::Secret => { input id=(id) name=(field.key) type="password" autocomplete="new-password" aria-describedby=(describes) aria-invalid=[invalid] required[field.needed && is_new]; }
                        Kind::Choice(words) => {
                            select id=(id) name=(field.key) aria-describedby=(describes) aria-invalid=[invalid] {
                                option value="" { "as usual (" (words.first().copied().unwrap_or_default()) ")" }
                                @for word in *words { option value=(word) selected[text == *word] { (word) } }
                            }
                        }
                        Kind::Number => { input id=(id) name=(field.key) value=(text) inputmode="decimal" autocomplete="off" aria-describedby=(describes) aria-invalid=[invalid]; }
                        _ => { input id=(id) name=(field.key) value=(text) autocomplete="off" spellcheck="false" aria-describedby=(describes) aria-invalid=[invalid] required[field.needed]; }
                    }
                }
            }))
        }
        details.wide open[!wrong(refusal, REST).is_empty()] {
            summary { "Everything else" }
            (labelled(REST, "Other settings, as JSON", "As in the configuration; empty if there are none.", refusal, |describes, _| html! {
                textarea #field-rest name=(REST) rows="6" spellcheck="false" aria-describedby=(describes) { (form.whole(REST)) }
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
    fn what_is_shown_and_sent_back_is_the_same() {
        let one = json!({
            "name": "north", "address": "a:1", "links": 2, "rate": 12.5, "receipts": false, "password": UNCHANGED,
            "retry": ["10s", "1m"], "tls": { "ca": "x.pem" }, "long-text": "udh",
        });
        assert_eq!(read(PEER, &texts(PEER, &one), &one).unwrap(), one);
        let least = json!({ "name": "north", "address": "a:1" });
        assert_eq!(read(PEER, &texts(PEER, &least), &least).unwrap(), least);
    }

    #[test]
    fn a_secret_is_never_drawn_and_a_new_one_is_taken() {
        let one = json!({ "name": "n", "address": "a:1", "password": UNCHANGED });
        let drawn = fields(PEER, &texts(PEER, &one), false, None).into_string();
        assert!(!drawn.contains(UNCHANGED), "{drawn}");
        let form = Form::of(vec![("address".into(), "a:1".into()), ("password".into(), " p ".into())]);
        assert_eq!(read(PEER, &form, &one).unwrap()["password"], " p ");
    }

    #[test]
    fn a_problem_stands_at_its_field_and_the_others_above() {
        let problem = |pointer: &str| Misplaced {
            pointer: pointer.into(),
            what: format!("bad {pointer}"),
            allowed: "1 to <9>".into(),
        };
        let refusal = Refusal {
            problems: vec![problem("/peer/3/window"), problem("/account/0/rate/x"), problem("/listener")],
            ..Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "")
        };
        let drawn = fields(PEER, &Form::default(), true, Some(&refusal)).into_string();
        assert!(drawn.contains("bad /peer/3/window (allowed: 1 to &lt;9&gt;)"), "{drawn}");
        assert_eq!(drawn.matches("aria-invalid").count(), 2);
        assert_eq!(elsewhere(PEER, &refusal).problems.len(), 1);
    }
}
