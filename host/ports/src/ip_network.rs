use configuration::{KeyItem, Section, Shape};
use serde_json::json;
use std::net::IpAddr;
use std::str::FromStr;

/// A range of IP addresses, such as `10.0.0.0/8` or `::1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpNetwork {
    address: IpAddr,
    prefix: u8,
}

/// The text is no network.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "{0:?} is not a network: expected an address with an optional prefix length, such as 10.0.0.0/8 or ::1"
)]
pub struct ParseIpNetworkError(pub String);

impl KeyItem for IpNetwork {
    fn read_list(section: &Section<'_>, key: &'static str) -> Option<Vec<Self>> {
        section.items(key, |text| text.parse().map_err(|error: ParseIpNetworkError| error.to_string()))
    }

    fn list_shape() -> Shape {
        let schema = json!({ "type": "string", "examples": ["10.0.0.0/8", "::1"] });
        Shape::List(Box::new(Shape::Value("network", schema)))
    }
}

impl FromStr for IpNetwork {
    type Err = ParseIpNetworkError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || ParseIpNetworkError(text.to_owned());
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

impl IpNetwork {
    /// Whether an address is in the network. An IPv4-mapped IPv6 address counts as IPv4.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_contain_their_addresses() {
        let net: IpNetwork = "10.1.0.0/16".parse().unwrap();
        assert!(net.contains("10.1.255.3".parse().unwrap()));
        assert!(!net.contains("10.2.0.1".parse().unwrap()));
        assert!(net.contains("::ffff:10.1.2.3".parse().unwrap()));
        let all: IpNetwork = "0.0.0.0/0".parse().unwrap();
        assert!(all.contains("203.0.113.9".parse().unwrap()) && !all.contains("::1".parse().unwrap()));
        let one: IpNetwork = "::1".parse().unwrap();
        assert!(one.contains("::1".parse().unwrap()) && !one.contains("::2".parse().unwrap()));
        let six: IpNetwork = "2001:db8::/32".parse().unwrap();
        assert!(
            six.contains("2001:db8:1::5".parse().unwrap()) && !six.contains("2001:db9::".parse().unwrap())
        );
        for bad in ["", "10.0.0.0/33", "10.0.0/8", "x", "::/129", "1.2.3.4/-1"] {
            assert!(bad.parse::<IpNetwork>().is_err(), "{bad}");
        }
    }
}
