//! `switchyard sms`: what a subscriber does on the command line.

mod client;
mod forced;
mod shown;

use self::client::{Client, Failure};
use crate::wire::{Accepted, Ask, Event, Follow, Hello, Kind, List, Page, Submission};
use ::client::terminal;
use clap::{Args, Subcommand};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::{IsTerminal as _, Read as _, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Where the socket is, unless the command line says otherwise.
const SOCKET: &str = "/run/switchyard/sms.sock";

const EXITS: &str = "\
Exit status:
  0   done
  1   refused for good: no route, not enough credit, the addressee has opted out
  2   the command line is wrong
  65  something in the request cannot be: the number, the text, the key
  69  there is no appliance at the socket
  70  a fault of the appliance's
  75  not now: too fast, queue full, no answer; trying again later may help
  77  not allowed: the user may not act as this number";

/// Texts for people, and what came of them.
#[derive(Debug, Args)]
#[command(after_help = EXITS)]
pub struct Command {
    /// The appliance's socket.
    #[arg(long, global = true, value_name = "PATH", default_value = SOCKET)]
    socket: PathBuf,
    /// The number to act as, such as +16195550123. May be left out by who has only one.
    // Not `number`: what is global would be taken for the listings' option of that name.
    #[arg(long = "as", global = true, value_name = "NUMBER")]
    acting: Option<String>,
    /// See everybody's messages, without their texts.
    #[arg(long, global = true, conflicts_with = "acting")]
    operator: bool,
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    #[command(flatten)]
    Ordinary(Ordinary),
    /// For authorized_keys: do what the ssh client asks for (SSH_ORIGINAL_COMMAND), as the number that stands here.
    ///
    /// It may ask for send, inbox, log and follow with their options; socket and number are those of this command line.
    #[command(after_help = "\
The line in authorized_keys, for a user of the system that has numbers = \"any\" in [[shell.users]]:
  restrict,command=\"switchyard sms --as +16195550123 forced\" ssh-ed25519 AAAA...")]
    Forced,
}

/// What may be asked for over ssh, too.
#[derive(Debug, Subcommand)]
enum Ordinary {
    /// Send a text. Prints the message's id once it is on disk.
    Send(Send),
    /// Show what came.
    Inbox(Listing),
    /// Show what came and what was sent, and what became of it.
    Log(Listing),
    /// Show what happens, until interrupted.
    Follow(Following),
}

#[derive(Debug, Args)]
struct Send {
    /// A name of your own for the submission: repeated under it, it is accepted once.
    #[arg(long)]
    key: Option<String>,
    /// For programs.
    #[arg(long)]
    json: bool,
    /// To whom, as you would dial it.
    to: String,
    /// The text; read from standard input where it is left out.
    #[arg(trailing_var_arg = true)]
    text: Vec<String>,
}

#[derive(Debug, Args)]
struct Listing {
    /// How many, at most.
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
    /// Only those older than this message.
    #[arg(long, value_name = "ID")]
    before: Option<String>,
    /// Of an operator: only those of this number.
    #[arg(long, value_name = "NUMBER")]
    number: Option<String>,
    /// For programs: one document, newest first.
    #[arg(long)]
    json: bool,
}

impl Listing {
    fn list(&self) -> List {
        List { limit: self.limit, before: self.before.clone(), number: self.number.clone() }
    }
}

#[derive(Debug, Args)]
struct Following {
    /// Of an operator: only what is from this number or for it.
    #[arg(long, value_name = "NUMBER")]
    number: Option<String>,
    /// For programs: a document a line.
    #[arg(long)]
    json: bool,
}

/// How long a submission whose answer was cut off is repeated.
const REPEAT: Duration = Duration::from_secs(20);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(250);

