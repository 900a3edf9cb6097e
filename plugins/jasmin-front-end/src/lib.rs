//! Jasmin's HTTP API, `/send` (docs.jasminsms.com, "HTTP API"): GET, and POST of a form. It answers `Success "ID"` or
//! `Error "REASON"`.
//!
//! `tags` are ignored. `policies/jasmin-front-end.toml` is an example of its document.

use serde::Deserialize;
use switchyard_sdk::FrontEnd;
use switchyard_sdk::form::Form;
use switchyard_sdk::front_end::{
    Coding, Content, Credentials, DlrPush, DlrWords, Outcome, Reading, Refusal, RefusalReason, Request,
    Response, Submission, SubmissionResult, Submit, WantedReceipts, decode_text, literal, response,
    submission,
};

const MANDATORY: &str = "Mandatory arguments not found, please refer to the HTTPAPI specifications.";

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Jasmin {
    /// Validity of a message in seconds, if the request has none.
    validity: Option<u64>,
}

fn number(form: &Form, name: &str, most: u64) -> Result<Option<u64>, String> {
    let Some(text) = form.text(name) else { return Ok(None) };
    let number = text.parse().ok().filter(|number| *number <= most);
    number.map(Some).ok_or_else(|| format!("Argument [{name}] has an invalid value: [{text}]."))
}

/// The content in the data coding of the request, as Jasmin's clients encode it.
fn content(form: &Form, data_coding: u64) -> Result<(Content, Coding), String> {
    let coding = match data_coding {
        0 => Coding::Gsm,
        1 => Coding::Ascii,
        8 => Coding::Ucs2,
        _ => Coding::Binary,
    };
    if let Some(hex) = form.text("hex-content") {
        let octets: Option<Vec<u8>> = hex
            .as_bytes()
            .chunks(2)
            .map(|pair| {
                let digits = std::str::from_utf8(pair).ok().filter(|digits| digits.len() == 2)?;
                u8::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))
            })
            .collect();
        let octets = octets.ok_or_else(|| "Invalid hex-content data".to_owned())?;
        return Ok((Content::Octets(octets), coding));
    }
    let octets = form.octets("content").unwrap_or_default();
    let charset = match data_coding {
        8 => "UTF-16BE",
        3 => "ISO-8859-1",
        0 | 1 => "UTF-8",
        _ => return Ok((Content::Octets(octets.to_vec()), Coding::Binary)),
    };
    let text = decode_text(octets, charset)
        .ok_or_else(|| format!("Argument [content] is not encoded in the coding [{data_coding}]."))?;
    Ok((Content::Text(text), if data_coding == 8 { Coding::Ucs2 } else { Coding::Automatic }))
}

/// A request with the fields of a DLR of level 2 or 3 (docs.jasminsms.com, "Receiving DLR").
fn dlr_push(url: &str, level: u64, is_get: bool) -> DlrPush {
    let fields = format!(
        "id={{id}}&id_smsc={{peer-id}}&message_status={{status}}&level={level}&subdate={{submit-date}}\
         &donedate={{done-date}}&sub={{segments}}&dlvrd={{segments-delivered}}&err={{error}}&text={{text}}"
    );
    let word = |word: &str| Some(word.to_owned());
    let words = DlrWords {
        enroute: None,
        delivered: word("DELIVRD"),
        expired: word("EXPIRED"),
        deleted: word("DELETED"),
        undeliverable: word("UNDELIV"),
        accepted: word("ACCEPTD"),
        unknown: word("UNKNOWN"),
        rejected: word("REJECTD"),
    };
    let (mut url, mut body) = (literal(url), None);
    if is_get {
        let separator = if url.contains('?') { '&' } else { '?' };
        url = format!("{url}{separator}{fields}");
    } else {
        body = Some(fields);
    }
    DlrPush { url, body, words, acknowledgement: word("ACK/Jasmin"), signature: None }
}

