//! `switchyard explain`: shows how a message would be routed.

use crate::format::with_readable_times;
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::{Failure, Output, Streams};
use clap::Args;
use serde_json::{Value, json};
use std::process::ExitCode;

const AFTER: &str = concat!(
    exit_help!("     (if the message would be refused, the exit status is 0)"),
    "
Example:
  switchyard explain --from-account shop --source 10655 --destination 8613012345678"
);

/// Arguments of `explain`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct ExplainCommand {
    /// The account or the peer that the message would come from.
    #[arg(long, value_name = "NAME")]
    from_account: String,
    /// The sender.
    #[arg(long, default_value = "")]
    source: String,
    /// The recipient.
    #[arg(long)]
    destination: String,
    /// The text.
    #[arg(long, default_value = "")]
    text: String,
    #[command(flatten)]
    global: GlobalArgs,
}

impl ExplainCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { from_account, source, destination, text, global } = self;
        let request =
            json!({ "origin": from_account, "source": source, "destination": destination, "text": text });
        global.run(streams, |api, output| show(output, &api.post("/v1/explain", &request)?))
    }
}

fn show(output: &Output, explained: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(explained);
    }
    for step in explained["steps"].as_array().into_iter().flatten() {
        output.line(&with_readable_times(step))?;
    }
    output.line(&format!("answer: {}", with_readable_times(&explained["answer"])))
}

#[cfg(test)]
mod tests {
    use crate::fake_api::{FakeApi, run};
    use serde_json::json;

    #[test]
    fn the_steps_and_the_answer_are_printed() {
        let explained = json!({ "steps": ["origin: shop", "leg north: idle"], "answer": "accepted" });
        let url = FakeApi::default().with("POST /v1/explain", 200, &explained).start();
        let done = run(&url, &["explain", "--from-account", "shop", "--destination", "8613"]);
        assert_eq!((done.code, done.out.as_str()), (0, "origin: shop\nleg north: idle\nanswer: accepted\n"));
    }
}
