//! The document and its checks.

use crate::condition::{Conditions, check_pointer};
use crate::pattern::Pattern;
use crate::template::Template;
use policy_values::{Time, read};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;
use switchyard_sdk::peer::{ReceiptState, RefusalClass};

/// The policy document.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Document {
    /// The request that submits a message.
    pub(crate) request: RequestRules,
    /// The responses that mean that the peer has accepted the message.
    #[serde(default)]
    pub(crate) accepted: AcceptedRules,
    /// The responses that mean that the peer does not have the message; the first that matches counts.
    #[serde(default)]
    pub(crate) refused: Vec<RefusedRule>,
    /// The callbacks with receipts.
    pub(crate) receipts: Option<ReceiptRules>,
    /// The callbacks with messages.
    pub(crate) messages: Option<MessageRules>,
}

/// The method of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Method {
    Get,
    #[default]
    Post,
    Put,
}

impl Method {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
        }
    }
}

/// The request that submits a message. Its texts may have the placeholders {source}, {destination}, {text}, {hex},
/// {data-coding}, {id}, {key}, {peer} and {secret:NAME}; {{ and }} are braces.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RequestRules {
    /// The URL, which the binding must grant.
    #[cfg_attr(test, schemars(with = "String", regex(pattern = "^https?://")))]
    pub(crate) url: Template,
    /// The method. Default: POST.
    #[serde(default)]
    pub(crate) method: Method,
    /// Headers.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, String>"))]
    pub(crate) headers: BTreeMap<String, Template>,
    /// Basic authentication: user, and name of the secret that is the password.
    pub(crate) basic: Option<BasicRules>,
    /// Bearer authentication: the name of the secret that is the token.
    pub(crate) bearer: Option<String>,
    /// The fields of a form.
    #[cfg_attr(test, schemars(with = "Option<BTreeMap<String, String>>"))]
    pub(crate) form: Option<BTreeMap<String, Template>>,
    /// A JSON document; its texts may have placeholders.
    #[cfg_attr(test, schemars(with = "Option<BTreeMap<String, serde_json::Value>>"))]
    pub(crate) json: Option<BTreeMap<String, JsonTemplate>>,
}

/// Basic authentication.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct BasicRules {
    /// The user.
    #[cfg_attr(test, schemars(with = "String"))]
    pub(crate) user: Template,
    /// The name of the secret that is the password.
    pub(crate) secret: String,
}

/// A JSON value whose texts have placeholders.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum JsonTemplate {
    Switch(bool),
    Integer(i64),
    Float(f64),
    Text(Template),
    List(Vec<JsonTemplate>),
    Object(BTreeMap<String, JsonTemplate>),
}

/// The responses that mean that the peer has accepted the message.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct AcceptedRules {
    /// The statuses. Default: 200 to 299.
    #[cfg_attr(test, schemars(inner(range(min = 200, max = 599))))]
    pub(crate) status: Vec<u16>,
    /// JSON Pointers, and the values that these fields of the response must have. Default: none.
    #[serde(rename = "where")]
    pub(crate) conditions: Conditions,
    /// The JSON Pointer of the peer's message id.
    pub(crate) id: Option<String>,
    /// A regular expression whose group is the peer's message id in the body.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub(crate) id_pattern: Option<Pattern>,
}

/// The reason why the peer refuses a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RefusalWord {
    /// A retry may succeed.
    Temporary,
    /// A retry cannot succeed.
    Permanent,
    /// The peer throttles: the peer is paused, not the message.
    Throttled,
    /// The peer's queue is full.
    QueueFull,
    /// The subscriber is not reachable now.
    Absent,
    /// The handset's memory is full.
    MemoryFull,
    /// The peer does not know the subscriber.
    UnknownSubscriber,
    /// The peer may have the message: it is uncertain.
    Unsure,
}

