//! The log: its form, and what is in it, which can be changed while the appliance runs.

use crate::config::log::Log;
use anyhow::{Context as _, Result};
use parking_lot::Mutex;
use std::io::IsTerminal as _;
use std::sync::Arc;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, Registry, fmt, reload};

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// What is logged now, and the way to change it.
pub(crate) struct Logging {
    filter: reload::Handle<EnvFilter, Registry>,
    level: Mutex<String>,
}

/// Whether a level is one, in words that follow its name where it is not.
///
/// The filter itself takes more: a bare word that is no level is a room of which everything is logged, and nothing of all
/// others. Nobody who misspells a level means that.
pub(crate) fn check(level: &str) -> Result<(), String> {
    let is_level = |word: &str| LEVELS.contains(&word);
    let is_room = |word: &str| {
        !word.is_empty() && word.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b':' | b'-'))
    };
    let wrong = level.split(',').find(|part| match part.split_once('=') {
        Some((room, level)) => !is_room(room) || !is_level(level),
        None => !is_level(part),
    });
    match wrong {
        None => Ok(()),
        Some(part) => Err(format!(
            "{part:?} is neither one of {} nor a room and one of these, such as links=debug",
            LEVELS.join(", ")
        )),
    }
}

impl Logging {
    /// Begins to log, on standard error. `RUST_LOG`, where it is set, counts more than the configuration.
    pub(crate) fn start(log: &Log) -> Result<Arc<Self>> {
        let level = std::env::var("RUST_LOG").ok().filter(|level| EnvFilter::try_new(level).is_ok());
        let level = level.unwrap_or_else(|| log.level.clone());
        let (filter, handle) =
            reload::Layer::new(EnvFilter::try_new(&level).context("the log's level cannot be used")?);
        let lines = fmt::layer().with_writer(std::io::stderr);
        let lines = if log.json {
            lines.json().boxed()
        } else {
            lines.with_ansi(std::io::stderr().is_terminal()).boxed()
        };
        tracing_subscriber::registry().with(filter).with(lines).try_init().context("starting the log")?;
        Ok(Arc::new(Self { filter: handle, level: Mutex::new(level) }))
    }

    pub(crate) fn level(&self) -> String {
        self.level.lock().clone()
    }

    /// Changes what is logged; in words what is wrong with it where it is not understood.
    pub(crate) fn set(&self, level: &str) -> Result<(), String> {
        check(level)?;
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
    fn a_level_is_a_level_or_a_room_with_one() {
        for right in ["info", "off", "info,links=debug", "warn,store=trace", "switchyard::serve=debug"] {
            assert_eq!(check(right), Ok(()), "{right}");
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
            assert!(check(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            check("info,verbose").unwrap_err(),
            "\"verbose\" is neither one of off, error, warn, info, debug, trace nor a room and one of these, such as \
             links=debug"
        );
    }
}
