use serde::Deserialize;

/// Octets that an address has at most.
const ADDRESS: usize = 20;

/// Digits that an international number has at most (ITU-T E.164 §6).
const NUMBER: usize = 15;

/// One leg.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LegRule {
    /// The peer's name.
    pub peer: String,
    /// Lower ranks first.
    #[serde(default)]
    pub rank: u8,
    /// Share within the rank.
    #[serde(default = "one")]
    pub weight: u16,
    /// In millionths.
    #[serde(default)]
    pub cost: u32,
    /// Milliseconds to wait for this leg before the next.
    pub longest_wait_ms: Option<u64>,
    /// Digits taken off the front of the destination; a leading plus sign is not one of them.
    #[serde(default)]
    pub strip: usize,
    /// Digits put in front of it.
    #[serde(default)]
    pub add: String,
    /// Type of number of the destination on this leg.
    pub ton: Option<u8>,
    /// Numbering plan of the destination on this leg.
    pub npi: Option<u8>,
    /// The source to show on this leg.
    pub source: Option<String>,
}

fn one() -> u16 {
    1
}

impl LegRule {
    /// Whether the destination is another one on this leg.
    #[must_use]
    pub fn rewrites(&self) -> bool {
        self.renumbers() || self.ton.is_some() || self.npi.is_some()
    }

    fn renumbers(&self) -> bool {
        self.strip > 0 || !self.add.is_empty()
    }

    /// The destination to use on this leg. Where digits are taken off or put in front, a leading plus sign goes: it stands
    /// for a form that the number no longer has. `None` when nothing would be left of it, or more than fits.
    #[must_use]
    pub fn destination(&self, value: &str) -> Option<String> {
        if !self.renumbers() {
            return Some(value.to_owned());
        }
        let number = value.strip_prefix('+').unwrap_or(value);
        let kept = number.get(self.strip..)?;
        let length = self.add.len() + kept.len();
        (length > 0 && length <= ADDRESS).then(|| format!("{}{kept}", self.add))
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
        // What is known of a destination before it comes: it may be a full international number.
        let longest = self.add.len() + NUMBER.saturating_sub(self.strip);
        if longest > ADDRESS {
            return Err(format!(
                "the leg to {peer:?} would make {longest} octets of a number of {NUMBER} digits, and an address has at \
                 most {ADDRESS}: let `add` be shorter or `strip` more"
            ));
        }
        if self.strip > ADDRESS {
            return Err(format!(
                "the leg to {peer:?} has `strip = {}`: no destination has more than {ADDRESS} digits",
                self.strip
            ));
        }
        if let Some(source) = &self.source
            && (source.len() > ADDRESS || source.contains('\0'))
        {
            return Err(format!(
                "the leg to {peer:?} has a `source` of {} octets, or with a NUL: an address has at most {ADDRESS}",
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
    fn what_cannot_fit_is_refused() {
        rule(0, "12345").check().unwrap();
        rule(3, "12345678").check().unwrap();
        assert!(rule(0, "123456").check().unwrap_err().contains("21 octets"));
        assert!(rule(0, "1+2").check().unwrap_err().contains("takes digits"));
        assert!(rule(21, "").check().unwrap_err().contains("strip = 21"));
        let long = LegRule { source: Some("x".repeat(21)), ..rule(0, "") };
        assert!(long.check().unwrap_err().contains("source"));
    }
}
