//! `switchyard sms`: the subscriber's command line client.

mod forced_command;
mod render;
mod shell_client;

use self::shell_client::{ShellClient, SmsError};
use crate::wire::{
    ShellAccepted, ShellEvent, ShellFaultKind, ShellFollowQuery, ShellHello, ShellListQuery, ShellOperation,
    ShellPage, ShellSubmission,
};
use ::client::terminal;
use clap::{Args, Subcommand};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::{IsTerminal as _, Read as _, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Default path of the socket.
const DEFAULT_SOCKET: &str = "/run/switchyard/sms.sock";

const EXIT_STATUS_HELP: &str = "\
Exit status:
  0   done
  1   rejected permanently: no route, insufficient credit, recipient opted out
  2   invalid command line
  65  invalid number, text or key
  69  no appliance at the socket
  70  internal error of the appliance
  75  temporary failure: throttled, queue full, no answer; try again later
  77  permission denied: the user may not act as this number";

/// Send and read text messages.
#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS_HELP)]
pub struct SmsCommand {
    /// Path of the appliance's socket.
    #[arg(long, global = true, value_name = "PATH", default_value = DEFAULT_SOCKET)]
    socket: PathBuf,
    /// The number to act as, for example +16195550123. Optional if you have only one.
    // Not `number`: a global option would be taken for the list option of the same name.
    #[arg(long = "as", global = true, value_name = "NUMBER")]
    number_as: Option<String>,
    /// Show the messages of all subscribers, without text.
    #[arg(long, global = true, conflicts_with = "number_as")]
    operator: bool,
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    #[command(flatten)]
    Plain(SmsTask),
    /// For authorized_keys: run the command of the ssh client (SSH_ORIGINAL_COMMAND) as the number given here.
    ///
    /// The client may use send, inbox, log and follow with their options; socket and number are taken from this command
    /// line.
    #[command(after_help = "\
The line in authorized_keys, for a user of the system that has numbers = \"any\" in [[shell.users]]:
  restrict,command=\"switchyard sms --as +16195550123 forced\" ssh-ed25519 AAAA...")]
    Forced,
}

/// Subcommands that are also available over ssh.
#[derive(Debug, Subcommand)]
enum SmsTask {
    /// Send a text. Prints the message id after the message is on disk.
    Send(Send),
    /// List received messages.
    Inbox(ListArgs),
    /// List received and sent messages with their states.
    Log(ListArgs),
    /// Show new messages and state changes until interrupted.
    Follow(FollowArgs),
}

#[derive(Debug, Args)]
struct Send {
    /// Idempotency key: a submission that is repeated under its key is accepted once.
    #[arg(long)]
    key: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// The recipient, as you would dial it.
    to: String,
    /// The text; read from standard input if omitted.
    #[arg(trailing_var_arg = true)]
    text: Vec<String>,
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Maximum number of messages.
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
    /// Only messages older than this one.
    #[arg(long, value_name = "ID")]
    before: Option<String>,
    /// For operators: only messages of this number.
    #[arg(long, value_name = "NUMBER")]
    number: Option<String>,
    /// Print one JSON document, newest message first.
    #[arg(long)]
    json: bool,
}

impl ListArgs {
    fn list(&self) -> ShellListQuery {
        ShellListQuery { limit: self.limit, before: self.before.clone(), number: self.number.clone() }
    }
}

#[derive(Debug, Args)]
struct FollowArgs {
    /// For operators: only messages from or to this number.
    #[arg(long, value_name = "NUMBER")]
    number: Option<String>,
    /// Print one JSON document per line.
    #[arg(long)]
    json: bool,
}

/// How long a submission without an answer is repeated.
const RETRY_PERIOD: Duration = Duration::from_secs(20);
/// Time between attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);

impl SmsError {
    fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Unreachable { .. } => 69,
            Self::Disconnected => 75,
            Self::UnexpectedResponse(_) => 70,
            Self::Input(_) => 65,
            Self::Output => broken_pipe::STATUS,
            Self::Fault(fault) => match fault.kind {
                ShellFaultKind::Rejected => 1,
                ShellFaultKind::Invalid | ShellFaultKind::KeyReused => 65,
                ShellFaultKind::Malformed | ShellFaultKind::Internal => 70,
                ShellFaultKind::Throttled | ShellFaultKind::Unavailable => 75,
                ShellFaultKind::NotAllowed => 77,
            },
        })
    }
}

