//! The document of `hlr-resolver`; `policies/hlr.toml` is a commented example.

use crate::{Answer, Numbers, Resolution, is_imsi};
use policy_values::{Time, check_prefix, digits_of, line, read};
use serde::Deserialize;
use std::time::Duration;

/// Maximum number of digits of a number in the register: an MSISDN has 15.
const MAX_DIGITS: usize = 15;

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Document {
    /// How long the result for a found subscriber is cached. Default: the appliance's time.
    valid: Option<Time>,
    /// How long the result for an unknown number is cached. Default: the appliance's time.
    unknown_valid: Option<Time>,
    /// When to query again after a failure. Default: the appliance's time.
    try_again: Option<Time>,
    /// Numbers with at most this many digits are internal: they are queried unchanged. Default: none.
    #[cfg_attr(test, schemars(with = "Option<usize>", range(min = 1, max = 8)))]
    internal_digits: Option<toml::Spanned<usize>>,
    /// The prefixes of the home network's numbers, in international form. Other numbers are unknown and not queried. Default:
    /// all numbers.
    #[cfg_attr(
        test,
        schemars(with = "Option<Vec<String>>", length(min = 1), inner(regex(pattern = "^[0-9]{1,30}$")))
    )]
    home: Option<Vec<toml::Spanned<String>>>,
    /// The peer that serves all subscribers. Default: the one returned by the HLR, or the one in the configuration.
    #[cfg_attr(test, schemars(with = "Option<String>", extend("x-switchyard" = "peer")))]
    serving: Option<toml::Spanned<String>>,
    /// Conversion of numbers into international form. A plus sign is always removed.
    #[serde(default)]
    numbers: Numbers,
    /// The form of numbers in the HLR, if it is not international.
    #[cfg_attr(test, schemars(with = "Option<HlrNumberForm>"))]
    stored: Option<toml::Spanned<HlrNumberForm>>,
}

/// The form of numbers in the register.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
struct HlrNumberForm {
    /// The prefix to remove; a number without it is not in the HLR.
    strip: String,
    /// The prefix to add in its place.
    add: String,
}

/// The register's reply for a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HlrReply {
    /// The subscriber is known.
    Subscriber {
        /// The IMSI as stored in the register.
        imsi: String,
        /// The peer that serves the subscriber, if the register knows it.
        serving: Option<String>,
    },
    /// The subscriber is unknown.
    Unknown,
    /// The register did not answer.
    Unreachable,
}

/// The checked document.
#[derive(Debug, Clone)]
pub struct Policy {
    numbers: Numbers,
    stored: HlrNumberForm,
    internal_digits: usize,
    home: Option<Vec<String>>,
    serving: Option<String>,
    valid: Option<Duration>,
    unknown_valid: Option<Duration>,
    try_again: Option<Duration>,
}

impl Policy {
    /// Parses and checks a document. All entries are optional.
    ///
    /// # Errors
    /// The mistake, its position, and the correction.
    pub fn parse(text: &str) -> Result<Self, String> {
        let document: Document = read(text)?;
        let at = |span| format!("line {}: ", line(text, span));
        if let Some(home) = &document.home {
            if home.is_empty() {
                return Err("`home` is empty, so that no number would be ours; leave it out, or write how our numbers \
                            begin"
                    .to_owned());
            }
            for prefix in home {
                let at = at(prefix.span());
                match prefix.get_ref().as_str() {
                    "" => {
                        return Err(format!("{at}`home` has \"\", which is every number; leave `home` out"));
                    }
                    digits => check_prefix(digits).map_err(|what| format!("{at}`home`: {what}"))?,
                }
            }
        }
        let stored = match document.stored {
            Some(written) => {
                let at = at(written.span());
                let stored = written.into_inner();
                stored.check().map_err(|what| format!("{at}{what}"))?;
                stored
            }
            None => HlrNumberForm::default(),
        };
        if let Some(length) = &document.internal_digits
            && !(1..=8).contains(length.get_ref())
        {
            return Err(format!(
                "{}`internal-digits` is {}; it is 1 to 8, or is left out",
                at(length.span()),
                length.get_ref()
            ));
        }
        if let Some(peer) = &document.serving
            && peer.get_ref().is_empty()
        {
            return Err(format!("{}`serving` is empty; leave it out, or name a peer", at(peer.span())));
        }
        document.numbers.check()?;
        Ok(Self {
            numbers: document.numbers,
            stored,
            internal_digits: document.internal_digits.map_or(0, toml::Spanned::into_inner),
            home: document.home.map(|home| home.into_iter().map(toml::Spanned::into_inner).collect()),
            serving: document.serving.map(toml::Spanned::into_inner),
            valid: document.valid.map(|time| time.0),
            unknown_valid: document.unknown_valid.map(|time| time.0),
            try_again: document.try_again.map(|time| time.0),
        })
    }