impl Jasmin {
    fn submit(&self, form: &Form) -> Result<Submit, String> {
        let (Some(account), Some(password), Some(to)) =
            (form.text("username"), form.text("password"), form.text("to"))
        else {
            return Err(MANDATORY.to_owned());
        };
        if form.octets("content").is_some() == form.octets("hex-content").is_some() {
            return Err("content and hex-content: one of them must be present.".to_owned());
        }
        let data_coding = number(form, "coding", 14)?.unwrap_or_default();
        let (content, coding) = content(form, data_coding)?;
        let priority = number(form, "priority", 3)?.and_then(|priority| u8::try_from(priority).ok());
        let minutes = number(form, "validity-period", u64::MAX / 60)?;
        let level = number(form, "dlr-level", 3)?.unwrap_or(1);
        let dlr_url = form.text("dlr-url").filter(|url| !url.is_empty());
        // Level 1 is the SMSC's acceptance only.
        let wants_dlr = level >= 2 && (dlr_url.is_some() || form.text("dlr").as_deref() == Some("yes"));
        let is_get = match form.text("dlr-method") {
            None => false,
            Some(method) if method.eq_ignore_ascii_case("POST") => false,
            Some(method) if method.eq_ignore_ascii_case("GET") => true,
            Some(method) => return Err(format!("Argument [dlr-method] has an invalid value: [{method}].")),
        };
        let message = Submission {
            source: form.text("from").filter(|from| !from.is_empty()),
            coding,
            priority,
            validity: minutes.filter(|minutes| *minutes > 0).map(|minutes| minutes * 60).or(self.validity),
            receipts: if wants_dlr { WantedReceipts::Final } else { WantedReceipts::None },
            dlr_push: dlr_url.filter(|_| wants_dlr).map(|url| dlr_push(&url, level, is_get)),
            ..submission(to, content)
        };
        let credentials = Credentials { account, password };
        Ok(Submit { credentials, submissions: vec![message], idempotency_key: None })
    }
}

impl FrontEnd for Jasmin {
    fn configure(document: &str) -> Result<Self, String> {
        toml::from_str(document).map_err(|error| error.to_string())
    }

    fn read(&self, request: &Request) -> Reading {
        match self.submit(&Form::of(request)) {
            Ok(submit) => Reading::Submit(submit),
            Err(why) => Reading::Respond(error(400, &why)),
        }
    }

    fn reply(&self, request: &Request, outcome: &Outcome) -> Response {
        let refusal = match outcome {
            Outcome::Refused(refusal) => refusal,
            Outcome::Results(results) => match results.first() {
                Some(SubmissionResult::Accepted(message)) => {
                    return response(200, "text/plain", format!("Success \"{}\"", message.id));
                }
                Some(SubmissionResult::Refused(refusal)) => refusal,
                None => return error(500, "Unknown error"),
            },
        };
        refused(request, refusal)
    }
}

switchyard_sdk::export_front_end!(Jasmin);

fn error(status: u16, why: &str) -> Response {
    response(status, "text/plain", format!("Error \"{}\"", why.replace('"', "'")))
}

fn refused(request: &Request, refusal: &Refusal) -> Response {
    let user = || Form::of(request).text("username").unwrap_or_default();
    match refusal.reason {
        RefusalReason::Unauthenticated => {
            error(403, &format!("Authentication failure for username:{}", user()))
        }
        RefusalReason::Throttled => error(403, "User throughput exceeded"),
        RefusalReason::Unavailable => error(503, &refusal.detail),
        RefusalReason::Internal => error(500, &refusal.detail),
        RefusalReason::NoCredit => error(403, "Cannot charge submit_sm, check your balance"),
        RefusalReason::NoRoute | RefusalReason::InvalidDestination => error(412, "No route found"),
        RefusalReason::Invalid if refusal.field.as_deref() == Some("dlr-push") => {
            error(400, "Argument [dlr-url] is not a URL that this user may name.")
        }
        RefusalReason::Invalid | RefusalReason::KeyReused => error(400, &refusal.detail),
        RefusalReason::InvalidSource | RefusalReason::Prohibited | RefusalReason::NotAuthorised => {
            error(403, &format!("Authorization failed for username [{}] ({}).", user(), refusal.detail))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dlr_is_a_query_or_a_form() {
        let get = dlr_push("https://h/{x}?a=1", 2, true);
        assert!(get.url.starts_with("https://h/{{x}}?a=1&id={id}&"), "{}", get.url);
        assert_eq!((get.body, get.acknowledgement.as_deref()), (None, Some("ACK/Jasmin")));
        let post = dlr_push("https://h/", 3, false);
        assert_eq!(post.url, "https://h/");
        assert!(post.body.is_some_and(|body| body.contains("&message_status={status}&level=3&")));
    }

    #[test]
    fn the_schema_is_up_to_date() {
        policy_values::schema::assert_up_to_date::<super::Jasmin>("jasmin-front-end");
    }
}