impl SmsCommand {
    /// Runs the command.
    #[must_use]
    pub fn run(self) -> ExitCode {
        let Self { socket, number_as, operator, task } = self;
        let ordinary = match task {
            Task::Plain(ordinary) => ordinary,
            Task::Forced => match forced_command::requested_task() {
                Ok(ordinary) => ordinary,
                Err(exit) => return exit,
            },
        };
        let caller = SmsSession { socket, hello: ShellHello { number: number_as, operator } };
        let result = match ordinary {
            SmsTask::Send(send) => caller.send(send),
            SmsTask::Inbox(list_args) => caller.list(ShellOperation::Inbox(list_args.list()), list_args.json),
            SmsTask::Log(list_args) => caller.list(ShellOperation::Log(list_args.list()), list_args.json),
            SmsTask::Follow(follow_args) => caller.follow(follow_args),
        };
        match result {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                if !matches!(failure, SmsError::Output) {
                    let _ = writeln!(
                        std::io::stderr(),
                        "switchyard: {}",
                        terminal::visible(&failure.to_string())
                    );
                }
                failure.exit_code()
            }
        }
    }
}

/// Socket and identity of the caller.
struct SmsSession {
    socket: PathBuf,
    hello: ShellHello,
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T, SmsError> {
    serde_json::from_value(value).map_err(|error| SmsError::UnexpectedResponse(error.to_string()))
}

fn print(text: &str) -> Result<(), SmsError> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|_| SmsError::Output)
}

impl SmsSession {
    fn connect(&self) -> Result<ShellClient, SmsError> {
        let mut client = ShellClient::connect(&self.socket)?;
        client.request(ShellOperation::Hello(self.hello.clone()))?;
        Ok(client)
    }

    fn send(&self, send: Send) -> Result<(), SmsError> {
        let text = if send.text.is_empty() { read_text_from_stdin()? } else { send.text.join(" ") };
        // Always use a key, so that a lost connection does not leave the result unknown.
        let key = match send.key {
            Some(key) => key,
            None => random_key()?,
        };
        let submission = ShellSubmission { to: send.to, text, key: Some(key.clone()) };
        let started = Instant::now();
        // Retry only if the appliance was reachable before.
        let mut connected = false;
        let accepted: ShellAccepted = loop {
            let result = ShellClient::connect(&self.socket).and_then(|mut client| {
                connected = true;
                client.request(ShellOperation::Hello(self.hello.clone()))?;
                client.request(ShellOperation::Send(submission.clone()))
            });
            match result {
                Ok(accepted) => break read(accepted)?,
                Err(SmsError::Disconnected | SmsError::Unreachable { .. })
                    if connected && started.elapsed() < RETRY_PERIOD =>
                {
                    shell_client::pause(RETRY_INTERVAL);
                }
                Err(failure)
                    if connected
                        && matches!(failure, SmsError::Disconnected | SmsError::Unreachable { .. }) =>
                {
                    let detail = format!(
                        "no answer: the result is unknown. Repeat the command with --key {key} to get it"
                    );
                    return Err(SmsError::Fault(crate::wire::ShellFault::new(
                        ShellFaultKind::Unavailable,
                        detail,
                    )));
                }
                Err(SmsError::Fault(mut fault)) if fault.kind == ShellFaultKind::Unavailable => {
                    fault.detail.push_str(&format!(" (repeat the command safely with --key {key})"));
                    return Err(SmsError::Fault(fault));
                }
                Err(failure) => return Err(failure),
            }
        };
        if send.json {
            return print(&format!("{}\n", terminal::json(&accepted)));
        }
        print(&format!("{}\n", terminal::visible(&accepted.message)))
    }