    /// Resolves a number; `ask` queries the register with digits in the register's form.
    pub fn resolve(&self, msisdn: &str, ask: impl FnOnce(&str) -> HlrReply) -> Resolution {
        let number = match self.to_hlr_form(msisdn) {
            Ok(number) => number,
            Err(why) => return self.unknown(why),
        };
        match ask(&number) {
            HlrReply::Subscriber { imsi, serving } if is_imsi(&imsi) => {
                let serving = self.serving.clone().or(serving).filter(|peer| !peer.is_empty());
                let answer = Answer::Found { imsi, serving, valid: self.valid };
                Resolution { answer, note: Some("in the HLR".to_owned()) }
            }
            // An "unknown" for an existing number would lose its messages.
            HlrReply::Subscriber { .. } => self.try_later("the HLR's answer has no IMSI of 6 to 15 digits"),
            HlrReply::Unknown => self.unknown("not in the HLR"),
            HlrReply::Unreachable => self.try_later("no answer from the HLR"),
        }
    }

    /// Converts a number to the register's form, or returns the reason why it cannot exist there.
    fn to_hlr_form(&self, msisdn: &str) -> Result<String, &'static str> {
        let digits = digits_of(msisdn).ok_or("not a number, so not in the HLR")?;
        if digits.len() <= self.internal_digits {
            return Ok(digits.to_owned());
        }
        let number =
            self.numbers.normalize(msisdn).ok_or("not a number of 1 to 15 digits, so not in the HLR")?;
        if let Some(home) = &self.home
            && !home.iter().any(|prefix| number.starts_with(prefix.as_str()))
        {
            return Err("none of our numbers, so the HLR was not asked");
        }
        match number.strip_prefix(self.stored.strip.as_str()) {
            Some(rest) if (1..=MAX_DIGITS).contains(&(rest.len() + self.stored.add.len())) => {
                Ok(format!("{}{rest}", self.stored.add))
            }
            _ => Err("in no form that the HLR has, so it was not asked"),
        }
    }

    fn unknown(&self, note: &str) -> Resolution {
        Resolution { answer: Answer::Unknown(self.unknown_valid), note: Some(note.to_owned()) }
    }

    fn try_later(&self, note: &str) -> Resolution {
        Resolution { answer: Answer::TryLater(self.try_again), note: Some(note.to_owned()) }
    }
}

