//! Ends a command quietly when nobody reads its output any more, as in `switchyard plugin schema NAME | head -1`.
//!
//! Rust ignores SIGPIPE, and the macros that print panic if a write fails. A program that prints calls [`end_quietly`] first.
#![forbid(unsafe_code)]

use std::any::Any;

/// The exit status of such a command: what a shell shows for a program that SIGPIPE has ended. A test run or a check that is cut off
/// must not look like one that succeeded.
pub const STATUS: u8 = 141;

/// From now on, a print to a closed pipe ends the process with [`STATUS`] and without a message, whatever thread prints. Other
/// panics are reported as before.
///
/// Not for a daemon: it must outlive the reader of its output.
pub fn end_quietly() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if is_closed_output(panic.payload()) {
            std::process::exit(i32::from(STATUS));
        }
        report(panic);
    }));
}

/// Whether a panic is that of a print to a closed pipe. The standard library has no other sign than its text.
fn is_closed_output(payload: &dyn Any) -> bool {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied())
        .is_some_and(|text| text.starts_with("failed printing to std") && text.contains("Broken pipe"))
}

#[cfg(test)]
#[allow(clippy::print_stdout, reason = "prints to a closed pipe")]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Command, Stdio};

    #[test]
    fn a_print_to_a_closed_pipe_ends_the_process_quietly() {
        if std::env::var_os("IN_ANOTHER_PROCESS").is_some() {
            end_quietly();
            let printing = std::thread::spawn(|| (0..10_000_000).for_each(|line| println!("{line}")));
            let _ = printing.join();
            std::process::exit(9);
        }
        let test = "tests::a_print_to_a_closed_pipe_ends_the_process_quietly";
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test, "--nocapture"]).env("IN_ANOTHER_PROCESS", "1");
        let mut other = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // The harness prints something first, and cannot do that to a closed pipe.
        let mut output = BufReader::new(other.stdout.take().unwrap());
        let mut line = String::new();
        while line != "7\n" {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "the test prints numbers");
        }
        drop(output);
        let mut error = String::new();
        other.stderr.take().unwrap().read_to_string(&mut error).unwrap();
        assert_eq!((other.wait().unwrap().code(), &*error), (Some(i32::from(STATUS)), ""));
    }

    #[test]
    fn other_panics_are_no_closed_output() {
        for other in ["no digits", "failed printing to stdout: No space left on device"] {
            assert!(!is_closed_output(&other.to_owned()));
            assert!(!is_closed_output(&7));
        }
        assert!(is_closed_output(&"failed printing to stdout: Broken pipe (os error 32)".to_owned()));
    }
}
