//! Kannel's sendsms interface (Kannel User's Guide, "Using SMS services with HTTP-based access"): GET, POST of a form, and POST of
//! the text with X-Kannel headers.
//!
//! `smsc`, `account`, `pid`, `alt-dcs`, `mwi`, `compress`, `binfo` and `meta-data` are ignored: routers choose the peer.
//! `policies/kannel-front-end.toml` is an example of its document.

use serde::Deserialize;
use switchyard_sdk::form::{Form, percent_decode, percent_encode};
use switchyard_sdk::front_end::{
    Coding, Content, Credentials, DlrPush, DlrWords, Outcome, Reading, Refusal, RefusalReason, Request,
    Response, Submission, SubmissionResult, Submit, WantedReceipts, decode_text, header, literal, response,
    submission,
};
use switchyard_sdk::{FrontEnd, clock};

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Kannel {
    /// The character set of `text`, if the request has none.
    #[serde(default = "utf8")]
    default_charset: String,
}

fn utf8() -> String {
    "UTF-8".to_owned()
}

/// Receipts in `dlr-mask`: 1 delivered, 2 not delivered, 4 queued at the SMSC, 8 delivered to the SMSC, 16 refused by it.
const DELIVERED: u32 = 1;
const FAILED: u32 = 2;
const QUEUED: u32 = 4;
const ACCEPTED: u32 = 8;
const REFUSED: u32 = 16;

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

/// Decodes pairs of digits. Other text gives an empty header, which the host refuses.
fn from_hex(text: &str) -> Vec<u8> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let digits = digits.unwrap_or_default();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// The states for which the mask requests a DLR, with their values.
fn words(mask: u32) -> DlrWords {
    let word = |bit: u32| (mask & bit != 0).then(|| bit.to_string());
    let failed = word(FAILED);
    DlrWords {
        enroute: word(QUEUED),
        delivered: word(DELIVERED),
        accepted: word(ACCEPTED),
        rejected: word(REFUSED).or_else(|| failed.clone()),
        expired: failed.clone(),
        deleted: failed.clone(),
        undeliverable: failed.clone(),
        unknown: failed,
    }
}

/// The URL with the host's names in place of Kannel's escapes (User's Guide, "Parameters"). In a DLR, `%p` is the subscriber.
fn dlr_url(url: &str, parameters: &Parameters<'_>) -> String {
    let own = |name: &str| literal(&percent_encode(&parameters.text(name).unwrap_or_default()));
    let mut template = String::with_capacity(url.len() + 32);
    let mut rest = url.chars();
    while let Some(c) = rest.next() {
        if c != '%' {
            template.push_str(&literal(c.encode_utf8(&mut [0; 4])));
            continue;
        }
        match rest.next() {
            Some('d') => template.push_str("{status}"),
            Some('a' | 'A' | 'b') => template.push_str("{receipt}"),
            Some('p' | 'q') => template.push_str("{to}"),
            Some('P' | 'Q') => template.push_str("{from}"),
            Some('t') => template.push_str("{done-time}"),
            Some('T') => template.push_str("{done-seconds}"),
            Some('F') => template.push_str("{peer-id}"),
            Some('I') => template.push_str("{id}"),
            Some('i') => template.push_str(&own("smsc")),
            Some('n') => template.push_str(&own("username")),
            Some('o') => template.push_str(&own("account")),
            Some('D') => template.push_str(&own("meta-data")),
            Some('B') => template.push_str(&own("binfo")),
            Some('%') => template.push('%'),
            Some(other) => template.push_str(&literal(&format!("%{other}"))),
            None => template.push('%'),
        }
    }
    template
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

    /// The submission without its destination, as a model for each one.
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
            receipts: if mask & QUEUED != 0 {
                WantedReceipts::All
            } else if mask & (DELIVERED | ACCEPTED) != 0 {
                WantedReceipts::Final
            } else if mask & (FAILED | REFUSED) != 0 {
                WantedReceipts::Failure
            } else {
                WantedReceipts::None
            },
            dlr_push: parameters.text("dlr-url").filter(|url| mask != 0 && !url.is_empty()).map(|url| {
                DlrPush {
                    url: dlr_url(&url, parameters),
                    body: None,
                    words: words(mask),
                    acknowledgement: None,
                    signature: None,
                }
            }),
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
            Some("dlr-push") => answer(403, "DLR-URL not allowed, rejected"),
            Some("source") => answer(400, "Sender missing and no global set, rejected"),
            _ => answer(400, &format!("{}, rejected", refusal.detail)),
        },
        _ => answer(403, "Not routable. Do not try again."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_a_url_are_names_of_the_host() {
        let request = Request {
            method: "GET".to_owned(),
            path: "/cgi-bin/sendsms".to_owned(),
            query: "username=shop&smsc=a%26b".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
        };
        let parameters = Parameters { form: Form::of(&request), request: &request };
        let url = "http://h/%2f?{x}&d=%d&A=%A&p=%p&P=%P&T=%T&F=%F&I=%I&i=%i&n=%n&z=%z%%%";
        assert_eq!(
            dlr_url(url, &parameters),
            "http://h/%2f?{{x}}&d={status}&A={receipt}&p={to}&P={from}&T={done-seconds}&F={peer-id}&I={id}\
             &i=a%26b&n=shop&z=%z%%"
        );
    }

    #[test]
    fn the_mask_says_which_states_are_reported() {
        let words = words(DELIVERED | FAILED);
        assert_eq!((words.delivered.as_deref(), words.expired.as_deref()), (Some("1"), Some("2")));
        assert_eq!((words.rejected.as_deref(), words.enroute, words.accepted), (Some("2"), None, None));
        let words = super::words(REFUSED | ACCEPTED);
        assert_eq!((words.rejected.as_deref(), words.accepted.as_deref()), (Some("16"), Some("8")));
        assert_eq!(words.delivered, None);
    }

    #[test]
    fn the_schema_is_up_to_date() {
        policy_values::schema::assert_up_to_date::<super::Kannel>("kannel-front-end");
    }
}
