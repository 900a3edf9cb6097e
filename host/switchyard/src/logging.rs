//! The log: its format, and its filter, which can be changed at run time.

use anyhow::{Context as _, Result};
use configuration::Keys;
use parking_lot::Mutex;
use std::io::IsTerminal as _;
use std::sync::Arc;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, Registry, fmt, reload};

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Controls the log filter.
pub(crate) struct LogControl {
    filter: reload::Handle<EnvFilter, Registry>,
    level: Mutex<String>,
}

/// The initial log settings.
#[derive(Debug, Clone, PartialEq, Eq, Keys)]
pub(crate) struct LogSettings {
    /// The log filter, in the form of `PUT /v1/log`, for example `info,links=debug`.
    #[key(default = "info", live = "takes effect at once, and replaces a level set with `PUT /v1/log`", check = check_level)]
    pub(crate) level: String,
    /// The log format.
    #[key(name = "format", default = "text", restart = "the log is opened with it",
        words = &[("text", false, "Plain text lines."), ("json", true, "One JSON object per line.")])]
    pub(crate) json: bool,
}

/// Validates a log filter. The error follows the name of the field.
///
/// The filter library accepts more: it takes a misspelt level for a target, and then disables all other targets.
pub(crate) fn check_level(level: &str) -> Result<(), String> {
    let is_level = |word: &str| LEVELS.contains(&word);
    let is_target = |word: &str| {
        !word.is_empty() && word.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b':' | b'-'))
    };
    let wrong = level.split(',').find(|part| match part.split_once('=') {
        Some((target, level)) => !is_target(target) || !is_level(level),
        None => !is_level(part),
    });
    match wrong {
        None => Ok(()),
        Some(part) => Err(format!(
            "{part:?} is neither one of {} nor a log target with one of these, such as links=debug",
            LEVELS.join(", ")
        )),
    }
}

impl LogControl {
    /// Starts logging to standard error. `RUST_LOG` overrides the configuration.
    pub(crate) fn start(log: &LogSettings) -> Result<Arc<Self>> {
        let level = std::env::var("RUST_LOG").ok().filter(|level| EnvFilter::try_new(level).is_ok());
        let level = level.unwrap_or_else(|| log.level.clone());
        let (filter, handle) = reload::Layer::new(EnvFilter::try_new(&level).context("invalid log level")?);
        let lines = fmt::layer().with_writer(std::io::stderr);
        let lines = if log.json {
            lines.json().boxed()
        } else {
            lines.with_ansi(std::io::stderr().is_terminal()).boxed()
        };
        tracing_subscriber::registry().with(filter).with(lines).try_init().context("initializing the log")?;
        Ok(Arc::new(Self { filter: handle, level: Mutex::new(level) }))
    }

    pub(crate) fn level(&self) -> String {
        self.level.lock().clone()
    }

    /// Changes the filter.
    pub(crate) fn set(&self, level: &str) -> Result<(), String> {
        check_level(level)?;
        let filter = EnvFilter::try_new(level).map_err(|error| error.to_string())?;
        let mut current = self.level.lock();
        self.filter.reload(filter).map_err(|error| error.to_string())?;
        level.clone_into(&mut current);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_levels_and_targets_with_a_level() {
        for right in ["info", "off", "info,links=debug", "warn,store=trace", "switchyard::serve=debug"] {
            assert_eq!(check_level(right), Ok(()), "{right}");
            assert!(EnvFilter::try_new(right).is_ok(), "{right}");
        }
        for wrong in [
            "",
            "info, links=debug",
            "verbose",
            "info,",
            "links",
            "links=loud",
            "=info",
            "info,[span]=debug",
            "INFOO",
            "a b=info",
        ] {
            assert!(check_level(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            check_level("info,verbose").unwrap_err(),
            "\"verbose\" is neither one of off, error, warn, info, debug, trace nor a log target with one of these, such as \
             links=debug"
        );
    }
}