impl Failure {
    fn exit(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::NoAppliance { .. } => 69,
            Self::Broken => 75,
            Self::Strange(_) => 70,
            Self::Input(_) => 65,
            // Whoever read it has gone; that is no failure.
            Self::Output => 0,
            Self::Fault(fault) => match fault.kind {
                Kind::Rejected => 1,
                Kind::Invalid | Kind::KeyReused => 65,
                Kind::Malformed | Kind::Internal => 70,
                Kind::Throttled | Kind::Unavailable => 75,
                Kind::NotAllowed => 77,
            },
        })
    }
}

impl Command {
    /// Runs it.
    #[must_use]
    pub fn run(self) -> ExitCode {
        let Self { socket, acting, operator, task } = self;
        let ordinary = match task {
            Task::Ordinary(ordinary) => ordinary,
            Task::Forced => match forced::asked() {
                Ok(ordinary) => ordinary,
                Err(exit) => return exit,
            },
        };
        let caller = Caller { socket, hello: Hello { number: acting, operator } };
        let done = match ordinary {
            Ordinary::Send(send) => caller.send(send),
            Ordinary::Inbox(listing) => caller.list(Ask::Inbox(listing.list()), listing.json),
            Ordinary::Log(listing) => caller.list(Ask::Log(listing.list()), listing.json),
            Ordinary::Follow(following) => caller.follow(following),
        };
        match done {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                if !matches!(failure, Failure::Output) {
                    let _ = writeln!(
                        std::io::stderr(),
                        "switchyard: {}",
                        terminal::visible(&failure.to_string())
                    );
                }
                failure.exit()
            }
        }
    }
}

/// As whom, and where.
struct Caller {
    socket: PathBuf,
    hello: Hello,
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T, Failure> {
    serde_json::from_value(value).map_err(|error| Failure::Strange(error.to_string()))
}

fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|_| Failure::Output)
}

impl Caller {
    fn connect(&self) -> Result<Client, Failure> {
        let mut client = Client::connect(&self.socket)?;
        client.ask(Ask::Hello(self.hello.clone()))?;
        Ok(client)
    }

    fn send(&self, send: Send) -> Result<(), Failure> {
        let text = if send.text.is_empty() { from_input()? } else { send.text.join(" ") };
        // A key even if none is wanted: so that a cut connection does not leave it open whether the text was accepted.
        let key = match send.key {
            Some(key) => key,
            None => random_key()?,
        };
        let submission = Submission { to: send.to, text, key: Some(key.clone()) };
        let begun = Instant::now();
        // Where nobody was there in the first place, nobody is waited for.
        let mut reached = false;
        let accepted: Accepted = loop {
            let tried = Client::connect(&self.socket).and_then(|mut client| {
                reached = true;
                client.ask(Ask::Hello(self.hello.clone()))?;
                client.ask(Ask::Send(submission.clone()))
            });
            match tried {
                Ok(accepted) => break read(accepted)?,
                Err(Failure::Broken | Failure::NoAppliance { .. }) if reached && begun.elapsed() < REPEAT => {
                    client::pause(PAUSE);
                }
                Err(failure)
                    if reached && matches!(failure, Failure::Broken | Failure::NoAppliance { .. }) =>
                {
                    let detail = format!(
                        "no answer: whether the text was accepted is not known. Repeat it with --key {key} to learn it"
                    );
                    return Err(Failure::Fault(crate::wire::Fault::new(Kind::Unavailable, detail)));
                }
                Err(Failure::Fault(mut fault)) if fault.kind == Kind::Unavailable => {
                    fault.detail.push_str(&format!(" (under --key {key} it can be repeated safely)"));
                    return Err(Failure::Fault(fault));
                }
                Err(failure) => return Err(failure),
            }
        };
        if send.json {
            return print(&format!("{}\n", terminal::json(&accepted)));
        }
        print(&format!("{}\n", terminal::visible(&accepted.message)))
    }

