//! Twilio's Messages resource (`POST /2010-04-01/Accounts/{Sid}/Messages.json`): only the creation of messages.
//!
//! `StatusCallback` gets the final DLR, signed like Twilio's; media are ignored. `policies/twilio-front-end.toml` is an
//! example of its document.

use serde::Deserialize;
use std::collections::BTreeMap;
use switchyard_sdk::FrontEnd;
use switchyard_sdk::form::{Form, percent_encode};
use switchyard_sdk::front_end::{
    Content, Credentials, DlrPush, DlrSignature, DlrWords, Outcome, Reading, Refusal, RefusalReason, Request,
    Response, Submission, SubmissionResult, Submit, WantedReceipts, header, json_string, literal, response,
    submission,
};

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Twilio {
    /// The account of the appliance for an Account SID. Default: the SID is its name.
    #[serde(default)]
    accounts: BTreeMap<String, String>,
}

/// An error of the API (Twilio's error dictionary).
struct ApiError {
    status: u16,
    code: u32,
    message: String,
}

impl ApiError {
    fn new(status: u16, code: u32, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }

    fn response(&self) -> Response {
        let Self { status, code, message } = self;
        let message = json_string(message);
        let body = format!(
            r#"{{"code":{code},"message":{message},"more_info":"https://www.twilio.com/docs/errors/{code}","status":{status}}}"#
        );
        response(*status, "application/json", body)
    }
}

/// The Account SID of the path.
fn account_sid(path: &str) -> Option<&str> {
    let mut rest = path.split('/').skip_while(|part| *part != "Accounts");
    rest.next()?;
    let sid = rest.next()?;
    let resource = rest.next()?;
    (matches!(resource, "Messages.json" | "Messages") && rest.next().is_none()).then_some(sid)
}

/// User name and password of HTTP Basic.
fn basic(request: &Request) -> Option<(String, String)> {
    let value = header(request, "authorization")?;
    let (scheme, encoded) = value.split_once(' ')?;
    let octets = base64(encoded.trim()).filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let text = String::from_utf8(octets).ok()?;
    text.split_once(':').map(|(user, password)| (user.to_owned(), password.to_owned()))
}

fn base64(text: &str) -> Option<Vec<u8>> {
    let mut octets = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for c in text.trim_end_matches('=').bytes() {
        let value = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            octets.push((bits >> count & 0xff) as u8);
        }
    }
    Some(octets)
}

/// A status callback. Twilio's fields that depend on the status are in its word.
fn status_callback(url: &str, sid: &str, form: &Form) -> DlrPush {
    let given = |name: &str| form.text(name).filter(|text| !text.is_empty());
    let number = |name: &str, default: &str| {
        given(name).map_or_else(|| default.to_owned(), |text| literal(&percent_encode(&text)))
    };
    let (from, to) = (number("From", "{from}"), number("To", "{to}"));
    let sid = literal(&percent_encode(sid));
    let body = format!(
        "MessageSid=SM{{id-hex}}&SmsSid=SM{{id-hex}}&AccountSid={sid}&From={from}&To={to}&ApiVersion=2010-04-01\
         &MessageStatus={{status}}"
    );
    let word = |status: &str, error: &str| Some(format!("{status}&SmsStatus={status}{error}"));
    // 30008 is Twilio's unknown error.
    let failed = word("undelivered", "&ErrorCode=30008");
    let words = DlrWords {
        enroute: None,
        delivered: word("delivered", ""),
        accepted: word("sent", ""),
        deleted: word("canceled", ""),
        rejected: word("failed", "&ErrorCode=30008"),
        expired: failed.clone(),
        undeliverable: failed.clone(),
        unknown: failed,
    };
    DlrPush {
        url: literal(url),
        body: Some(body),
        words,
        acknowledgement: None,
        signature: Some(DlrSignature::Twilio),
    }
}

impl Twilio {
    fn submit(&self, request: &Request) -> Result<Submit, ApiError> {
        let Some(sid) = account_sid(&request.path).filter(|_| request.method == "POST") else {
            let path = &request.path;
            return Err(ApiError::new(404, 20404, format!("The requested resource {path} was not found")));
        };
        let Some((user, password)) = basic(request).filter(|(user, _)| user == sid) else {
            return Err(ApiError::new(401, 20003, "Authenticate"));
        };
        let form = Form::of(request);
        let to = form.text("To").filter(|to| !to.is_empty());
        let to = to.ok_or_else(|| ApiError::new(400, 21604, "A 'To' phone number is required."))?;
        let body = form.text("Body").filter(|body| !body.is_empty());
        let body = body.ok_or_else(|| ApiError::new(400, 21602, "Message body is required."))?;
        let validity = match form.text("ValidityPeriod") {
            None => None,
            Some(text) => Some(text.parse().ok().filter(|seconds| *seconds > 0).ok_or_else(|| {
                ApiError::new(400, 21716, "The ValidityPeriod must be a number of seconds.")
            })?),
        };
        let callback = form.text("StatusCallback").filter(|url| !url.is_empty());
        let message = Submission {
            source: form.text("From").filter(|from| !from.is_empty()),
            validity,
            receipts: if callback.is_some() { WantedReceipts::Final } else { WantedReceipts::None },
            dlr_push: callback.map(|url| status_callback(&url, sid, &form)),
            ..submission(to, Content::Text(body))
        };
        let account = self.accounts.get(&user).cloned().unwrap_or(user);
        Ok(Submit {
            credentials: Credentials { account, password },
            submissions: vec![message],
            idempotency_key: header(request, "idempotency-key").map(str::to_owned),
        })
    }
}