impl RefusalWord {
    /// The class; `None` for `unsure`.
    pub(crate) fn class(self) -> Option<RefusalClass> {
        Some(match self {
            Self::Temporary => RefusalClass::Temporary,
            Self::Permanent => RefusalClass::Permanent,
            Self::Throttled => RefusalClass::Throttled,
            Self::QueueFull => RefusalClass::QueueFull,
            Self::Absent => RefusalClass::Absent,
            Self::MemoryFull => RefusalClass::MemoryFull,
            Self::UnknownSubscriber => RefusalClass::UnknownSubscriber,
            Self::Unsure => return None,
        })
    }
}

/// Responses that mean that the peer does not have the message.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RefusedRule {
    /// The statuses. Default: all.
    #[serde(default)]
    #[cfg_attr(test, schemars(inner(range(min = 200, max = 599))))]
    pub(crate) status: Vec<u16>,
    /// JSON Pointers, and the values that these fields of the response must have. Default: none.
    #[serde(default, rename = "where")]
    pub(crate) conditions: Conditions,
    /// The class of the refusal.
    pub(crate) class: RefusalWord,
    /// The JSON Pointer of the peer's error code, a number. Default: the code is the HTTP status.
    pub(crate) code: Option<String>,
    /// The pause of the peer, with `throttled` and `queue-full`, if the response has no header Retry-After.
    pub(crate) retry_after: Option<Time>,
}

/// The form of a callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CallbackForm {
    /// A JSON document in the body.
    #[default]
    Json,
    /// A form in the body; `/name` is the pointer of a field.
    Form,
    /// Fields in the query; `/name` is the pointer of a field.
    Query,
}

/// The authentication of the peer's callbacks. One of `header`, `query` and `hmac-sha256` is needed.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct SenderCheck {
    /// The name of the secret.
    pub(crate) secret: String,
    /// The header whose value is the secret.
    pub(crate) header: Option<String>,
    /// The field of the query whose value is the secret.
    pub(crate) query: Option<String>,
    /// The header with the HMAC-SHA256 of the body under the secret, in hexadecimal digits or base64, also after `sha256=`.
    pub(crate) hmac_sha256: Option<String>,
}

/// The response to a callback that was read.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct ResponseRules {
    /// The status. Default: 200.
    #[cfg_attr(test, schemars(range(min = 200, max = 599)))]
    pub(crate) status: u16,
    /// The body. Default: empty.
    pub(crate) body: String,
}

impl Default for ResponseRules {
    fn default() -> Self {
        Self { status: 200, body: String::new() }
    }
}

/// A state of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StateWord {
    Enroute,
    Delivered,
    Expired,
    Deleted,
    Undeliverable,
    Accepted,
    Unknown,
    Rejected,
}

impl StateWord {
    pub(crate) fn state(self) -> ReceiptState {
        match self {
            Self::Enroute => ReceiptState::Enroute,
            Self::Delivered => ReceiptState::Delivered,
            Self::Expired => ReceiptState::Expired,
            Self::Deleted => ReceiptState::Deleted,
            Self::Undeliverable => ReceiptState::Undeliverable,
            Self::Accepted => ReceiptState::Accepted,
            Self::Unknown => ReceiptState::Unknown,
            Self::Rejected => ReceiptState::Rejected,
        }
    }
}

/// Callbacks with receipts.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ReceiptRules {
    /// The rest of the path after `/v1/peers/NAME/callback`. Default: empty.
    #[serde(default)]
    pub(crate) path: String,
    /// The form. Default: json.
    #[serde(default)]
    pub(crate) form: CallbackForm,
    /// The authentication of the peer's callbacks.
    pub(crate) check: SenderCheck,
    /// The JSON Pointer of the list of receipts. Default: the callback is one receipt.
    pub(crate) list: Option<String>,
    /// The JSON Pointer of the peer's message id.
    pub(crate) id: String,
    /// The JSON Pointer of the state.
    pub(crate) state: String,
    /// The peer's words for states. Receipts with other words are ignored.
    pub(crate) states: BTreeMap<String, StateWord>,
    /// The JSON Pointer of the error code.
    pub(crate) error: Option<String>,
    /// The JSON Pointer of the subscriber's number. With `sender`, it finds a message whose id was lost.
    pub(crate) subscriber: Option<String>,
    /// The JSON Pointer of the sender.
    pub(crate) sender: Option<String>,
    /// The response.
    #[serde(default)]
    pub(crate) response: ResponseRules,
}

