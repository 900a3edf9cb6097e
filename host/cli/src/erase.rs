//! `switchyard erase`: erases all data of one number.

use crate::format::value_text;
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::{Failure, Output, Streams};
use api::{NumberErasureRequest, NumberErasureView};
use clap::Args;
use client::ApiClient;
use std::process::ExitCode;

const AFTER_HELP: &str = concat!(
    exit_help!(),
    "
Example:
  switchyard erase 4917012345678"
);

/// Arguments of `erase`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct EraseCommand {
    /// The number: 5 to 20 digits, in the form of the messages.
    number: String,
    #[command(flatten)]
    global: GlobalArgs,
}

impl EraseCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { number, global } = self;
        global.run(streams, |api, output| erase(api, output, number))
    }
}

/// Repeats the request while it changes rows. The last receipt is shown, with the sums of all.
fn erase(api: &ApiClient, output: &Output, number: String) -> Result<(), Failure> {
    let request = NumberErasureRequest { number };
    let (mut rows, mut contents) = (0, 0);
    let receipt = loop {
        let receipt: NumberErasureView = api.call("POST", "/v1/erasures", &request)?;
        rows += receipt.rows;
        contents += receipt.contents;
        if receipt.complete || receipt.rows == 0 {
            break NumberErasureView { rows, contents, ..receipt };
        }
    };
    if output.json {
        return output.document(&receipt);
    }
    output.line(&format!("erasure {} of {}", value_text(&receipt.id), value_text(&receipt.number)))?;
    output
        .line(&format!("  {rows} messages of the archive without the number, {contents} contents erased"))?;
    let left = [
        (receipt.in_flight, "messages have not ended: repeat the command when they have"),
        (
            receipt.awaiting_archive,
            "messages wait for the archive: repeat the command when they are archived",
        ),
        (receipt.opt_outs_kept, "opt-outs are kept"),
    ];
    for (count, what) in left.into_iter().filter(|(count, _)| *count > 0) {
        output.line(&format!("  {count} {what}"))?;
    }
    for place in &receipt.not_reached {
        output.line(&format!("  not reached: {}", value_text(place)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::fake_api::{FakeApi, run};
    use api::NumberErasureView;

    #[test]
    fn an_erasure_is_repeated_until_no_row_is_left() {
        let receipt = |rows, in_flight, complete| NumberErasureView {
            id: "00ff".to_owned(),
            at: 7,
            number: "4917******78".to_owned(),
            rows,
            contents: rows,
            in_flight,
            awaiting_archive: 0,
            opt_outs_kept: 1,
            complete,
            not_reached: vec!["CDR files of billing".to_owned()],
        };
        let api = FakeApi::default()
            .with("POST /v1/erasures", 200, &receipt(10_000, 1, false))
            .with("POST /v1/erasures", 200, &receipt(3, 1, false))
            .with("POST /v1/erasures", 200, &receipt(0, 1, false));
        let done = run(&api.start(), &["erase", "4917012345678"]);
        let expected = "erasure 00ff of 4917******78\n  10003 messages of the archive without the number, 10003 contents erased\n  \
                        1 messages have not ended: repeat the command when they have\n  1 opt-outs are kept\n  \
                        not reached: CDR files of billing\n";
        assert!(done.code == 0 && done.out == expected, "{}{}", done.out, done.error);
    }
}