    fn list(&self, ask: Ask, json: bool) -> Result<(), Failure> {
        let value = self.connect()?.ask(ask)?;
        let page: Page = read(value)?;
        if json {
            return print(&format!("{}\n", terminal::json(&page)));
        }
        // Newest last, where people look first.
        let lines = page.messages.iter().rev().map(|item| shown::line(item) + "\n");
        print(&lines.collect::<String>())?;
        let mut err = std::io::stderr();
        if let Some(why) = &page.incomplete {
            let _ = writeln!(err, "switchyard: {}", terminal::visible(why));
        }
        if let Some(next) = &page.next {
            let _ =
                writeln!(err, "switchyard: there is more; go on with --before {}", terminal::visible(next));
        }
        Ok(())
    }

    fn follow(&self, following: Following) -> Result<(), Failure> {
        let mut client = self.connect()?;
        client.ask(Ask::Follow(Follow { number: following.number }))?;
        loop {
            let event = client.event()?;
            if following.json {
                print(&format!("{}\n", terminal::json(&event)))?;
                continue;
            }
            match event {
                Event::Message(item) => print(&(shown::line(&item) + "\n"))?,
                Event::Lost(count) => print(&format!("({count} changes are left out: this was too slow)\n"))?,
            }
        }
    }
}

/// The text from standard input, without the line's end that people and `echo` put after it.
fn from_input() -> Result<String, Failure> {
    let input = std::io::stdin();
    if input.is_terminal() {
        let _ = writeln!(std::io::stderr(), "switchyard: the text, please; end it with Ctrl-D");
    }
    let mut octets = Vec::new();
    let most = crate::wire::LONGEST_LINE as u64;
    let read = input.lock().take(most).read_to_end(&mut octets);
    read.map_err(|error| Failure::Input(format!("standard input cannot be read: {error}")))?;
    let mut text = String::from_utf8(octets)
        .map_err(|_| Failure::Input("the text on standard input is no UTF-8".to_owned()))?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

fn random_key() -> Result<String, Failure> {
    let mut octets = [0; 16];
    getrandom::fill(&mut octets).map_err(|error| Failure::Strange(format!("no randomness: {error}")))?;
    Ok(octets.iter().map(|octet| format!("{octet:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        command: Command,
    }

    fn parse(words: &str) -> Result<Command, String> {
        let all = std::iter::once("sms").chain(words.split(' '));
        Line::try_parse_from(all).map(|line| line.command).map_err(|error| error.to_string())
    }

    #[test]
    fn whom_one_acts_as_is_not_what_one_looks_for() {
        let command = parse("--as +16195550123 log --limit 3").unwrap();
        assert_eq!(command.acting.as_deref(), Some("+16195550123"));
        let Task::Ordinary(Ordinary::Log(listing)) = command.task else { panic!("no log") };
        assert_eq!((listing.number, listing.limit), (None, Some(3)));
        let command = parse("inbox --operator --number +16195550123").unwrap();
        assert!(command.acting.is_none() && command.operator);
        let Task::Ordinary(Ordinary::Inbox(listing)) = command.task else { panic!("no inbox") };
        assert_eq!(listing.number.as_deref(), Some("+16195550123"));
    }

    #[test]
    fn options_may_stand_on_either_side_of_the_word_but_not_in_the_text() {
        for words in ["send --as +1619 +1620 hi there", "--as +1619 send +1620 hi there"] {
            let command = parse(words).unwrap();
            assert_eq!(command.acting.as_deref(), Some("+1619"), "{words}");
            let Task::Ordinary(Ordinary::Send(send)) = command.task else { panic!("no send") };
            assert_eq!((send.to.as_str(), send.text.join(" ").as_str()), ("+1620", "hi there"), "{words}");
        }
        let Task::Ordinary(Ordinary::Send(send)) = parse("send +1620 hi --as +1619").unwrap().task else {
            panic!("no send")
        };
        assert_eq!(send.text.join(" "), "hi --as +1619");
        assert!(parse("--as +1619 --operator log").is_err());
        assert!(parse("listen").is_err());
    }
}
