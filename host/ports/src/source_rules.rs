use configuration::{KeyFormat, KeyValue, Keys, Section, Shape};
use model::Address;

/// The source addresses that an account may use.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SourceRules {
    /// Patterns, `*` stands for any octets; empty: any source.
    pub allow: Vec<String>,
    /// The source of submissions without one.
    pub default: Option<Address>,
}

impl SourceRules {
    /// Whether the account may send from `source`.
    #[must_use]
    pub fn allows(&self, source: &[u8]) -> bool {
        self.allow.is_empty() || self.allow.iter().any(|pattern| matches_wildcard(pattern.as_bytes(), source))
    }
}

/// The keys of [`SourceRules`].
#[derive(Clone, Keys)]
struct SourceTable {
    /// Allowed patterns, with `*` as a wildcard.
    #[key(default_as = "all addresses")]
    allow: Vec<String>,
    /// The source address of messages that have none.
    #[key(length = ..=20)]
    default: Option<String>,
    /// The type of number of the default.
    #[key(range = 0..=7, default_as = "0 for digits, otherwise 5")]
    ton: Option<u8>,
    /// The numbering plan of the default.
    #[key(range = 0..=18, default_as = "1 for digits, otherwise 0")]
    npi: Option<u8>,
}

/// The format of [`SourceRules`] in the configuration.
#[derive(Debug, Clone, Copy)]
pub struct SourceKeys;

impl KeyFormat<SourceRules> for SourceKeys {
    fn read(&self, section: &Section<'_>, key: &'static str) -> Option<SourceRules> {
        let table = SourceTable::read_or_empty(section, key);
        let default = table.default.map(|text| {
            let is_number = text.bytes().all(|c| c.is_ascii_digit());
            let (ton, npi) = if is_number { (0, 1) } else { (5, 0) };
            Address::new(table.ton.unwrap_or(ton), table.npi.unwrap_or(npi), text.as_bytes())
        });
        Some(SourceRules { allow: table.allow, default })
    }

    fn shape(&self) -> Shape {
        Shape::Table(SourceTable::keys())
    }
}

/// Whether `value` matches a pattern in which `*` stands for any octets. Iterative: on a mismatch the last `*` takes
/// one octet more.
#[must_use]
pub fn matches_wildcard(pattern: &[u8], value: &[u8]) -> bool {
    let (mut p, mut v) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while v < value.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p, v));
            p += 1;
        } else if pattern.get(p) == value.get(v) {
            p += 1;
            v += 1;
        } else if let Some((at, taken)) = star {
            star = Some((at, taken + 1));
            p = at + 1;
            v = taken + 1;
        } else {
            return false;
        }
    }
    pattern.get(p..).is_some_and(|rest| rest.iter().all(|octet| *octet == b'*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_patterns() {
        let rules = SourceRules { allow: vec!["1065*".into(), "ACME".into(), "*9*7".into()], default: None };
        for yes in ["1065", "10655", "ACME", "97", "19997", "0970007"] {
            assert!(rules.allows(yes.as_bytes()), "{yes}");
        }
        for no in ["106", "ACMEX", "acme", "", "978"] {
            assert!(!rules.allows(no.as_bytes()), "{no}");
        }
        assert!(SourceRules::default().allows(b"anything"));
    }
}
