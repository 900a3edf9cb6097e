//! `--watch`: repeats a read-only command on a cleared screen.

use crate::output::Failure;
use std::ffi::OsString;
use std::io::Write as _;
use std::process::{Command, ExitCode};
use std::sync::mpsc;
use std::time::Duration;

/// The flag of the commands that `--watch` starts, so that they refuse to change anything.
const READ_ONLY: &str = "--read-only";

/// The arguments of the repeated command: the arguments of this process without `--watch`.
fn repeated(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let is_watch =
        |arg: &OsString| arg == "--watch" || arg.to_str().is_some_and(|arg| arg.starts_with("--watch="));
    args.filter(|arg| !is_watch(arg)).chain([READ_ONLY.into()]).collect()
}

/// Runs the command of this process until it fails or is interrupted.
pub(crate) fn watch(interval: Duration) -> Result<ExitCode, Failure> {
    let program = std::env::current_exe().map_err(|error| Failure::Usage(format!("--watch: {error}")))?;
    let args = repeated(std::env::args_os().skip(1));
    // Nothing is ever sent on this channel.
    let (_sender, never) = mpsc::channel::<()>();
    loop {
        // Clears the screen.
        let mut out = std::io::stdout();
        out.write_all(b"\x1b[H\x1b[2J").and_then(|()| out.flush()).map_err(|_| Failure::Output)?;
        let status = Command::new(&program).args(&args).status();
        let status = status.map_err(|error| Failure::Usage(format!("--watch: {error}")))?;
        if !status.success() {
            return Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(2)));
        }
        let _ = never.recv_timeout(interval);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_api::{FakeApi, run};

    #[test]
    fn the_repeated_command_has_no_watch_and_changes_nothing() {
        let args = ["queue", "--watch", "list", "--watch=5s", "--sort", "peer"].map(OsString::from);
        assert_eq!(repeated(args.into_iter()), ["queue", "list", "--sort", "peer", READ_ONLY]);
        let api = FakeApi::default();
        let outcome = run(&api.start(), &["message", "cancel", "1", READ_ONLY]);
        assert_eq!(outcome.code, 2, "{outcome:?}");
        assert!(outcome.error.contains("--watch") && api.requests().is_empty(), "{outcome:?}");
    }
}