/// Callbacks with messages.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct MessageRules {
    /// The rest of the path after `/v1/peers/NAME/callback`, such as `/incoming`.
    pub(crate) path: String,
    /// The form. Default: json.
    #[serde(default)]
    pub(crate) form: CallbackForm,
    /// The authentication of the peer's callbacks.
    pub(crate) check: SenderCheck,
    /// The JSON Pointer of the list of messages. Default: the callback is one message.
    pub(crate) list: Option<String>,
    /// The JSON Pointer of the sender's number.
    pub(crate) source: String,
    /// The JSON Pointer of the destination's number.
    pub(crate) destination: String,
    /// The JSON Pointer of the text.
    pub(crate) text: String,
    /// The response.
    #[serde(default)]
    pub(crate) response: ResponseRules,
}

/// The checked document.
#[derive(Debug)]
pub struct Policy {
    pub(crate) document: Document,
    uses_text: bool,
    uses_octets: bool,
}

impl Policy {
    /// Parses and checks a document.
    ///
    /// # Errors
    /// The mistake, its position, and the correction.
    pub fn parse(text: &str) -> Result<Self, String> {
        let document: Document = read(text)?;
        check_request(&document.request)?;
        check_answers(&document)?;
        if let Some(receipts) = &document.receipts {
            check_callback("[receipts]", &receipts.path, &receipts.check, &receipts.response)?;
            let optional = [&receipts.list, &receipts.error, &receipts.subscriber, &receipts.sender];
            let pointers =
                [Some(&receipts.id), Some(&receipts.state)].into_iter().chain(optional.map(Option::as_ref));
            check_pointers("[receipts]", pointers)?;
        }
        if let Some(messages) = &document.messages {
            check_callback("[messages]", &messages.path, &messages.check, &messages.response)?;
            let pointers = [&messages.source, &messages.destination, &messages.text].map(Some);
            check_pointers("[messages]", pointers.into_iter().chain([messages.list.as_ref()]))?;
            if document.receipts.as_ref().is_some_and(|receipts| receipts.path == messages.path) {
                return Err("[receipts] and [messages] have the same `path`: give [messages] one of its own, such as \
                            \"/incoming\", and have the peer call it"
                    .to_owned());
            }
        }
        let templates = templates(&document.request);
        let uses_text = templates.iter().any(|template| template.uses_text());
        let uses_octets = templates.iter().any(|template| template.uses_octets());
        if !templates.iter().any(|template| template.uses_destination()) {
            return Err(
                "[request] has {destination} nowhere, so the peer would not learn where the message goes"
                    .to_owned(),
            );
        }
        Ok(Self { document, uses_text, uses_octets })
    }

    /// Whether requests contain the text of the message.
    #[must_use]
    pub fn uses_text(&self) -> bool {
        self.uses_text
    }

    /// Whether requests contain the octets of the message.
    #[must_use]
    pub fn uses_octets(&self) -> bool {
        self.uses_octets
    }
}

fn templates(request: &RequestRules) -> Vec<&Template> {
    fn add<'a>(value: &'a JsonTemplate, all: &mut Vec<&'a Template>) {
        match value {
            JsonTemplate::Text(template) => all.push(template),
            JsonTemplate::List(list) => list.iter().for_each(|one| add(one, all)),
            JsonTemplate::Object(fields) => fields.values().for_each(|one| add(one, all)),
            JsonTemplate::Switch(_) | JsonTemplate::Integer(_) | JsonTemplate::Float(_) => {}
        }
    }
    let mut all = vec![&request.url];
    all.extend(request.headers.values());
    all.extend(request.form.iter().flat_map(BTreeMap::values));
    request.json.iter().flat_map(BTreeMap::values).for_each(|value| add(value, &mut all));
    all
}

