//! The document of `table-resolver`; `policies/subscribers.toml` is a commented example.

use crate::{Answer, Numbers, Resolution, is_imsi};
use policy_values::{Time, read};
use serde::Deserialize;
use std::time::Duration;

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Document {
    /// The lookup table, which the binding must grant. A row's key is the number in international form, its value the IMSI,
    /// optionally with the peer that serves the subscriber: `262011234567890,north`.
    #[cfg_attr(test, schemars(extend("x-switchyard" = "table")))]
    table: String,
    /// How long the result for a found subscriber is cached. Default: the appliance's time.
    valid: Option<Time>,
    /// How long the result for an unknown number is cached. Default: the appliance's time.
    unknown_valid: Option<Time>,
    /// Conversion of numbers into international form. A plus sign is always removed.
    #[serde(default)]
    numbers: Numbers,
}

/// The checked document.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The appliance's table.
    pub table: String,
    /// The form of its numbers.
    pub numbers: Numbers,
    valid: Option<Duration>,
    unknown_valid: Option<Duration>,
}

impl Policy {
    /// Parses and checks a document.
    ///
    /// # Errors
    /// The mistake, its position, and the correction.
    pub fn parse(text: &str) -> Result<Self, String> {
        let document: Document = read(text)?;
        if document.table.is_empty() {
            return Err("`table` is empty; it is to name an appliance table".to_owned());
        }
        document.numbers.check()?;
        Ok(Self {
            table: document.table,
            numbers: document.numbers,
            valid: document.valid.map(|time| time.0),
            unknown_valid: document.unknown_valid.map(|time| time.0),
        })
    }

    /// Resolves a number; `row` returns the table's value for a normalized number.
    pub fn resolve(&self, msisdn: &str, row: impl FnOnce(&str) -> Option<String>) -> Resolution {
        let unknown = |note: &str| Resolution {
            answer: Answer::Unknown(self.unknown_valid),
            note: Some(format!("{note} {}", self.table)),
        };
        let Some(number) = self.numbers.normalize(msisdn) else {
            return unknown("not a number of 1 to 15 digits, so not in table");
        };
        let Some(value) = row(&number) else { return unknown("not in table") };
        let (imsi, serving) = match value.split_once(',') {
            Some((imsi, serving)) => (imsi.trim(), Some(serving.trim())),
            None => (value.trim(), None),
        };
        if !is_imsi(imsi) {
            // The subscriber is known but the row is malformed: an "unknown" would lose the messages.
            let note = Some(format!("the row in table {} has no IMSI of 6 to 15 digits", self.table));
            return Resolution { answer: Answer::TryLater(None), note };
        }
        let serving = serving.filter(|peer| !peer.is_empty()).map(str::to_owned);
        let answer = Answer::Found { imsi: imsi.to_owned(), serving, valid: self.valid };
        Resolution { answer, note: Some(format!("in table {}", self.table)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DOCUMENT: &str =
        "table = \"hlr\"\nvalid = \"1h\"\nunknown-valid = \"5m\"\n[numbers]\nstrip = [\"00\"]\n";

    fn resolve(msisdn: &str, row: Option<&str>) -> Answer {
        Policy::parse(DOCUMENT).unwrap().resolve(msisdn, |_| row.map(str::to_owned)).answer
    }

    #[test]
    fn the_schema_is_up_to_date() {
        policy_values::schema::assert_up_to_date::<Document>("table-resolver");
    }

    #[test]
    fn the_shipped_document_is_valid() {
        Policy::parse(include_str!("../../../policies/subscribers.toml")).unwrap();
    }

    #[test]
    fn rows_name_the_subscriber_and_optionally_the_peer() {
        let found = |serving: Option<&str>| Answer::Found {
            imsi: "262011234567890".to_owned(),
            serving: serving.map(str::to_owned),
            valid: Some(Duration::from_secs(3600)),
        };
        assert_eq!(resolve("49151", Some("262011234567890")), found(None));
        assert_eq!(resolve("49151", Some("262011234567890, north")), found(Some("north")));
        assert_eq!(resolve("49151", Some("262011234567890,")), found(None));
        assert_eq!(resolve("49151", None), Answer::Unknown(Some(Duration::from_secs(300))));
        assert_eq!(resolve("ACME", Some("262011234567890")), Answer::Unknown(Some(Duration::from_secs(300))));
        for broken in ["", "12345", "1234567890123456", "north", "26201x234567890"] {
            assert_eq!(resolve("49151", Some(broken)), Answer::TryLater(None), "{broken:?}");
        }
    }

    #[test]
    fn the_number_is_looked_up_normalized() {
        let policy = Policy::parse(DOCUMENT).unwrap();
        let mut number_asked = String::new();
        policy.resolve("0049151", |number| {
            number.clone_into(&mut number_asked);
            None
        });
        assert_eq!(number_asked, "49151");
    }

    #[test]
    fn errors_name_the_mistake() {
        for (document, expected) in [
            ("", "missing field `table`"),
            ("table = \"\"", "is empty"),
            ("table = \"t\"\nttl = \"1h\"", "unknown field `ttl`"),
            ("table = \"t\"\nvalid = 60", "a time in quotes"),
            ("table = \"t\"\n[numbers]\nnational = \"0\"", "together"),
        ] {
            let error = Policy::parse(document).unwrap_err();
            assert!(error.contains(expected), "{document:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_row_gives_a_digit_imsi(value in ".{0,40}") {
            if let Answer::Found { imsi, .. } = resolve("49151", Some(&value)) {
                prop_assert!(is_imsi(&imsi));
            }
        }

        #[test]
        fn any_text_is_a_policy_or_refused(text in "([\\[\\]{}=\",. \n#a-z0-9]|table|numbers|strip|valid){0,40}") {
            if let Err(refusal) = Policy::parse(&text) {
                prop_assert!(!refusal.is_empty());
            }
        }
    }
}
