//! Conversion of a message to a request.

use crate::Secrets;
use crate::document::{JsonTemplate, Policy};
use crate::template::{NoValue, Template};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};
use switchyard_sdk::Message;
use switchyard_sdk::form::percent_encode;
use switchyard_sdk::peer::{Attempt, RefusalClass, Submitted, refused};

/// A message to submit.
#[derive(Debug)]
pub struct Submission<'a> {
    /// The message.
    pub message: &'a Message,
    /// The attempt.
    pub attempt: &'a Attempt,
    /// Its text, if the document uses it and the message has one.
    pub text: Option<String>,
    /// Its octets, if the document uses them.
    pub octets: Vec<u8>,
}

/// A request that is ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedRequest {
    /// GET, POST or PUT.
    pub method: &'static str,
    /// The URL.
    pub url: String,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// Empty: no body.
    pub body: Vec<u8>,
}

impl Policy {
    /// The request for a message.
    ///
    /// # Errors
    /// The refusal of a message that cannot be converted to a request.
    pub fn request(
        &self,
        submission: &Submission<'_>,
        secrets: Secrets<'_>,
    ) -> Result<PreparedRequest, Submitted> {
        self.prepare(submission, secrets).map_err(|missing| match missing {
            NoValue::Text => {
                refused(RefusalClass::Permanent, 0).because("8-bit data has no text for the request")
            }
            NoValue::Secret(name) => refused(RefusalClass::Temporary, 0)
                .because(format!("the configuration of the peer has no secret {name:?}")),
        })
    }

    fn prepare(&self, submission: &Submission<'_>, secrets: Secrets<'_>) -> Result<PreparedRequest, NoValue> {
        let rules = &self.document.request;
        let plain = |template: &Template| template.render(submission, secrets, str::to_owned);
        let secret = |name: &String| secrets(name).ok_or_else(|| NoValue::Secret(name.clone()));
        let mut headers = Vec::new();
        for (name, value) in &rules.headers {
            // A header must have no line breaks, even if the message has some.
            let value = plain(value)?.replace(char::is_control, " ");
            headers.push((name.clone(), value));
        }
        if let Some(basic) = &rules.basic {
            let pair = format!("{}:{}", plain(&basic.user)?, secret(&basic.secret)?);
            headers.push(("authorization".to_owned(), format!("Basic {}", STANDARD.encode(pair))));
        }
        if let Some(bearer) = &rules.bearer {
            headers.push(("authorization".to_owned(), format!("Bearer {}", secret(bearer)?)));
        }
        let mut body = Vec::new();
        let mut content_type = None;
        if let Some(fields) = &rules.form {
            let mut pairs = Vec::new();
            for (name, value) in fields {
                pairs.push(format!("{}={}", percent_encode(name), percent_encode(&plain(value)?)));
            }
            body = pairs.join("&").into_bytes();
            content_type = Some("application/x-www-form-urlencoded");
        }
        if let Some(fields) = &rules.json {
            let mut object = Map::new();
            for (name, value) in fields {
                object.insert(name.clone(), json(value, &plain)?);
            }
            body = Value::Object(object).to_string().into_bytes();
            content_type = Some("application/json");
        }
        let is_set = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        if let Some(content_type) = content_type.filter(|_| !is_set) {
            headers.push(("content-type".to_owned(), content_type.to_owned()));
        }
        let url = rules.url.render(submission, secrets, percent_encode)?;
        Ok(PreparedRequest { method: rules.method.name(), url, headers, body })
    }
}

fn json(
    value: &JsonTemplate,
    plain: &impl Fn(&Template) -> Result<String, NoValue>,
) -> Result<Value, NoValue> {
    Ok(match value {
        JsonTemplate::Switch(value) => Value::Bool(*value),
        JsonTemplate::Integer(number) => Value::Number((*number).into()),
        // TOML has numbers that JSON does not have.
        JsonTemplate::Float(number) => Number::from_f64(*number).map_or(Value::Null, Value::Number),
        JsonTemplate::Text(template) => Value::String(plain(template)?),
        JsonTemplate::List(list) => {
            Value::Array(list.iter().map(|one| json(one, plain)).collect::<Result<_, _>>()?)
        }
        JsonTemplate::Object(fields) => {
            let fields = fields.iter().map(|(name, one)| Ok((name.clone(), json(one, plain)?)));
            Value::Object(fields.collect::<Result<_, _>>()?)
        }
    })
}