fn check_request(request: &RequestRules) -> Result<(), String> {
    let start = request.url.start();
    let place = start.strip_prefix("https://").or_else(|| start.strip_prefix("http://")).unwrap_or_default();
    let host = place.split(['/', '?', '#']).next().unwrap_or_default();
    // The host name must end before the first placeholder.
    if host.is_empty() || host.len() == place.len() && !request.url.is_literal() {
        return Err(
            "[request] `url` must begin with https:// or http:// and a host without placeholders, such as \
                    \"https://api.example/messages\""
                .to_owned(),
        );
    }
    if start.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("[request] `url` has blanks; write %20 for a blank".to_owned());
    }
    if request.form.is_some() && request.json.is_some() {
        return Err("[request] has both `form` and `json`; a request has one body".to_owned());
    }
    if request.method == Method::Get && (request.form.is_some() || request.json.is_some()) {
        return Err("[request] has a body; it goes with `method` POST or PUT".to_owned());
    }
    if request.basic.is_some() && request.bearer.is_some() {
        return Err("[request] has both `basic` and `bearer`; remove one of them".to_owned());
    }
    for name in request.headers.keys() {
        let token = |octet: u8| octet.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&octet);
        if name.is_empty() || !name.bytes().all(token) {
            return Err(format!("[request] headers: {name:?} is not a header name"));
        }
        if name.eq_ignore_ascii_case("authorization") && (request.basic.is_some() || request.bearer.is_some())
        {
            return Err("[request] headers: authorization is set by `basic` or `bearer`; remove one of them"
                .to_owned());
        }
    }
    Ok(())
}

fn check_answers(document: &Document) -> Result<(), String> {
    let accepted = &document.accepted;
    if accepted.id.is_some() && accepted.id_pattern.is_some() {
        return Err("[accepted] has both `id` and `id-pattern`; remove one of them".to_owned());
    }
    let statuses = accepted.status.iter().chain(document.refused.iter().flat_map(|rule| &rule.status));
    if let Some(status) = statuses.into_iter().find(|status| !(200..600).contains(*status)) {
        return Err(format!("`status` has {status}; a status is 200 to 599"));
    }
    check_pointers("[accepted]", accepted.conditions.keys().chain(&accepted.id).map(Some))?;
    for rule in &document.refused {
        check_pointers("[[refused]]", rule.conditions.keys().chain(&rule.code).map(Some))?;
        if rule.status.is_empty() && rule.conditions.is_empty() {
            return Err(
                "[[refused]] needs `status` or `where`; without them it would match every answer".to_owned()
            );
        }
        let pauses = matches!(rule.class, RefusalWord::Throttled | RefusalWord::QueueFull);
        if rule.retry_after.is_some() && !pauses {
            return Err(
                "[[refused]] has `retry-after`, which goes with the classes throttled and queue-full"
                    .to_owned(),
            );
        }
    }
    Ok(())
}

fn check_pointers<'a>(
    section: &str,
    pointers: impl IntoIterator<Item = Option<&'a String>>,
) -> Result<(), String> {
    pointers.into_iter().flatten().try_for_each(|pointer| check_pointer(section, pointer))
}

fn check_callback(
    section: &str,
    path: &str,
    check: &SenderCheck,
    response: &ResponseRules,
) -> Result<(), String> {
    if !path.is_empty() && !path.starts_with('/') {
        return Err(format!("{section} `path` is {path:?}: it begins with a slash, such as \"/{path}\""));
    }
    let ways = [&check.header, &check.query, &check.hmac_sha256];
    if ways.into_iter().flatten().count() != 1 {
        return Err(format!("{section} `check` needs one of `header`, `query` and `hmac-sha256`"));
    }
    if !(200..600).contains(&response.status) {
        return Err(format!("{section} `response` has status {}; a status is 200 to 599", response.status));
    }
    Ok(())
}

/// The longest pause that the host accepts.
pub(crate) const MAX_PAUSE: Duration = Duration::from_secs(3_600);
