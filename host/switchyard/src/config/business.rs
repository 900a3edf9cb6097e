//! `[business]`, `[account.business]`, `[archive]` and `[[opt-out]]`.

use super::http::{self, Lock};
use super::{UNNUMBERED, secret, small_file};
use crate::opt_out::Keywords;
use business::{AccountOptions, BusinessOptions, PushFormat, PushOptions};
use configuration::Section;
use doors::HttpLimits;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// The door of business systems.
#[derive(Debug, Clone)]
pub(crate) struct Door {
    pub(crate) listen: SocketAddr,
    pub(crate) options: BusinessOptions,
    pub(crate) lock: Lock,
    pub(crate) limits: HttpLimits,
}

pub(super) fn door(section: &Section<'_>, base: &Path) -> Door {
    let text = section.required("listen", "\"127.0.0.1:8081\"");
    let listen = text.parse().unwrap_or_else(|_| {
        if !text.is_empty() {
            let allowed = "address:port such as \"127.0.0.1:8081\"";
            section.unfit("listen", format!("is {text:?}"), allowed);
        }
        SocketAddr::from(([127, 0, 0, 1], 0))
    });
    let defaults = BusinessOptions::default();
    let options = BusinessOptions {
        request_limit: section.size("request-limit", defaults.request_limit as u64) as usize,
        patience: section.duration("patience", defaults.patience),
        ..defaults
    };
    let lock = http::tls(section, base);
    let limits = http::limits(section, HttpLimits::new(2_000, 500), 0);
    section.finish();
    Door { listen, options, lock, limits }
}

/// What an account's calls and pushes have of their own; the rest is the account's.
pub(super) fn account(section: &Section<'_>, links: &links::AccountOptions, base: &Path) -> AccountOptions {
    let defaults = AccountOptions::new(&links.name, UNNUMBERED, &links.password_hash);
    let push = section.has("push").then(|| {
        let push = section.section("push");
        let url = push.required("url", "\"https://shop.example/sms\"");
        let options = PushOptions {
            url,
            format: push.choice(
                "format",
                PushFormat::Json,
                &[("json", PushFormat::Json), ("xml-rpc", PushFormat::XmlRpc)],
            ),
            secret: secret(&push, "secret", "secret-file", base),
            window: push.number("window", 1, 1..=1000) as usize,
            timeout: push.duration("timeout", Duration::from_secs(10)),
        };
        if options.secret.is_empty() {
            push.wrong("secret", "is missing; pushes are signed with it");
        }
        if !options.url.is_empty() && !options.has_url() {
            push.wrong("url", "must be an http or https URL");
        }
        push.finish();
        options
    });
    let options = AccountOptions {
        networks: links.networks.clone(),
        rate: links.rate,
        burst: links.burst,
        source: links.source.clone(),
        validity: links.validity,
        parts: section.number("parts", defaults.parts as u64, 1..=255) as usize,
        batch: section.number("batch", defaults.batch as u64, 1..=60_000) as usize,
        lease: section.duration("lease", defaults.lease),
        push,
        ..defaults
    };
    section.finish();
    options
}

/// Where finished messages go.
#[derive(Debug, Clone)]
pub(crate) struct Archive {
    /// `None`: they stay in the store until they are old.
    pub(crate) url: Option<String>,
    pub(crate) options: archive::Options,
}

pub(super) fn archive(section: &Section<'_>, base: &Path, data: &Path) -> Archive {
    let embedded = || format!("sqlite:{}", data.join("archive.db").display());
    let url = match (section.text("url"), section.text("url-file")) {
        (Some(_), Some(_)) => {
            section.wrong("url-file", "stands beside url; keep one of them");
            None
        }
        (Some(url), None) if url == "none" => None,
        (Some(url), None) => match url.strip_prefix("sqlite:") {
            // Relative to the data directory, as everything that the appliance writes.
            Some(path) if !path.starts_with("//") => Some(format!("sqlite:{}", data.join(path).display())),
            _ => Some(url),
        },
        (None, Some(file)) => match small_file(&base.join(&file)) {
            Ok(url) => Some(url.trim().to_owned()),
            Err(error) => {
                section.wrong("url-file", format!("{file}: {error}"));
                None
            }
        },
        (None, None) => Some(embedded()),
    };
    let defaults = archive::Options::default();
    let options = archive::Options {
        batch: section.number("batch", defaults.batch as u64, 1..=100_000) as usize,
        linger: section.duration("linger", defaults.linger),
        keep: section.has("keep").then(|| section.duration("keep", Duration::from_secs(90 * 86_400))),
        ..defaults
    };
    if let Some(url) = &url
        && let Err(error) = archive::Archive::open(url, options.clone())
    {
        let key = if section.has("url-file") { "url-file" } else { "url" };
        section.wrong(key, error.to_string());
    }
    section.finish();
    Archive { url, options }
}

pub(super) fn opt_out(section: &Section<'_>) -> Keywords {
    let keywords = Keywords {
        language: section.text("language").unwrap_or_default(),
        senders: section.texts("senders").unwrap_or_default(),
        stop: section.texts("stop").unwrap_or_default(),
        start: section.texts("start").unwrap_or_default(),
        enabled: section.flag("enabled", true),
    };
    if keywords.stop.is_empty() {
        section.wrong("stop", "is missing; write for example stop = [\"STOP\"]");
    }
    section.finish();
    keywords
}