    fn list(&self, operation: ShellOperation, json: bool) -> Result<(), SmsError> {
        let value = self.connect()?.request(operation)?;
        let page: ShellPage = read(value)?;
        if json {
            return print(&format!("{}\n", terminal::json(&page)));
        }
        // Newest last, next to the prompt.
        let lines = page.messages.iter().rev().map(|item| render::line(item) + "\n");
        print(&lines.collect::<String>())?;
        let mut err = std::io::stderr();
        if let Some(why) = &page.incomplete {
            let _ = writeln!(err, "switchyard: {}", terminal::visible(why));
        }
        if let Some(next) = &page.next {
            let _ = writeln!(
                err,
                "switchyard: more messages follow; continue with --before {}",
                terminal::visible(next)
            );
        }
        Ok(())
    }

    fn follow(&self, follow_args: FollowArgs) -> Result<(), SmsError> {
        let mut client = self.connect()?;
        client.request(ShellOperation::Follow(ShellFollowQuery { number: follow_args.number }))?;
        loop {
            let event = client.event()?;
            if follow_args.json {
                print(&format!("{}\n", terminal::json(&event)))?;
                continue;
            }
            match event {
                ShellEvent::Message(item) => print(&(render::line(&item) + "\n"))?,
                ShellEvent::Lost(count) => {
                    print(&format!("({count} changes were lost: the output was too slow)\n"))?;
                }
            }
        }
    }
}

/// Reads the text from standard input, without the final line break.
fn read_text_from_stdin() -> Result<String, SmsError> {
    let input = std::io::stdin();
    if input.is_terminal() {
        let _ = writeln!(std::io::stderr(), "switchyard: enter the text and end it with Ctrl-D");
    }
    let mut octets = Vec::new();
    let most = crate::wire::MAX_LINE_OCTETS as u64;
    let read = input.lock().take(most).read_to_end(&mut octets);
    read.map_err(|error| SmsError::Input(format!("standard input cannot be read: {error}")))?;
    let mut text = String::from_utf8(octets)
        .map_err(|_| SmsError::Input("the text on standard input is not UTF-8".to_owned()))?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

fn random_key() -> Result<String, SmsError> {
    let mut octets = [0; 16];
    getrandom::fill(&mut octets)
        .map_err(|error| SmsError::UnexpectedResponse(format!("no random numbers: {error}")))?;
    Ok(model::hex(&octets))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct TestCommandLine {
        #[command(flatten)]
        command: SmsCommand,
    }

    fn parse(words: &str) -> Result<SmsCommand, String> {
        let all = std::iter::once("sms").chain(words.split(' '));
        TestCommandLine::try_parse_from(all).map(|line| line.command).map_err(|error| error.to_string())
    }

    #[test]
    fn as_option_is_not_the_number_filter() {
        let command = parse("--as +16195550123 log --limit 3").unwrap();
        assert_eq!(command.number_as.as_deref(), Some("+16195550123"));
        let Task::Plain(SmsTask::Log(list_args)) = command.task else { panic!("no log") };
        assert_eq!((list_args.number, list_args.limit), (None, Some(3)));
        let command = parse("inbox --operator --number +16195550123").unwrap();
        assert!(command.number_as.is_none() && command.operator);
        let Task::Plain(SmsTask::Inbox(list_args)) = command.task else { panic!("no inbox") };
        assert_eq!(list_args.number.as_deref(), Some("+16195550123"));
    }

    #[test]
    fn global_options_go_before_or_after_the_subcommand_but_not_in_the_text() {
        for words in ["send --as +1619 +1620 hi there", "--as +1619 send +1620 hi there"] {
            let command = parse(words).unwrap();
            assert_eq!(command.number_as.as_deref(), Some("+1619"), "{words}");
            let Task::Plain(SmsTask::Send(send)) = command.task else { panic!("no send") };
            assert_eq!((send.to.as_str(), send.text.join(" ").as_str()), ("+1620", "hi there"), "{words}");
        }
        let Task::Plain(SmsTask::Send(send)) = parse("send +1620 hi --as +1619").unwrap().task else {
            panic!("no send")
        };
        assert_eq!(send.text.join(" "), "hi --as +1619");
        assert!(parse("--as +1619 --operator log").is_err());
        assert!(parse("listen").is_err());
    }
}