impl FrontEnd for Twilio {
    fn configure(document: &str) -> Result<Self, String> {
        toml::from_str(document).map_err(|error| error.to_string())
    }

    fn read(&self, request: &Request) -> Reading {
        match self.submit(request) {
            Ok(submit) => Reading::Submit(submit),
            Err(error) => Reading::Respond(error.response()),
        }
    }

    fn reply(&self, request: &Request, outcome: &Outcome) -> Response {
        let refusal = match outcome {
            Outcome::Refused(refusal) => refusal,
            Outcome::Results(results) => match results.first() {
                Some(SubmissionResult::Accepted(message)) => {
                    return created(request, &message.id, message.segments);
                }
                Some(SubmissionResult::Refused(refusal)) => refusal,
                None => return ApiError::new(500, 20500, "Internal Server Error").response(),
            },
        };
        error_of(&Form::of(request), refusal).response()
    }
}

switchyard_sdk::export_front_end!(Twilio);

/// The resource. Its SID has the appliance's id in hexadecimal: SM, and 32 digits.
fn created(request: &Request, id: &str, segments: u16) -> Response {
    let sid = format!("SM{:032x}", id.parse::<u64>().unwrap_or_default());
    let account = account_sid(&request.path).unwrap_or_default();
    let form = Form::of(request);
    let text = |name: &str| form.text(name).map_or_else(|| "null".to_owned(), |text| json_string(&text));
    let uri = json_string(&format!("/2010-04-01/Accounts/{account}/Messages/{sid}.json"));
    let (account, to, from, body) = (json_string(account), text("To"), text("From"), text("Body"));
    let body = format!(
        r#"{{"account_sid":{account},"api_version":"2010-04-01","body":{body},"date_created":null,"date_sent":null,"date_updated":null,"direction":"outbound-api","error_code":null,"error_message":null,"from":{from},"messaging_service_sid":null,"num_media":"0","num_segments":"{segments}","price":null,"price_unit":null,"sid":"{sid}","status":"queued","subresource_uris":{{}},"to":{to},"uri":{uri}}}"#
    );
    response(201, "application/json", body)
}

fn error_of(form: &Form, refusal: &Refusal) -> ApiError {
    let to = form.text("To").unwrap_or_default();
    match (refusal.reason, refusal.field.as_deref()) {
        (RefusalReason::Unauthenticated, _) => ApiError::new(401, 20003, "Authenticate"),
        (RefusalReason::Throttled, _) => ApiError::new(429, 20429, "Too Many Requests"),
        (RefusalReason::Unavailable, _) => ApiError::new(503, 20503, "Service Unavailable"),
        (RefusalReason::Internal, _) => ApiError::new(500, 20500, "Internal Server Error"),
        (RefusalReason::InvalidDestination, _) | (RefusalReason::Invalid, Some("destination")) => {
            ApiError::new(400, 21211, format!("Invalid 'To' Phone Number: {to}"))
        }
        (RefusalReason::InvalidSource, _) | (RefusalReason::Invalid, Some("source")) => {
            let from = form.text("From").unwrap_or_default();
            ApiError::new(400, 21212, format!("Invalid From Number (caller ID): {from}"))
        }
        (RefusalReason::Invalid, Some("dlr-push")) => {
            ApiError::new(400, 21609, "The 'StatusCallback' URL is not a valid URL")
        }
        (RefusalReason::NoRoute, _) => ApiError::new(
            400,
            21612,
            "Message cannot be sent with the current combination of 'To' and/or 'From' parameters",
        ),
        (RefusalReason::Prohibited | RefusalReason::NotAuthorised | RefusalReason::NoCredit, _) => {
            ApiError::new(403, 20403, "Forbidden")
        }
        (RefusalReason::Invalid | RefusalReason::KeyReused, _) => {
            ApiError::new(400, 20001, refusal.detail.clone())
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_schema_is_up_to_date() {
        policy_values::schema::assert_up_to_date::<super::Twilio>("twilio-front-end");
    }
}
