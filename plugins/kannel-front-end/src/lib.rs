//! Kannel's sendsms interface (Kannel User's Guide, "Using SMS services with HTTP-based access"): GET, POST of a form, and POST of
//! the text with X-Kannel headers.
//!
//! `smsc`, `account`, `pid`, `alt-dcs`, `mwi`, `compress`, `binfo` and `meta-data` are ignored: routers choose the peer.
//! `policies/kannel-front-end.toml` is an example of its document.

use serde::Deserialize;
use switchyard_sdk::front_end::{
    Coding, Content, Credentials, Form, Outcome, Reading, Refusal, RefusalReason, Request, Response,
    Submission, SubmissionResult, Submit, WantedReceipts, decode_text, header, percent_decode, response,
    submission,
};
use switchyard_sdk::{FrontEnd, clock};

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Kannel {
    /// The character set of `text` where a request has none.
    #[serde(default = "utf8")]
    default_charset: String,
}

fn utf8() -> String {
    "UTF-8".to_owned()
}

/// Receipts in `dlr-mask`: 1 delivered, 2 not delivered, 4 queued at the SMSC, 8 delivered to the SMSC, 16 refused by it.
const DELIVERED: u32 = 1;
const FAILED: u32 = 2 | 16;

/// The parameters, from the form or from headers.
struct Parameters<'a> {
    form: Form,
    request: &'a Request,
}

impl Parameters<'_> {
    fn octets(&self, name: &str) -> Option<Vec<u8>> {
        let own = self.form.octets(name).map(<[u8]>::to_vec);
        own.or_else(|| match name {
            "text" => self.is_text_body().then(|| self.request.body.clone()),
            // The header has the octets in hexadecimal.
            "udh" => header(self.request, "x-kannel-udh").map(from_hex),
            _ => header(self.request, &format!("x-kannel-{name}"))
                .map(|value| percent_decode(value.as_bytes())),
        })
    }

    fn text(&self, name: &str) -> Option<String> {
        self.octets(name).map(|value| String::from_utf8_lossy(&value).into_owned())
    }

    fn is_text_body(&self) -> bool {
        let kind = header(self.request, "content-type").unwrap_or_default();
        ["text/plain", "application/octet-stream"].iter().any(|known| kind.starts_with(known))
    }

    /// A number from 0 to `most`, if there is one.
    fn number(&self, name: &str, label: &str, most: u32) -> Result<Option<u32>, String> {
        let Some(text) = self.text(name).filter(|text| !text.is_empty()) else { return Ok(None) };
        let number: Option<u32> = text.trim().parse().ok().filter(|number| *number <= most);
        number.map(Some).ok_or_else(|| format!("{label} field misformed, rejected"))
    }
}

/// Pairs of digits; others make it empty, which the host refuses.
fn from_hex(text: &str) -> Vec<u8> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let digits = digits.unwrap_or_default();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

impl Kannel {
    fn submit(&self, request: &Request) -> Result<Submit, String> {
        let parameters = Parameters { form: Form::of(request), request };
        let first = |names: [&str; 2]| names.iter().find_map(|name| parameters.text(name));
        let account = first(["username", "user"]).unwrap_or_default();
        let password = first(["password", "pass"]).unwrap_or_default();
        let to = parameters.text("to").unwrap_or_default();
        let receivers: Vec<&str> = to.split_whitespace().collect();
        if receivers.is_empty() {
            return Err("Missing receiver number, rejected".to_owned());
        }
        let model = self.model(&parameters)?;
        let submissions =
            receivers.into_iter().map(|to| Submission { destination: to.to_owned(), ..model.clone() });
        Ok(Submit {
            credentials: Credentials { account, password },
            submissions: submissions.collect(),
            idempotency_key: None,
        })
    }

