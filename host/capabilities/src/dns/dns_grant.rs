use crate::Error;
use api::DnsGrant;
use std::net::{IpAddr, SocketAddr};

const PORT: u16 = 53;
/// The timeout of a server, in milliseconds.
const TIMEOUT_MS: std::ops::RangeInclusive<u64> = 50..=30_000;
const MAX_SERVERS: usize = 4;
const MAX_ZONES: usize = 32;
/// The longest name, without the dot of the root (RFC 1035 §2.3.4).
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

/// Checks a grant.
///
/// # Errors
/// The key, the mistake, and the valid values.
pub fn check_dns_grant(grant: &DnsGrant) -> Result<(), Error> {
    let fail = |what: String| Err(Error::DnsGrant(what));
    if !(1..=MAX_SERVERS).contains(&grant.servers.len()) {
        return fail(format!("servers has {} entries; it has 1 to {MAX_SERVERS}", grant.servers.len()));
    }
    if let Some(server) = grant.servers.iter().find(|server| parse_server(server).is_none()) {
        return fail(format!(
            "servers has {server:?}; a server is an IP address, with a port if that is not 53: 192.0.2.53 or [2001:db8::53]:5353"
        ));
    }
    if !(1..=MAX_ZONES).contains(&grant.zones.len()) {
        return fail(format!("zones has {} entries; it has 1 to {MAX_ZONES}", grant.zones.len()));
    }
    if let Some(zone) = grant.zones.iter().find(|zone| normalised_name(zone).is_none()) {
        return fail(format!("zones has {zone:?}; a zone is a name like e164.arpa"));
    }
    if !TIMEOUT_MS.contains(&grant.timeout_ms) {
        let (least, most) = (TIMEOUT_MS.start(), TIMEOUT_MS.end());
        return fail(format!("timeout-ms is {}; it is {least} to {most}", grant.timeout_ms));
    }
    Ok(())
}

/// The address of a server.
pub(super) fn parse_server(text: &str) -> Option<SocketAddr> {
    text.parse().ok().or_else(|| Some(SocketAddr::new(text.parse::<IpAddr>().ok()?, PORT)))
}

/// The name in lower case and without the dot of the root; `None` if it is not a valid name.
pub(super) fn normalised_name(name: &str) -> Option<String> {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    let is_label = |label: &str| {
        (1..=MAX_LABEL).contains(&label.len())
            && label.bytes().all(|octet| octet.is_ascii_alphanumeric() || b"-_".contains(&octet))
    };
    (name.len() <= MAX_NAME && name.split('.').all(is_label)).then_some(name)
}

/// Whether a normalised name is in one of the zones.
pub(super) fn is_granted(grant: &DnsGrant, name: &str) -> bool {
    grant.zones.iter().filter_map(|zone| normalised_name(zone)).any(|zone| {
        name.strip_suffix(&*zone).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant() -> DnsGrant {
        DnsGrant {
            servers: vec!["192.0.2.53".to_owned(), "[2001:db8::53]:5353".to_owned()],
            zones: vec!["E164.arpa.".to_owned(), "enum.example".to_owned()],
            ..DnsGrant::default()
        }
    }

    #[test]
    fn a_name_is_granted_by_its_zone() {
        let granted = |name: &str| normalised_name(name).is_some_and(|name| is_granted(&grant(), &name));
        assert!(granted("4.3.2.1.e164.arpa") && granted("1.E164.ARPA.") && granted("enum.example"));
        for foreign in ["e164.arpa.example", "xe164.arpa", "arpa", "", "a..e164.arpa", "a b.e164.arpa"] {
            assert!(!granted(foreign), "{foreign}");
        }
    }

    #[test]
    fn an_invalid_grant_is_refused_with_the_reason() {
        assert!(check_dns_grant(&grant()).is_ok());
        let refused = |change: fn(&mut DnsGrant)| {
            let mut grant = grant();
            change(&mut grant);
            check_dns_grant(&grant).unwrap_err().to_string()
        };
        assert!(refused(|grant| grant.servers.clear()).contains("servers has 0 entries"));
        assert!(refused(|grant| grant.servers[0] = "dns.example".to_owned()).contains("\"dns.example\""));
        assert!(refused(|grant| grant.zones.clear()).contains("zones has 0 entries"));
        assert!(refused(|grant| grant.zones[0] = "*".to_owned()).contains("\"*\""));
        assert!(refused(|grant| grant.timeout_ms = 0).contains("timeout-ms is 0"));
    }
}
