//! The URLs that an account may name for DLR pushes, and the addresses to which these may resolve.

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A pattern of URLs: `SCHEME://HOST[:PORT]/PATH`. HOST is a name or an address, `*.DOMAIN`, or `*`; in PATH, which includes the
/// query, `*` matches any octets.
#[derive(Debug, PartialEq, Eq)]
struct UrlPattern<'a> {
    scheme: &'a str,
    host: &'a str,
    port: Option<u16>,
    path: &'a str,
}

impl<'a> UrlPattern<'a> {
    /// Parses a pattern; `None` if the text is not a pattern.
    fn parse(pattern: &'a str) -> Option<Self> {
        let (scheme, rest) = pattern.split_once("://")?;
        let (authority, path) = rest.split_at(rest.find('/')?);
        let (host, port) = match authority.rsplit_once(':') {
            // The colons of an IPv6 address are in brackets.
            Some((host, port)) if !port.ends_with(']') => (host, Some(port.parse().ok()?)),
            _ => (authority, None),
        };
        let name = host.strip_prefix("*.").or_else(|| (host == "*").then_some("any")).unwrap_or(host);
        let is_name = !name.is_empty()
            && name.bytes().all(|c| c.is_ascii_alphanumeric() || b"-._:[]".contains(&c))
            && !name.bytes().any(|c| c.is_ascii_uppercase());
        (matches!(scheme, "http" | "https") && is_name).then_some(Self { scheme, host, port, path })
    }

    fn matches(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        let is_host = match self.host.strip_prefix('*') {
            Some("") => true,
            // The domain with its dot, after at least one octet.
            Some(domain) => host.len() > domain.len() && host.ends_with(domain),
            None => host == self.host,
        };
        let known = if self.scheme == "http" { 80 } else { 443 };
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        url.scheme() == self.scheme
            && is_host
            && url.port_or_known_default() == Some(self.port.unwrap_or(known))
            && url.username().is_empty()
            && url.password().is_none()
            && ports::matches_wildcard(self.path.as_bytes(), path.as_bytes())
    }
}

/// Whether this is a pattern of URLs.
pub(crate) fn is_pattern(pattern: &str) -> bool {
    UrlPattern::parse(pattern).is_some()
}

/// The condition under which a URL is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllowedUrl {
    /// Any address of the host, because the configuration names the host.
    AnyAddress,
    /// Only public addresses of the host.
    PublicAddress,
}

/// The condition under which the patterns allow a URL; `None` if no pattern allows it.
pub(crate) fn allowed(patterns: &[String], url: &Url) -> Option<AllowedUrl> {
    let patterns = patterns.iter().filter_map(|pattern| UrlPattern::parse(pattern));
    let mut matching = patterns.filter(|pattern| pattern.matches(url)).peekable();
    matching.peek()?;
    if matching.any(|pattern| !pattern.host.contains('*')) {
        return Some(AllowedUrl::AnyAddress);
    }
    // Literal addresses are not resolved, so they are checked here.
    let literal = url.host_str().unwrap_or_default().trim_matches(['[', ']']).parse::<IpAddr>();
    literal.map_or(true, is_public).then_some(AllowedUrl::PublicAddress)
}

/// Resolves names to public addresses only.
pub(crate) struct PublicResolver;

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<SocketAddr> = found.filter(|address| is_public(address.ip())).collect();
            if public.is_empty() {
                return Err("the host has no public address".into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

/// Whether an address is reachable over the Internet (IANA special-purpose address registries).
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let octets = address.octets();
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || address.is_multicast()
        || octets[0] == 0
        // Shared address space (RFC 6598), protocol assignments, benchmarks, reserved.
        || octets[0] == 100 && (64..128).contains(&octets[1])
        || octets[..3] == [192, 0, 0]
        || octets[0] == 198 && matches!(octets[1], 18 | 19)
        || octets[0] >= 240)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let groups = address.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match groups {
        // Mapped addresses, NAT64 (RFC 6052) and 6to4 contain an IPv4 address.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        [0x2002, high, low, ..] => embedded(high, low),
        [0x2001, 0xdb8, ..] | [0x2001, 0..=0x1ff, ..] => false,
        // Global unicast.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(patterns: &[&str], url: &str) -> Option<AllowedUrl> {
        let patterns: Vec<String> = patterns.iter().map(|&pattern| pattern.to_owned()).collect();
        assert!(patterns.iter().all(|pattern| is_pattern(pattern)), "{patterns:?}");
        allowed(&patterns, &Url::parse(url).unwrap())
    }

    #[test]
    fn a_url_is_compared_part_by_part() {
        let shop = ["https://shop.example/dlr*", "http://10.0.0.7:8080/*"];
        for yes in ["https://shop.example/dlr?id=7", "https://SHOP.example:443/dlr", "http://10.0.0.7:8080/"]
        {
            assert_eq!(check(&shop, yes), Some(AllowedUrl::AnyAddress), "{yes}");
        }
        for no in [
            "http://shop.example/dlr",
            "https://shop.example/",
            "https://shop.example:8443/dlr",
            "https://shop.example.evil.example/dlr",
            "https://shop.example@evil.example/dlr",
            "https://user@shop.example/dlr",
            "https://shop.example/x/../admin",
            "http://10.0.0.7/",
        ] {
            assert_eq!(check(&shop, no), None, "{no}");
        }
    }

    #[test]
    fn a_wildcard_for_a_host_allows_public_addresses_only() {
        let below = ["https://*.shop.example/*"];
        assert_eq!(check(&below, "https://eu.shop.example/dlr"), Some(AllowedUrl::PublicAddress));
        for no in
            ["https://shop.example/", "https://evilshop.example/", "https://evil.example/.shop.example/"]
        {
            assert_eq!(check(&below, no), None, "{no}");
        }
        let any = ["http://*/*"];
        assert_eq!(check(&any, "http://93.184.216.34/"), Some(AllowedUrl::PublicAddress));
        assert_eq!(check(&any, "http://[2606:2800:220:1::1]/"), Some(AllowedUrl::PublicAddress));
        for no in [
            "http://127.0.0.1/",
            "http://0x7f.1/",
            "http://10.1.2.3/",
            "http://169.254.169.254/latest",
            "http://100.64.0.1/",
            "http://[::1]/",
            "http://[::ffff:10.0.0.1]/",
            "http://[64:ff9b::a00:1]/",
            "http://[2002:a00:1::]/",
            "http://[fd00::1]/",
            "http://[fe80::1]/",
        ] {
            assert_eq!(check(&any, no), None, "{no}");
        }
    }

    #[test]
    fn patterns_have_a_scheme_a_host_and_a_path() {
        for no in [
            "",
            "https://",
            "https://shop.example",
            "ftp://a/",
            "https:///x",
            "https://a*b/",
            "http://u@h/",
            "http://H/",
        ] {
            assert!(!is_pattern(no), "{no}");
        }
        assert!(is_pattern("http://[::1]:8080/*") && is_pattern("https://*/*"));
    }

    #[tokio::test]
    async fn a_private_name_is_not_resolved() {
        let name: Name = "localhost".parse().unwrap();
        let Err(error) = PublicResolver.resolve(name).await else { panic!("resolved") };
        assert_eq!(error.to_string(), "the host has no public address");
    }
}