    /// The message, without its receiver.
    fn model(&self, parameters: &Parameters<'_>) -> Result<Submission, String> {
        let is_binary_body = header(parameters.request, "content-type") == Some("application/octet-stream");
        let default_coding = u32::from(is_binary_body);
        let coding = parameters.number("coding", "Coding", 2)?.unwrap_or(default_coding);
        let octets = parameters.octets("text").unwrap_or_default();
        let default_charset = if coding == 2 { "UTF-16BE" } else { &self.default_charset };
        let charset = parameters.text("charset").unwrap_or_else(|| default_charset.to_owned());
        let content = match coding {
            1 => Content::Octets(octets),
            _ => Content::Text(
                decode_text(&octets, &charset)
                    .ok_or_else(|| "Charset conversion failed, rejected".to_owned())?,
            ),
        };
        let minutes = |minutes: u32| u64::from(minutes) * 60;
        let narrow = |number: u32| u8::try_from(number).unwrap_or(u8::MAX);
        let mask = parameters.number("dlr-mask", "DLR-Mask", u32::MAX)?.unwrap_or_default();
        let deferred = parameters.number("deferred", "Deferred", u32::MAX)?.filter(|minutes| *minutes > 0);
        Ok(Submission {
            source: parameters.text("from").filter(|from| !from.is_empty()),
            coding: match coding {
                1 => Coding::Binary,
                2 => Coding::Ucs2,
                _ => Coding::Automatic,
            },
            user_data_header: parameters.octets("udh").filter(|udh| !udh.is_empty()),
            message_class: parameters.number("mclass", "MClass", 3)?.map(narrow),
            priority: parameters.number("priority", "Priority", 3)?.map(narrow),
            validity: parameters
                .number("validity", "Validity", u32::MAX)?
                .filter(|one| *one > 0)
                .map(minutes),
            schedule: deferred.map(|deferred| clock::now().saturating_add(minutes(deferred) * 1000)),
            receipts: match (mask & DELIVERED != 0, mask & FAILED != 0) {
                (true, _) => WantedReceipts::Final,
                (false, true) => WantedReceipts::Failure,
                (false, false) => WantedReceipts::None,
            },
            ..submission("", content)
        })
    }
}

impl FrontEnd for Kannel {
    fn configure(document: &str) -> Result<Self, String> {
        let policy: Self = toml::from_str(document).map_err(|error| error.to_string())?;
        match decode_text(b"", &policy.default_charset) {
            Some(_) => Ok(policy),
            None => Err(format!(
                "default-charset: {:?} is not known; use UTF-8, ISO-8859-1, US-ASCII or UTF-16BE",
                policy.default_charset
            )),
        }
    }

    fn read(&self, request: &Request) -> Reading {
        match self.submit(request) {
            Ok(submit) => Reading::Submit(submit),
            Err(why) => Reading::Respond(answer(400, &why)),
        }
    }

    fn reply(&self, request: &Request, outcome: &Outcome) -> Response {
        let results = match outcome {
            Outcome::Refused(refusal) => return refused(refusal),
            Outcome::Results(results) => results,
        };
        let to = Parameters { form: Form::of(request), request }.text("to").unwrap_or_default();
        let mut failed = Vec::new();
        let mut first = None;
        for (result, to) in results.iter().zip(to.split_whitespace()) {
            if let SubmissionResult::Refused(refusal) = result {
                first = first.or(Some(refusal));
                failed.push(to);
            }
        }
        match first {
            None => answer(202, "0: Accepted for delivery"),
            Some(refusal) if failed.len() == results.len() => refused(refusal),
            Some(_) => {
                answer(202, &format!("0: Accepted for delivery. Failed receivers are: {}", failed.join(" ")))
            }
        }
    }
}

switchyard_sdk::export_front_end!(Kannel);

fn answer(status: u16, text: &str) -> Response {
    response(status, "text/html", text)
}

fn refused(refusal: &Refusal) -> Response {
    match refusal.reason {
        RefusalReason::Unauthenticated => answer(403, "Authorization failed for sendsms"),
        RefusalReason::Throttled | RefusalReason::Unavailable | RefusalReason::Internal => {
            answer(503, "Temporal failure, try again later.")
        }
        RefusalReason::Invalid => match refusal.field.as_deref() {
            Some("destination") => answer(400, "Garbage 'to' field, rejected."),
            Some("source") => answer(400, "Sender missing and no global set, rejected"),
            _ => answer(400, &format!("{}, rejected", refusal.detail)),
        },
        _ => answer(403, "Not routable. Do not try again."),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_schema_is_up_to_date() {
        policy_values::schema::assert_up_to_date::<super::Kannel>("kannel-front-end");
    }
}
