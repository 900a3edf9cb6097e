//! Who may come from where, and under which source addresses.

use std::net::IpAddr;
use std::str::FromStr;

/// A range of addresses, as `10.0.0.0/8` or `::1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

/// Not a network.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "{0:?} is not a network: expected an address with an optional prefix length, such as 10.0.0.0/8 or ::1"
)]
pub struct ParseNetworkError(pub String);

impl FromStr for Network {
    type Err = ParseNetworkError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || ParseNetworkError(text.to_owned());
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            Some(prefix) => prefix.parse().ok().filter(|prefix| *prefix <= longest).ok_or_else(wrong)?,
            None => longest,
        };
        Ok(Self { address, prefix })
    }
}

impl Network {
    /// Whether an address is in it. An IPv4 address that came in over an IPv6 socket counts as IPv4.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(net), IpAddr::V4(address)) => {
                (u32::from(net) ^ u32::from(address)).checked_shr(32 - u32::from(self.prefix)).unwrap_or(0)
                    == 0
            }
            (IpAddr::V6(net), IpAddr::V6(address)) => {
                (u128::from(net) ^ u128::from(address)).checked_shr(128 - u32::from(self.prefix)).unwrap_or(0)
                    == 0
            }
            _ => false,
        }
    }
}

/// Which source addresses an account may use.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SourceRules {
    /// Patterns, `*` standing for any octets; empty: any source.
    pub allow: Vec<String>,
    /// The source of submissions that carry none.
    pub default: Option<model::Address>,
}

impl SourceRules {
    /// Whether the account may send as `source`.
    #[must_use]
    pub fn allows(&self, source: &[u8]) -> bool {
        self.allow.is_empty() || self.allow.iter().any(|pattern| matches(pattern.as_bytes(), source))
    }
}

/// Whether a pattern fits, `*` standing for any octets. Without recursion: on a mismatch the last `*` takes one octet more.
#[must_use]
pub fn matches(pattern: &[u8], value: &[u8]) -> bool {
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
    fn networks_hold_what_they_say() {
        let net: Network = "10.1.0.0/16".parse().unwrap();
        assert!(net.contains("10.1.255.3".parse().unwrap()));
        assert!(!net.contains("10.2.0.1".parse().unwrap()));
        assert!(net.contains("::ffff:10.1.2.3".parse().unwrap()));
        let all: Network = "0.0.0.0/0".parse().unwrap();
        assert!(all.contains("203.0.113.9".parse().unwrap()) && !all.contains("::1".parse().unwrap()));
        let one: Network = "::1".parse().unwrap();
        assert!(one.contains("::1".parse().unwrap()) && !one.contains("::2".parse().unwrap()));
        let six: Network = "2001:db8::/32".parse().unwrap();
        assert!(
            six.contains("2001:db8:1::5".parse().unwrap()) && !six.contains("2001:db9::".parse().unwrap())
        );
        for bad in ["", "10.0.0.0/33", "10.0.0/8", "x", "::/129", "1.2.3.4/-1"] {
            assert!(bad.parse::<Network>().is_err(), "{bad}");
        }
    }

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
