//! The document of `hlr-resolver`; `policies/hlr.toml` explains it by example.

use crate::{Answer, Numbers, Resolution, is_imsi};
use policy_words::{Time, check_prefix, digits_of, line, read};
use serde::Deserialize;
use std::time::Duration;

/// The most digits of a number in the register: an MSISDN has 15.
const LONGEST: usize = 15;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Document {
    valid: Option<Time>,
    unknown_valid: Option<Time>,
    try_again: Option<Time>,
    internal_digits: Option<toml::Spanned<usize>>,
    home: Option<Vec<toml::Spanned<String>>>,
    serving: Option<toml::Spanned<String>>,
    #[serde(default)]
    numbers: Numbers,
    stored: Option<toml::Spanned<Stored>>,
}

/// How the register has numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Stored {
    /// What is taken off.
    strip: String,
    /// What is put in front then.
    add: String,
}

/// What the register says of a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// It has it.
    Subscriber {
        /// Whose it is, as the register has it.
        imsi: String,
        /// The peer that serves the subscriber, where the register knows.
        serving: Option<String>,
    },
    /// It has it not.
    Unknown,
    /// It says nothing.
    Unreachable,
}

/// The document, checked.
#[derive(Debug, Clone)]
pub struct Policy {
    numbers: Numbers,
    stored: Stored,
    internal_digits: usize,
    home: Option<Vec<String>>,
    serving: Option<String>,
    valid: Option<Duration>,
    unknown_valid: Option<Duration>,
    try_again: Option<Duration>,
}

impl Policy {
    /// Reads and checks a document. Everything in it may be left out.
    ///
    /// # Errors
    /// What is wrong, where, and what would be right.
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
            None => Stored::default(),
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

    /// Finds the subscriber behind a number; `ask` is the register's answer to digits as it has them.
    pub fn resolve(&self, msisdn: &str, ask: impl FnOnce(&str) -> Reply) -> Resolution {
        let number = match self.as_stored(msisdn) {
            Ok(number) => number,
            Err(why) => return self.unknown(why),
        };
        match ask(&number) {
            Reply::Subscriber { imsi, serving } if is_imsi(&imsi) => {
                let serving = self.serving.clone().or(serving).filter(|peer| !peer.is_empty());
                let answer = Answer::Found { imsi, serving, valid: self.valid };
                Resolution { answer, note: Some("in the HLR".to_owned()) }
            }
            // To say "unknown" of a number that is there would lose its messages.
            Reply::Subscriber { .. } => self.later("the HLR's answer has no IMSI of 6 to 15 digits"),
            Reply::Unknown => self.unknown("not in the HLR"),
            Reply::Unreachable => self.later("no answer from the HLR"),
        }
    }

    /// The number as the register has it, or why it cannot be there.
    fn as_stored(&self, msisdn: &str) -> Result<String, &'static str> {
        let digits = digits_of(msisdn).ok_or("not a number, so not in the HLR")?;
        if digits.len() <= self.internal_digits {
            return Ok(digits.to_owned());
        }
        let number =
            self.numbers.normal(msisdn).ok_or("not a number of 1 to 15 digits, so not in the HLR")?;
        if let Some(home) = &self.home
            && !home.iter().any(|prefix| number.starts_with(prefix.as_str()))
        {
            return Err("none of our numbers, so the HLR was not asked");
        }
        match number.strip_prefix(self.stored.strip.as_str()) {
            Some(rest) if (1..=LONGEST).contains(&(rest.len() + self.stored.add.len())) => {
                Ok(format!("{}{rest}", self.stored.add))
            }
            _ => Err("in no form that the HLR has, so it was not asked"),
        }
    }

    fn unknown(&self, note: &str) -> Resolution {
        Resolution { answer: Answer::Unknown(self.unknown_valid), note: Some(note.to_owned()) }
    }

    fn later(&self, note: &str) -> Resolution {
        Resolution { answer: Answer::TryLater(self.try_again), note: Some(note.to_owned()) }
    }
}

impl Stored {
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

    fn asked(document: &str, msisdn: &str) -> Option<String> {
        let mut asked = None;
        let policy = Policy::parse(document).unwrap();
        let resolution = policy.resolve(msisdn, |number| {
            asked = Some(number.to_owned());
            Reply::Unknown
        });
        assert!(matches!(resolution.answer, Answer::Unknown(_)));
        asked
    }

    #[test]
    fn the_shipped_document_is_right() {
        let text = include_str!("../../../policies/hlr.toml");
        Policy::parse(text).unwrap();
        // With what is in comments, too.
        let keys =
            ["# internal", "# home", "# serving", "# [", "# strip", "# add", "# national", "# country"];
        let whole: Vec<&str> = text
            .lines()
            .map(|line| if keys.iter().any(|key| line.starts_with(key)) { &line[2..] } else { line })
            .collect();
        let whole = Policy::parse(&whole.join("\n")).unwrap();
        assert_eq!(whole.serving.as_deref(), Some("gsm"));
        assert_eq!(whole.stored, Stored { strip: "1".to_owned(), add: "0".to_owned() });
        assert_eq!((whole.internal_digits, whole.home.map(|home| home.len())), (4, Some(2)));
    }

    #[test]
    fn the_register_is_asked_for_what_it_has() {
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
            assert_eq!(asked(DOCUMENT, msisdn).as_deref(), number, "{msisdn:?}");
        }
        assert_eq!(asked("", "4930123456").as_deref(), Some("4930123456"));
        assert_eq!(asked("[stored]\nstrip = \"49\"", "49"), None, "nothing is left of it");
        assert_eq!(asked("[stored]\nadd = \"0\"", "123456789012345"), None, "too long with it");
    }

    #[test]
    fn replies_come_to_answers() {
        let policy = Policy::parse(DOCUMENT).unwrap();
        let resolve = |policy: &Policy, reply: Reply| policy.resolve("16195550123", |_| reply);
        let subscriber = |imsi: &str, serving: Option<&str>| Reply::Subscriber {
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
        assert_eq!(resolve(&policy, Reply::Unknown).answer, Answer::Unknown(Some(Duration::from_secs(60))));
        let later = Answer::TryLater(Some(Duration::from_secs(15)));
        assert_eq!(resolve(&policy, Reply::Unreachable).answer, later);
        assert_eq!(resolve(&policy, subscriber("nobody", None)).answer, later);
    }

    #[test]
    fn refusals_say_what() {
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
        fn the_register_is_asked_for_digits(msisdn in "[+0-9a]{0,20}") {
            for document in [DOCUMENT, ""] {
                if let Some(number) = asked(document, &msisdn) {
                    prop_assert!((1..=LONGEST).contains(&number.len()), "{}", number);
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
