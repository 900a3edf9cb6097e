//! `switchyard explain`: what would become of a message.

use crate::output::{Failure, Output, Streams};
use crate::table::sentence;
use crate::way::{Way, exits};
use clap::Args;
use serde_json::{Value, json};
use std::process::ExitCode;

const AFTER: &str = concat!(
    exits!("     (that a message would be refused is an answer: 0)"),
    "
Example:
  switchyard explain --from-account shop --source 10655 --destination 8613012345678"
);

/// Arguments of `explain`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct ExplainCommand {
    /// The account, or the peer, that the message would come from.
    #[arg(long, value_name = "NAME")]
    from_account: String,
    /// The sender.
    #[arg(long, default_value = "")]
    source: String,
    /// The addressee.
    #[arg(long)]
    destination: String,
    /// The text.
    #[arg(long, default_value = "")]
    text: String,
    #[command(flatten)]
    way: Way,
}

impl ExplainCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { from_account, source, destination, text, way } = self;
        let asked =
            json!({ "origin": from_account, "source": source, "destination": destination, "text": text });
        way.ask(streams, |appliance, output| show(output, &appliance.post("/v1/explain", &asked)?))
    }
}

fn show(output: &Output, explained: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(explained);
    }
    for step in explained["steps"].as_array().into_iter().flatten() {
        output.line(&sentence(step))?;
    }
    output.line(&format!("answer: {}", sentence(&explained["answer"])))
}

#[cfg(test)]
mod tests {
    use crate::stub::{Stub, run};
    use serde_json::json;

    #[test]
    fn the_steps_and_the_answer_are_told() {
        let explained = json!({ "steps": ["origin: shop", "leg north: idle"], "answer": "accepted" });
        let url = Stub::default().with("POST /v1/explain", 200, &explained).start();
        let done = run(&url, &["explain", "--from-account", "shop", "--destination", "8613"]);
        assert_eq!((done.code, done.out.as_str()), (0, "origin: shop\nleg north: idle\nanswer: accepted\n"));
    }
}
