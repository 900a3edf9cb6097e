//! What the configuration says about its machine, for `switchyard doctor`.

use crate::config::http::Lock;
use crate::config::{Config, ConfigError};
use cli::Facts;
use std::net::SocketAddr;
use std::path::Path;

/// Reads a file over; what is wrong with it, a line each.
pub(crate) fn facts(path: &Path) -> Result<Facts, String> {
    let config = Config::load(path).map_err(|error: ConfigError| error.to_string())?;
    let mut listens = vec![("http".to_owned(), config.http)];
    for listener in &config.listeners {
        listens.push((listener.name.clone(), listener.listen));
    }
    for listener in &config.sgip_listeners {
        listens.push((listener.name.clone(), listener.listen));
    }
    listens.extend(config.business.iter().map(|door| ("business".to_owned(), door.listen)));
    if let Some(door) = &config.redis {
        listens.extend(door.listen.iter().map(|address| ("redis".to_owned(), *address)));
    }
    for network in &config.networks {
        if let gsm::Role::Proxy { listen, .. } = &network.links.role {
            listens.push((network.links.name.clone(), *listen));
        }
    }
    let scheme = if config.http_lock == Lock::Open { "http" } else { "https" };
    let summary = match crate::configuring::what_counts(path) {
        Ok(counts) => format!("{}; {counts}", config.summary()),
        // A daemon that runs has the file of the versions; it is the one to ask.
        Err(_) => config.summary(),
    };
    Ok(Facts {
        summary,
        data: config.data.clone(),
        token_file: config.token_file.clone(),
        watermark: config.watermark,
        listens,
        connections: config.connections(),
        url: format!("{scheme}://{}", reached_at(config.http)),
        archive: config.archive.url.as_deref().and_then(place),
    })
}

/// Where a listener is asked that listens at all addresses.
fn reached_at(mut listen: SocketAddr) -> SocketAddr {
    if listen.ip().is_unspecified() {
        listen.set_ip(if listen.is_ipv4() {
            std::net::Ipv4Addr::LOCALHOST.into()
        } else {
            std::net::Ipv6Addr::LOCALHOST.into()
        });
    }
    listen
}

/// Host and port of a data base's URL; nothing where it is a file.
fn place(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let port = match scheme {
        "mysql" | "mariadb" => 3306,
        "postgres" | "postgresql" => 5432,
        _ => return None,
    };
    let authority = rest.split(['/', '?']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    // The colons of an IPv6 address stand in brackets.
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
    match host {
        "" => None,
        host if has_port => Some(host.to_owned()),
        host => Some(format!("{host}:{port}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_base_is_at_its_host_and_port() {
        for (url, wanted) in [
            ("sqlite:/var/lib/archive.db", None),
            ("mysql://sms:pa@ss@db.example/archive", Some("db.example:3306")),
            ("mariadb://db:3307/archive?x=1", Some("db:3307")),
            ("postgres://u:p@[::1]/a", Some("[::1]:5432")),
            ("postgresql://[::1]:9/a", Some("[::1]:9")),
            ("postgres:///a", None),
        ] {
            assert_eq!(place(url).as_deref(), wanted, "{url}");
        }
    }

    #[test]
    fn what_listens_everywhere_is_asked_here() {
        let at = |text: &str| reached_at(text.parse().unwrap()).to_string();
        assert_eq!((at("0.0.0.0:80"), at("[::]:80")), ("127.0.0.1:80".to_owned(), "[::1]:80".to_owned()));
        assert_eq!(at("10.0.0.1:80"), "10.0.0.1:80");
    }
}
