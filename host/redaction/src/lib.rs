//! Redaction rules for numbers in data that leaves the appliance: events, CDR files and the archive.
//!
//! A rule keeps a number, replaces it by a keyed hash, cuts off its last digits, or drops it. The hash depends only on
//! the number and the key; a leading plus sign is ignored. So messages of one number can still be found together. There
//! are few numbers, so a hash without a key could be reversed by trying all of them.
#![forbid(unsafe_code)]

mod number_rule;

use configuration::{Keys, Section};
use hmac::{Hmac, Mac as _};
use model::{Address, NumberDisplay, hex};
use sha2::Sha256;
use std::fmt;
use std::sync::Arc;

pub use number_rule::NumberRule;

/// Minimum length of the key, in octets.
const MIN_KEY: usize = 16;

/// Octets of a hash that are written.
const HASH_OCTETS: usize = 16;

/// Prefix of a hash. A value with this prefix is not hashed again.
const HASH_PREFIX: &str = "hash:";

/// `[redaction]`: settings that all redaction rules share.
#[derive(Clone, PartialEq, Keys)]
#[keys(check = Self::check)]
pub struct RedactionKeys {
    /// The hash key (HMAC-SHA-256), at least 16 characters. A new key changes all hashes.
    #[key(secret, or_file)]
    pub key: String,
}

impl RedactionKeys {
    fn check(&mut self, section: &Section<'_>) {
        if !self.key.is_empty() && self.key.trim().len() < MIN_KEY {
            section.error("key", format!("must have at least {MIN_KEY} characters"));
        }
    }

    /// The hash key; `None` if it is not configured.
    #[must_use]
    pub fn hash_key(&self) -> Option<HashKey> {
        let key = self.key.trim();
        (!key.is_empty()).then(|| HashKey(key.as_bytes().into()))
    }
}

impl fmt::Debug for RedactionKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedactionKeys").finish_non_exhaustive()
    }
}

/// The key of hashes.
#[derive(Clone, PartialEq, Eq)]
pub struct HashKey(Arc<[u8]>);

impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashKey")
    }
}

/// `redact`: the rules of one place.
#[derive(Clone, Debug, Default, PartialEq, Keys)]
pub struct NumberRedaction {
    /// The rule for senders: `keep`, `hash` (needs `key` of `[redaction]`), `cut N` (without the last N characters) or `drop`.
    #[key(default_as = "`keep`; in events and CDR files what `numbers` says")]
    pub source: Option<NumberRule>,
    /// The rule for recipients, likewise.
    #[key(default_as = "`keep`; in events and CDR files what `numbers` says")]
    pub destination: Option<NumberRule>,
    #[key(skip)]
    key: Option<HashKey>,
}

impl NumberRedaction {
    /// Whether numbers are changed.
    #[must_use]
    pub fn is_active(&self) -> bool {
        [self.source, self.destination].into_iter().flatten().any(|rule| rule != NumberRule::Keep)
    }

    /// Sets the hash key.
    ///
    /// # Errors
    /// A rule needs the key, and there is none: the name of the missing configuration key.
    pub fn set_key(&mut self, key: Option<HashKey>) -> Result<(), &'static str> {
        let is_needed = [self.source, self.destination].contains(&Some(NumberRule::Hash));
        self.key = key;
        if is_needed && self.key.is_none() {
            return Err("has the rule \"hash\", which needs `key` or `key-file` of [redaction]");
        }
        Ok(())
    }

    /// A sender in its redacted form; without a rule, in the form `otherwise`.
    #[must_use]
    pub fn source(&self, address: &Address, otherwise: NumberDisplay) -> String {
        self.source_text(&address.text(), otherwise)
    }

    /// A recipient in its redacted form; without a rule, in the form `otherwise`.
    #[must_use]
    pub fn destination(&self, address: &Address, otherwise: NumberDisplay) -> String {
        self.destination_text(&address.text(), otherwise)
    }

    /// As [`source`](Self::source), for a number in text form.
    #[must_use]
    pub fn source_text(&self, number: &str, otherwise: NumberDisplay) -> String {
        self.source.map_or_else(|| otherwise.text(number), |rule| self.apply(rule, number))
    }

    /// As [`destination`](Self::destination), for a number in text form.
    #[must_use]
    pub fn destination_text(&self, number: &str, otherwise: NumberDisplay) -> String {
        self.destination.map_or_else(|| otherwise.text(number), |rule| self.apply(rule, number))
    }

    fn apply(&self, rule: NumberRule, number: &str) -> String {
        match rule {
            NumberRule::Keep => number.to_owned(),
            NumberRule::Drop => String::new(),
            NumberRule::Cut(count) => {
                let keep = number.chars().count().saturating_sub(usize::from(count));
                number.chars().take(keep).collect()
            }
            NumberRule::Hash if number.is_empty() || number.starts_with(HASH_PREFIX) => number.to_owned(),
            NumberRule::Hash => self.key.as_ref().map_or_else(String::new, |key| hash(key, number)),
        }
    }
}

/// The keyed hash of a number.
fn hash(key: &HashKey, number: &str) -> String {
    // HMAC takes keys of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&key.0) else { return String::new() };
    mac.update(number.trim_start_matches('+').as_bytes());
    let octets = mac.finalize().into_bytes();
    format!("{HASH_PREFIX}{}", hex(octets.get(..HASH_OCTETS).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redaction(rule: NumberRule) -> NumberRedaction {
        let key = RedactionKeys { key: "a key of sixteen".to_owned() }.hash_key();
        NumberRedaction { source: Some(rule), destination: None, key }
    }

    #[test]
    fn each_rule_does_what_it_says() {
        let with = |rule, number| redaction(rule).source_text(number, NumberDisplay::Masked);
        assert_eq!(with(NumberRule::Keep, "4917012345678"), "4917012345678");
        assert_eq!(with(NumberRule::Cut(4), "4917012345678"), "491701234");
        assert_eq!(with(NumberRule::Cut(9), "110"), "");
        assert_eq!(with(NumberRule::Drop, "4917012345678"), "");
        let hashed = with(NumberRule::Hash, "4917012345678");
        // printf 4917012345678 | openssl dgst -sha256 -hmac 'a key of sixteen'
        assert_eq!(hashed, format!("hash:{EXPECTED}"));
        assert_eq!(with(NumberRule::Hash, "+4917012345678"), hashed);
        assert_eq!(with(NumberRule::Hash, &hashed), hashed);
        assert_ne!(with(NumberRule::Hash, "4917012345679"), hashed);
        let masked = redaction(NumberRule::Hash).destination_text("4917012345678", NumberDisplay::Masked);
        assert_eq!(masked, "4917*******78", "without a rule");
    }

    /// By OpenSSL, cut to 16 octets.
    const EXPECTED: &str = "b734bc143856e66caf18bba9d6cb658e";

    #[test]
    fn hashes_need_a_key() {
        let mut rules = redaction(NumberRule::Hash);
        assert!(rules.set_key(None).is_err());
        assert_eq!(rules.source_text("4917", NumberDisplay::Whole), "", "nothing leaves without the key");
        assert!(redaction(NumberRule::Cut(2)).set_key(None).is_ok());
    }
}
