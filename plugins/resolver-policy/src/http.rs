//! The document of `http-resolver`; `policies/lookup.toml` is a commented example.

mod reply;

use crate::Numbers;
use policy_values::{Time, line, read};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// The placeholder for the number in a URL or a body.
const NUMBER: &str = "{msisdn}";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
enum Method {
    #[default]
    Get,
    Post,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Document {
    /// The URL, which the binding must grant; {msisdn} is replaced by the number.
    #[cfg_attr(test, schemars(with = "String", regex(pattern = "^https?://")))]
    url: toml::Spanned<String>,
    /// The HTTP method. Default: GET.
    #[serde(default)]
    method: Method,
    /// The body of a POST request; {msisdn} is replaced by the number.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    body: Option<toml::Spanned<String>>,
    /// Headers of the request.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// The fields of the response, a JSON object; dots address inner objects.
    #[serde(default)]
    answer: ReplyFields,
    /// Statuses that mean that there is no such subscriber. Default: 404.
    #[serde(default = "not_found")]
    #[cfg_attr(test, schemars(inner(range(min = 200, max = 599))))]
    unknown_status: Vec<u16>,
    /// How long the result for a found subscriber is cached. Default: the appliance's time.
    valid: Option<Time>,
    /// How long the result for an unknown number is cached. Default: the appliance's time.
    unknown_valid: Option<Time>,
    /// When to query again after a failure. Default: the appliance's time.
    try_again: Option<Time>,
    /// Conversion of numbers into international form. A plus sign is always removed.
    #[serde(default)]
    numbers: Numbers,
}

fn not_found() -> Vec<u16> {
    vec![404]
}

/// The paths of fields in the response: field names, separated by dots.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct ReplyFields {
    /// The field with the IMSI. Default: imsi.
    imsi: String,
    /// The field with the peer that serves the subscriber. Default: none.
    serving: Option<String>,
    /// The field with the seconds for which the response is valid. Default: none.
    valid_seconds: Option<String>,
}

impl Default for ReplyFields {
    fn default() -> Self {
        Self { imsi: "imsi".to_owned(), serving: None, valid_seconds: None }
    }
}

/// A request that is ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// GET or POST.
    pub method: &'static str,
    /// With the number inserted.
    pub url: String,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// Empty for GET.
    pub body: String,
}

/// The checked document.
#[derive(Debug, Clone)]
pub struct Policy {
    url: String,
    method: Method,
    body: String,
    headers: Vec<(String, String)>,
    fields: ReplyFields,
    unknown_status: Vec<u16>,
    valid: Option<Duration>,
    unknown_valid: Option<Duration>,
    try_again: Option<Duration>,
    numbers: Numbers,
}

impl Policy {
    /// Parses and checks a document.
    ///
    /// # Errors
    /// The mistake, its position, and the correction.
    pub fn parse(text: &str) -> Result<Self, String> {
        let document: Document = read(text)?;
        let at = line(text, document.url.span());
        let url = document.url.into_inner();
        let place = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or_default();
        if place.is_empty()
            || place.starts_with(['/', '?', ':'])
            || url.chars().any(|c| c.is_whitespace() || c.is_control())
        {
            return Err(format!(
                "line {at}: `url` is {url:?}; write a whole address without blanks, such as \
                 \"https://hlr.example/subscribers/{NUMBER}\""
            ));
        }
        let host = place.find(['/', '?', '#']).map_or(place, |end| place.get(..end).unwrap_or(place));
        if host.contains('{') {
            return Err(format!(
                "line {at}: `url` has the number in its host; let it stand after the first slash"
            ));
        }
        let body = match (document.method, document.body) {
            (Method::Get, Some(body)) => {
                let at = line(text, body.span());
                return Err(format!("line {at}: a `body` goes with `method = \"POST\"`"));
            }
            (_, body) => body.map(toml::Spanned::into_inner).unwrap_or_default(),
        };
        if !url.contains(NUMBER) && !body.contains(NUMBER) {
            return Err(format!("line {at}: neither `url` nor `body` has {NUMBER} in place of the number"));
        }
        for (name, value) in &document.headers {
            let token = |octet: u8| octet.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&octet);
            if name.is_empty() || !name.bytes().all(token) || value.chars().any(char::is_control) {
                return Err(format!(
                    "[headers] has {name:?}, which is not a header name, or whose value has control characters"
                ));
            }
        }
        let fields = document.answer;
        let paths = [Some(&fields.imsi), fields.serving.as_ref(), fields.valid_seconds.as_ref()];
        if paths.into_iter().flatten().any(|path| path.split('.').any(str::is_empty)) {
            return Err("[answer] names a field that is empty; write `imsi = \"imsi\"`, or \"subscriber.imsi\" for a \
                        field within a field"
                .to_owned());
        }
        if let Some(status) = document.unknown_status.iter().find(|status| !(200..600).contains(*status)) {
            return Err(format!("`unknown-status` has {status}; a status is 200 to 599, mostly 404"));
        }
        document.numbers.check()?;
        Ok(Self {
            url,
            method: document.method,
            body,
            headers: document.headers.into_iter().collect(),
            fields,
            unknown_status: document.unknown_status,
            valid: document.valid.map(|time| time.0),
            unknown_valid: document.unknown_valid.map(|time| time.0),
            try_again: document.try_again.map(|time| time.0),
            numbers: document.numbers,
        })
    }

    /// The request for a number; `None` if it is not a valid number.
    #[must_use]
    pub fn request(&self, msisdn: &str) -> Option<Request> {
        // Digits need no escaping, neither in a URL nor in JSON.
        let number = self.numbers.normalize(msisdn)?;
        Some(Request {
            method: match self.method {
                Method::Get => "GET",
                Method::Post => "POST",
            },
            url: self.url.replace(NUMBER, &number),
            headers: self.headers.clone(),
            body: self.body.replace(NUMBER, &number),
        })
    }
}

#[cfg(test)]
mod tests;
