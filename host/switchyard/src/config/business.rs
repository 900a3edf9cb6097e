//! `[business]`, `[account.business]`, `[archive]` and `[[opt-out]]`.

use super::http::{self, HttpTlsMode};
use super::{UNASSIGNED_PEER, read_text_file, secret};
use crate::opt_out::OptOutKeywords;
use business::{BusinessAccountOptions, BusinessOptions, PushFormat, PushOptions};
use configuration::Section;
use ports::HttpLimits;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// The listener for business systems.
#[derive(Debug, Clone)]
pub(crate) struct BusinessListener {
    pub(crate) listen: SocketAddr,
    pub(crate) options: BusinessOptions,
    pub(crate) tls: HttpTlsMode,
    pub(crate) limits: HttpLimits,
}

pub(super) fn listener(section: &Section<'_>, base: &Path) -> BusinessListener {
    let text = section.required("listen", "\"127.0.0.1:8081\"");
    let listen = text.parse().unwrap_or_else(|_| {
        if !text.is_empty() {
            let allowed = "address:port such as \"127.0.0.1:8081\"";
            section.invalid("listen", format!("is {text:?}"), allowed);
        }
        SocketAddr::from(([127, 0, 0, 1], 0))
    });
    let defaults = BusinessOptions::default();
    let options = BusinessOptions {
        request_limit: section.size("request-limit", defaults.request_limit as u64) as usize,
        submit_timeout: section.duration("submit-timeout", defaults.submit_timeout),
        ..defaults
    };
    let tls = http::tls(section, base);
    let limits = http::limits(section, HttpLimits::new(2_000, 500), 0);
    section.finish();
    BusinessListener { listen, options, tls, limits }
}

/// The HTTP settings of an account; the rest comes from the account itself.
pub(super) fn account(
    section: &Section<'_>,
    links: &links::LinkAccountOptions,
    base: &Path,
) -> BusinessAccountOptions {
    let defaults = BusinessAccountOptions::new(&links.name, UNASSIGNED_PEER, &links.password_hash);
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
            push.error("secret", "is missing; pushes are signed with it");
        }
        if !options.url.is_empty() && !options.has_url() {
            push.error("url", "must be an http or https URL");
        }
        push.finish();
        options
    });
    let options = BusinessAccountOptions {
        networks: links.networks.clone(),
        rate: links.rate,
        burst: links.burst,
        source: links.source.clone(),
        validity: links.validity,
        max_segments: section.number("max-segments", defaults.max_segments as u64, 1..=255) as usize,
        batch: section.number("batch", defaults.batch as u64, 1..=60_000) as usize,
        lease: section.duration("lease", defaults.lease),
        push,
        ..defaults
    };
    section.finish();
    options
}

/// The archive of finished messages.
#[derive(Debug, Clone)]
pub(crate) struct ArchiveSettings {
    /// The URL; `None` if finished messages stay in the store until they expire.
    pub(crate) url: Option<String>,
    pub(crate) options: archive::ArchiveOptions,
}

pub(super) fn archive(section: &Section<'_>, base: &Path, data: &Path) -> ArchiveSettings {
    let embedded = || format!("sqlite:{}", data.join("archive.db").display());
    let url = match (section.text("url"), section.text("url-file")) {
        (Some(_), Some(_)) => {
            section.error("url-file", "is set together with url; keep one of them");
            None
        }
        (Some(url), None) if url == "none" => None,
        (Some(url), None) => match url.strip_prefix("sqlite:") {
            // Relative to the data directory, like all files that the daemon writes.
            Some(path) if !path.starts_with("//") => Some(format!("sqlite:{}", data.join(path).display())),
            _ => Some(url),
        },
        (None, Some(file)) => match read_text_file(&base.join(&file)) {
            Ok(url) => Some(url.trim().to_owned()),
            Err(error) => {
                section.error("url-file", format!("{file}: {error}"));
                None
            }
        },
        (None, None) => Some(embedded()),
    };
    let defaults = archive::ArchiveOptions::default();
    let options = archive::ArchiveOptions {
        batch: section.number("batch", defaults.batch as u64, 1..=100_000) as usize,
        linger: section.duration("linger", defaults.linger),
        keep: section
            .has("retention")
            .then(|| section.duration("retention", Duration::from_secs(90 * 86_400))),
        ..defaults
    };
    if let Some(url) = &url
        && let Err(error) = archive::Archive::open(url, options.clone())
    {
        let key = if section.has("url-file") { "url-file" } else { "url" };
        section.error(key, error.to_string());
    }
    section.finish();
    ArchiveSettings { url, options }
}

pub(super) fn opt_out(section: &Section<'_>) -> OptOutKeywords {
    let keywords = OptOutKeywords {
        language: section.text("language").unwrap_or_default(),
        senders: section.texts("senders").unwrap_or_default(),
        stop: section.texts("stop").unwrap_or_default(),
        start: section.texts("start").unwrap_or_default(),
        enabled: section.flag("enabled", true),
    };
    if keywords.stop.is_empty() {
        section.error("stop", "is missing; write for example stop = [\"STOP\"]");
    }
    section.finish();
    keywords
}
