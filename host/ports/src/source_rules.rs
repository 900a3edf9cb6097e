/// The source addresses that an account may use.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SourceRules {
    /// Patterns, `*` stands for any octets; empty: any source.
    pub allow: Vec<String>,
    /// The source of submissions without one.
    pub default: Option<model::Address>,
}

impl SourceRules {
    /// Whether the account may send from `source`.
    #[must_use]
    pub fn allows(&self, source: &[u8]) -> bool {
        self.allow.is_empty() || self.allow.iter().any(|pattern| matches_wildcard(pattern.as_bytes(), source))
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
