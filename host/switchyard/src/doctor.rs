//! Facts from the configuration for `switchyard doctor`.

use crate::config::HttpTlsMode;
use crate::config::{Config, ConfigError};
use crate::restore::STORE;
use crate::text_encryption::key_file;
use cli::ConfigFacts;
use journal::{JournalError, JournalReader};
use std::net::SocketAddr;
use std::path::Path;
use text_keys::{RootKey, TextKeys};

/// Validates a configuration file and extracts the facts. Returns the problems, one per line, if it is invalid.
pub(crate) fn config_facts(path: &Path) -> Result<ConfigFacts, String> {
    let config = Config::load(path).map_err(|error: ConfigError| error.to_string())?;
    let mut listens = vec![("http".to_owned(), config.http.listen)];
    for listener in &config.listeners {
        listens.push((listener.name().to_owned(), listener.listen()));
    }
    listens.extend(config.business.iter().map(|listener| ("business".to_owned(), listener.listen)));
    if let Some(listener) = &config.redis {
        listens.extend(listener.listen.iter().map(|address| ("redis".to_owned(), *address)));
    }
    for network in &config.networks {
        if network.links.role == gsm::GsmRole::Proxy {
            listens.push((network.links.name.clone(), network.links.listen));
        }
    }
    let scheme = if config.http.tls() == HttpTlsMode::Plaintext { "http" } else { "https" };
    let summary = match crate::config_manager::describe_next_start(path) {
        Ok(counts) => format!("{}; {counts}", config.summary()),
        // A running daemon has the version store open; ask the daemon instead.
        Err(_) => config.summary(),
    };
    Ok(ConfigFacts {
        summary,
        data: config.appliance.data.clone(),
        token_file: config.token_file(),
        free_space_watermark: config.appliance.free_space_watermark,
        listens,
        connections: config.connections(),
        url: format!("{scheme}://{}", local_address(config.http.listen)),
        archive: config.archive.url.as_deref().and_then(database_address),
        journal: journal(&config.appliance.data),
        tables: tables(&config.appliance.data),
        text_keys: text_keys(&config),
    })
}

/// Describes the journal of a data directory.
fn journal(data: &Path) -> Option<Result<String, String>> {
    match JournalReader::open(&store::journal_path(&data.join(STORE))) {
        Ok(reader) => {
            let (oldest, newest) = (reader.oldest(), reader.head().seq);
            Some(Ok(format!("the journal has the records {oldest} to {newest}")))
        }
        Err(JournalError::NotFound(_)) => None,
        Err(error) => Some(Err(error.to_string())),
    }
}

/// Checks the tables of a data directory, unless the daemon uses them.
fn tables(data: &Path) -> Option<Result<String, String>> {
    let path = data.join(STORE);
    if !path.exists() {
        return None;
    }
    match store::is_in_use(&path) {
        Ok(true) => Some(Ok("in use; all pages are checked while the appliance is stopped".to_owned())),
        Ok(false) => Some(
            store::verify(&path)
                .map(|()| "all pages match their checksums".to_owned())
                .map_err(|error| error.to_string()),
        ),
        Err(error) => Some(Err(format!("{} cannot be read: {error}", path.display()))),
    }
}

/// Checks the root key and the keys of texts.
fn text_keys(config: &Config) -> Option<Result<String, String>> {
    let root = config.privacy.root_key_file.as_deref()?;
    let path = key_file(&config.appliance.data);
    let keys = RootKey::read(root).and_then(|root| TextKeys::read(&path, root));
    let exists = path.metadata().is_ok_and(|found| found.len() > 0);
    Some(match keys {
        Ok(keys) if exists => Ok(format!("{} keys of texts in {}", keys.len(), path.display())),
        Ok(_) => Ok(format!("{} is created with the first text", path.display())),
        Err(error) => Err(error.to_string()),
    })
}

/// The local address of a listener that is bound to the wildcard address.
fn local_address(mut listen: SocketAddr) -> SocketAddr {
    if listen.ip().is_unspecified() {
        listen.set_ip(if listen.is_ipv4() {
            std::net::Ipv4Addr::LOCALHOST.into()
        } else {
            std::net::Ipv6Addr::LOCALHOST.into()
        });
    }
    listen
}

/// Host and port of a database URL; `None` for a file.
fn database_address(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let port = match scheme {
        "mysql" | "mariadb" => 3306,
        "postgres" | "postgresql" => 5432,
        _ => return None,
    };
    let authority = rest.split(['/', '?']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    // IPv6 addresses have their colons in brackets.
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
    fn parses_database_addresses() {
        for (url, wanted) in [
            ("sqlite:/var/lib/archive.db", None),
            ("mysql://sms:pa@ss@db.example/archive", Some("db.example:3306")),
            ("mariadb://db:3307/archive?x=1", Some("db:3307")),
            ("postgres://u:p@[::1]/a", Some("[::1]:5432")),
            ("postgresql://[::1]:9/a", Some("[::1]:9")),
            ("postgres:///a", None),
        ] {
            assert_eq!(database_address(url).as_deref(), wanted, "{url}");
        }
    }

    #[test]
    fn wildcard_addresses_become_loopback() {
        let at = |text: &str| local_address(text.parse().unwrap()).to_string();
        assert_eq!((at("0.0.0.0:80"), at("[::]:80")), ("127.0.0.1:80".to_owned(), "[::1]:80".to_owned()));
        assert_eq!(at("10.0.0.1:80"), "10.0.0.1:80");
    }
}