impl HlrNumberForm {
    fn check(&self) -> Result<(), String> {
        for (key, digits) in [("strip", &self.strip), ("add", &self.add)] {
            if digits.len() > 8 || !digits.bytes().all(|octet| octet.is_ascii_digit()) {
                return Err(format!("[stored] has {key} = {digits:?}; it takes at most 8 digits"));
            }
        }
        if *self == Self::default() {
            return Err("[stored] says nothing; give it `strip` or `add`, or leave it out".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DOCUMENT: &str = "valid = \"1h\"\nunknown-valid = \"1m\"\ntry-again = \"15s\"\ninternal-digits = 4\n\
                            home = [\"1619\", \"1858\"]\n[numbers]\nstrip = [\"011\"]\n[stored]\nstrip = \"1\"\nadd = \"9\"\n";

    fn number_asked(document: &str, msisdn: &str) -> Option<String> {
        let mut number_asked = None;
        let policy = Policy::parse(document).unwrap();
        let resolution = policy.resolve(msisdn, |number| {
            number_asked = Some(number.to_owned());
            HlrReply::Unknown
        });
        assert!(matches!(resolution.answer, Answer::Unknown(_)));
        number_asked
    }

    #[test]
    fn the_schema_is_up_to_date() {
        policy_values::schema::assert_up_to_date::<Document>("hlr-resolver");
    }

    #[test]
    fn the_shipped_document_is_valid() {
        let text = include_str!("../../../policies/hlr.toml");
        Policy::parse(text).unwrap();
        // Including commented-out examples.
        let keys =
            ["# internal", "# home", "# serving", "# [", "# strip", "# add", "# national", "# country"];
        let whole: Vec<&str> = text
            .lines()
            .map(|line| if keys.iter().any(|key| line.starts_with(key)) { &line[2..] } else { line })
            .collect();
        let whole = Policy::parse(&whole.join("\n")).unwrap();
        assert_eq!(whole.serving.as_deref(), Some("gsm"));
        assert_eq!(whole.stored, HlrNumberForm { strip: "1".to_owned(), add: "0".to_owned() });
        assert_eq!((whole.internal_digits, whole.home.map(|home| home.len())), (4, Some(2)));
    }

    #[test]
    fn the_hlr_is_asked_in_its_number_form() {
        for (msisdn, number) in [
            ("16195550123", Some("96195550123")),
            ("+16195550123", Some("96195550123")),
            ("01116195550123", Some("96195550123")),
            ("7001", Some("7001")),
            ("70011", None),
            ("12125550123", None),
            ("4930123456", None),
            ("ACME", None),
            ("", None),
            ("1234567890123456", None),
        ] {
            assert_eq!(number_asked(DOCUMENT, msisdn).as_deref(), number, "{msisdn:?}");
        }
        assert_eq!(number_asked("", "4930123456").as_deref(), Some("4930123456"));
        assert_eq!(number_asked("[stored]\nstrip = \"49\"", "49"), None, "nothing is left of it");
        assert_eq!(number_asked("[stored]\nadd = \"0\"", "123456789012345"), None, "too long with it");
    }

    #[test]
    fn replies_are_converted_to_answers() {
        let policy = Policy::parse(DOCUMENT).unwrap();
        let resolve = |policy: &Policy, reply: HlrReply| policy.resolve("16195550123", |_| reply);
        let subscriber = |imsi: &str, serving: Option<&str>| HlrReply::Subscriber {
            imsi: imsi.to_owned(),
            serving: serving.map(str::to_owned),
        };
        let found = |serving: Option<&str>| Answer::Found {
            imsi: "262011234567890".to_owned(),
            serving: serving.map(str::to_owned),
            valid: Some(Duration::from_secs(3600)),
        };
        let known = subscriber("262011234567890", Some("msc-a"));
        assert_eq!(resolve(&policy, known.clone()).answer, found(Some("msc-a")));
        assert_eq!(resolve(&policy, subscriber("262011234567890", None)).answer, found(None));
        assert_eq!(resolve(&policy, subscriber("262011234567890", Some(""))).answer, found(None));
        let fixed = Policy::parse(&format!("serving = \"gsm\"\n{DOCUMENT}")).unwrap();
        assert_eq!(resolve(&fixed, known).answer, found(Some("gsm")));
        assert_eq!(
            resolve(&policy, HlrReply::Unknown).answer,
            Answer::Unknown(Some(Duration::from_secs(60)))
        );
        let try_later = Answer::TryLater(Some(Duration::from_secs(15)));
        assert_eq!(resolve(&policy, HlrReply::Unreachable).answer, try_later);
        assert_eq!(resolve(&policy, subscriber("nobody", None)).answer, try_later);
    }

    #[test]
    fn errors_name_the_mistake() {
        for (document, expected) in [
            ("ttl = \"1h\"", "unknown field `ttl`"),
            ("valid = 60", "a time in quotes"),
            ("home = []", "leave it out"),
            ("\nhome = [\"\"]", "line 2: `home` has \"\""),
            ("home = [\"+1619\"]", "line 1: `home`: prefix"),
            ("\n\ninternal-digits = 0", "line 3: `internal-digits` is 0"),
            ("serving = \"\"", "line 1: `serving` is empty"),
            ("[stored]\n", "says nothing"),
            ("[stored]\nadd = \"+\"", "at most 8 digits"),
            ("[numbers]\nnational = \"0\"", "together"),
        ] {
            let error = Policy::parse(document).unwrap_err();
            assert!(error.contains(expected), "{document:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn the_hlr_is_asked_for_digits_only(msisdn in "[+0-9a]{0,20}") {
            for document in [DOCUMENT, ""] {
                if let Some(number) = number_asked(document, &msisdn) {
                    prop_assert!((1..=MAX_DIGITS).contains(&number.len()), "{}", number);
                    prop_assert!(number.bytes().all(|octet| octet.is_ascii_digit()));
                }
            }
        }

        #[test]
        fn any_text_is_a_policy_or_refused(
            text in "([\\[\\]{}=\",. \n#a-z0-9]|home|numbers|stored|strip|valid|internal-digits){0,40}",
        ) {
            if let Err(refusal) = Policy::parse(&text) {
                prop_assert!(!refusal.is_empty());
            }
        }
    }
}
