//! `switchyard log-level`: how much the daemon logs.

use crate::output::Streams;
use crate::table::word;
use crate::way::{Way, exits};
use clap::Args;
use serde_json::json;
use std::process::ExitCode;

const AFTER: &str = concat!(
    exits!(),
    "
Examples:
  switchyard log-level
  switchyard log-level info,links=debug   # until the next start"
);

/// Arguments of `log-level`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct LogLevelCommand {
    /// What to log from now on: off, error, warn, info, debug or trace, and `crate=level` for one part; left out, it is shown.
    level: Option<String>,
    #[command(flatten)]
    way: Way,
}

impl LogLevelCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { level, way } = self;
        way.ask(streams, |appliance, output| {
            let answer = match level {
                Some(level) => appliance.put("/v1/log", &json!({ "level": level }))?,
                None => appliance.get("/v1/log")?,
            };
            if output.json { output.document(&answer) } else { output.line(&word(&answer["level"])) }
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::stub::{Stub, run};
    use serde_json::json;

    #[test]
    fn the_level_is_shown_and_set() {
        let stub = Stub::default().with("GET /v1/log", 200, &json!({ "level": "info" })).with(
            "PUT /v1/log",
            200,
            &json!({ "level": "debug" }),
        );
        let url = stub.start();
        assert_eq!(run(&url, &["log-level"]).out, "info\n");
        assert_eq!(run(&url, &["log-level", "debug"]).out, "debug\n");
        assert_eq!(stub.asked()[1].body, r#"{"level":"debug"}"#);
    }
}
