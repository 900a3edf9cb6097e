//! `switchyard explain`: shows how a message would be routed.

use crate::format::with_readable_times;
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::{Failure, Output, Streams};
use api::{ExplainRequest, ExplanationView};
use clap::Args;
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
        let request = ExplainRequest { origin: from_account, source, destination, text };
        global.run(streams, |api, output| show(output, &api.call("POST", "/v1/explain", &request)?))
    }
}

fn show(output: &Output, explained: &ExplanationView) -> Result<(), Failure> {
    if output.json {
        return output.document(explained);
    }
    for step in &explained.steps {
        output.line(&with_readable_times(step))?;
    }
    output.line(&format!("answer: {}", with_readable_times(&explained.answer)))
}

#[cfg(test)]
mod tests {
    use crate::fake_api::{FakeApi, run};
    use api::ExplanationView;

    #[test]
    fn the_steps_and_the_answer_are_printed() {
        let explained = ExplanationView {
            steps: vec!["origin: shop".to_owned(), "leg north: idle".to_owned()],
            answer: "accepted".to_owned(),
        };
        let url = FakeApi::default().with("POST /v1/explain", 200, &explained).start();
        let done = run(&url, &["explain", "--from-account", "shop", "--destination", "8613"]);
        assert_eq!((done.code, done.out.as_str()), (0, "origin: shop\nleg north: idle\nanswer: accepted\n"));
    }
}
