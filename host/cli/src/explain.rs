//! `switchyard explain`: shows how a message would be routed. On a terminal it asks for missing arguments.

mod dialogue;

use crate::format::with_readable_times;
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::{Failure, Output, Streams};
use api::{ExplainRequest, ExplanationView};
use clap::Args;
use dialogue::Dialogue;
use std::io::IsTerminal as _;
use std::process::ExitCode;

const AFTER_HELP: &str = concat!(
    exit_help!("     (if the message would be refused, the exit status is 0)"),
    "
On a terminal, without --from-account or --destination, it asks for the message, and lets you change one field and ask again.

Examples:
  switchyard explain
  switchyard explain --from-account shop --source 10655 --destination 8613012345678"
);

/// Arguments of `explain`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct ExplainCommand {
    /// The account or the peer that would submit the message.
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    from_account: String,
    /// The sender.
    #[arg(long, default_value = "", hide_default_value = true)]
    source: String,
    /// The recipient.
    #[arg(long, default_value = "", hide_default_value = true)]
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
        let missing: Vec<&str> = [("--from-account", &from_account), ("--destination", &destination)]
            .into_iter()
            .filter_map(|(name, value)| value.is_empty().then_some(name))
            .collect();
        let request = ExplainRequest { origin: from_account, source, destination, text };
        global.run(streams, |api, output| {
            if missing.is_empty() {
                return show(output, &api.call("POST", "/v1/explain", &request)?);
            }
            if !output.is_text_on_a_terminal() || !std::io::stdin().is_terminal() {
                return Err(Failure::Usage(format!("missing: {}", missing.join(", "))));
            }
            Dialogue::new(api, output, std::io::stdin().lock())?.run(request)
        })
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

    #[test]
    fn without_a_terminal_nothing_is_asked() {
        let url = FakeApi::default().start();
        for (arguments, missing) in [
            (&["explain"][..], "missing: --from-account, --destination"),
            (&["explain", "--from-account", "shop", "--json"], "missing: --destination"),
        ] {
            let done = run(&url, arguments);
            assert_eq!((done.code, done.out.as_str()), (2, ""), "{done:?}");
            assert!(done.error.contains(missing), "{done:?}");
        }
    }
}
