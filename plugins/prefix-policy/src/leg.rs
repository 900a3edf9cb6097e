use serde::Deserialize;

/// Maximum length of an address, in octets.
const MAX_ADDRESS_OCTETS: usize = 20;

/// Maximum number of digits of an international number (ITU-T E.164 §6).
const MAX_NUMBER_DIGITS: usize = 15;

/// A leg.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LegRule {
    /// The peer's name.
    #[cfg_attr(test, schemars(extend("x-switchyard" = "peer")))]
    pub peer: String,
    /// Legs of lower ranks are tried first.
    #[serde(default)]
    pub rank: u8,
    /// Share of the messages within the rank.
    #[serde(default = "one")]
    pub weight: u16,
    /// Cost of the message on this leg, in millionths of a currency unit.
    #[serde(default)]
    pub cost: u32,
    /// Maximum wait for this leg before the next one is tried, in milliseconds.
    pub longest_wait_ms: Option<u64>,
    /// Number of digits to remove from the front of the destination, not counting a leading plus sign.
    #[serde(default)]
    #[cfg_attr(test, schemars(range(max = 20)))]
    pub strip: usize,
    /// Digits to put in front of it.
    #[serde(default)]
    #[cfg_attr(test, schemars(regex(pattern = r"^\+?[0-9]*$")))]
    pub add: String,
    /// Type of number of the destination on this leg.
    pub ton: Option<u8>,
    /// Numbering plan of the destination on this leg.
    pub npi: Option<u8>,
    /// The source address to present on this leg.
    pub source: Option<String>,
}

fn one() -> u16 {
    1
}

impl LegRule {
    /// Whether this leg changes the destination.
    #[must_use]
    pub fn rewrites(&self) -> bool {
        self.renumbers() || self.ton.is_some() || self.npi.is_some()
    }

    fn renumbers(&self) -> bool {
        self.strip > 0 || !self.add.is_empty()
    }

    /// The destination address on this leg. If digits are removed or added, a leading plus sign is removed too, because
    /// the number no longer has that form. `None` if the result is empty or too long.
    #[must_use]
    pub fn destination(&self, value: &str) -> Option<String> {
        if !self.renumbers() {
            return Some(value.to_owned());
        }
        let number = value.strip_prefix('+').unwrap_or(value);
        let kept = number.get(self.strip..)?;
        let length = self.add.len() + kept.len();
        (length > 0 && length <= MAX_ADDRESS_OCTETS).then(|| format!("{}{kept}", self.add))
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        let peer = &self.peer;
        if peer.is_empty() {
            return Err("a leg has an empty `peer`".to_owned());
        }
        let digits = self.add.strip_prefix('+').unwrap_or(&self.add);
        if !digits.bytes().all(|octet| octet.is_ascii_digit()) {
            return Err(format!(
                "the leg to {peer:?} has `add = {:?}`: it takes digits, and a plus sign before them",
                self.add
            ));
        }
        // Before a destination is known, assume a full international number.
        let longest = self.add.len() + MAX_NUMBER_DIGITS.saturating_sub(self.strip);
        if longest > MAX_ADDRESS_OCTETS {
            return Err(format!(
                "the leg to {peer:?} would make {longest} octets of a number of {MAX_NUMBER_DIGITS} digits, and an address has at \
                 most {MAX_ADDRESS_OCTETS}: let `add` be shorter or `strip` more"
            ));
        }
        if self.strip > MAX_ADDRESS_OCTETS {
            return Err(format!(
                "the leg to {peer:?} has `strip = {}`: no destination has more than {MAX_ADDRESS_OCTETS} digits",
                self.strip
            ));
        }
        if let Some(source) = &self.source
            && (source.len() > MAX_ADDRESS_OCTETS || source.contains('\0'))
        {
            return Err(format!(
                "the leg to {peer:?} has a `source` of {} octets, or with a NUL: an address has at most {MAX_ADDRESS_OCTETS}",
                source.len()
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(strip: usize, add: &str) -> LegRule {
        LegRule {
            peer: "a".to_owned(),
            rank: 0,
            weight: 1,
            cost: 0,
            longest_wait_ms: None,
            strip,
            add: add.to_owned(),
            ton: None,
            npi: None,
            source: None,
        }
    }

    #[test]
    fn a_plus_sign_is_no_digit() {
        for (strip, add, from, to) in [
            (2, "0", "+8613912345678", Some("013912345678")),
            (2, "0", "8613912345678", Some("013912345678")),
            (0, "00", "+8613912345678", Some("008613912345678")),
            (0, "", "+8613912345678", Some("+8613912345678")),
            (2, "", "+86139", Some("139")),
            (3, "+49", "0049151", Some("+499151")),
            (5, "", "+86139", None),
            (6, "0", "+86139", None),
            (5, "0", "+86139", Some("0")),
            (0, "12345", "123456789012345", Some("12345123456789012345")),
            (0, "12345", "1234567890123456", None),
            (1, "", "é", None),
        ] {
            assert_eq!(rule(strip, add).destination(from).as_deref(), to, "{strip} {add:?} {from:?}");
        }
    }

    #[test]
    fn oversized_addresses_are_refused() {
        rule(0, "12345").check().unwrap();
        rule(3, "12345678").check().unwrap();
        assert!(rule(0, "123456").check().unwrap_err().contains("21 octets"));
        assert!(rule(0, "1+2").check().unwrap_err().contains("takes digits"));
        assert!(rule(21, "").check().unwrap_err().contains("strip = 21"));
        let long = LegRule { source: Some("x".repeat(21)), ..rule(0, "") };
        assert!(long.check().unwrap_err().contains("source"));
    }
}
