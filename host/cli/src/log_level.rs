//! `switchyard log-level`: shows or changes the log level of the daemon.

use crate::format::value_text;
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::Streams;
use api::{LogLevelRequest, LogLevelView};
use clap::Args;
use std::process::ExitCode;

const AFTER_HELP: &str = concat!(
    exit_help!(),
    "
Examples:
  switchyard log-level
  switchyard log-level info,links=debug   # until the next start"
);

/// Arguments of `log-level`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct LogLevelCommand {
    /// The new level: off, error, warn, info, debug or trace, and `crate=level` for one crate; without it, the current level is shown.
    level: Option<String>,
    #[command(flatten)]
    global: GlobalArgs,
}

impl LogLevelCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { level, global } = self;
        global.run(streams, |api, output| {
            let answer: LogLevelView = match level {
                Some(level) => api.call("PUT", "/v1/log", &LogLevelRequest { level })?,
                None => api.read("/v1/log")?,
            };
            if output.json { output.document(&answer) } else { output.line(&value_text(&answer.level)) }
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::fake_api::{FakeApi, run};
    use api::LogLevelView;

    #[test]
    fn the_level_is_shown_and_set() {
        let level = |level: &str| LogLevelView { level: level.to_owned() };
        let api = FakeApi::default().with("GET /v1/log", 200, &level("info")).with(
            "PUT /v1/log",
            200,
            &level("debug"),
        );
        let url = api.start();
        assert_eq!(run(&url, &["log-level"]).out, "info\n");
        assert_eq!(run(&url, &["log-level", "debug"]).out, "debug\n");
        assert_eq!(api.requests()[1].body, r#"{"level":"debug"}"#);
    }
}
