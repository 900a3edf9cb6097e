//! Where a command's words go, and how it ends.

use anstyle::{AnsiColor, Style};
use client::{ClientError, terminal};
use serde_json::Value;
use std::cell::RefCell;
use std::fmt;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

/// Why a command has not done what it should.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The appliance refuses, or cannot be reached.
    #[error(transparent)]
    Appliance(#[from] ClientError),
    /// Some of what was asked for was refused; what was is told already.
    #[error("{0}")]
    InPart(String),
    /// There is no such thing, or it cannot be done as things are.
    #[error("{0}")]
    Refused(String),
    /// The command line asks for what cannot be.
    #[error("{0}")]
    Usage(String),
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The connection to the appliance has ended in the midst of something.
    #[error("{0}")]
    Broken(String),
    /// Something is wrong with what was looked at; what is, is told already.
    #[error("{0}")]
    Unsound(String),
    /// Nobody reads what is printed any more.
    #[error("nobody reads this any more")]
    Output,
}

/// One thing that is wrong with a document, at its place.
fn misplaced(wrong: &Value) -> String {
    let word = |name: &str| wrong[name].as_str().unwrap_or_default().to_owned();
    let allowed = match word("allowed") {
        allowed if allowed.is_empty() => String::new(),
        allowed => format!("; allowed: {allowed}"),
    };
    format!("{}: {}{allowed}", word("pointer"), word("what"))
}

impl Failure {
    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::File { path: path.to_owned(), source }
    }

    /// 1: the appliance understood and refused; 3: it is not well; 2: anything else.
    fn exit(&self) -> ExitCode {
        match self {
            Self::Appliance(ClientError::Refused { status: 404 | 409 | 412 | 422 | 428 | 429, .. })
            | Self::InPart(_)
            | Self::Refused(_) => ExitCode::from(1),
            Self::Unsound(_) => ExitCode::from(3),
            Self::Output => ExitCode::SUCCESS,
            _ => ExitCode::from(2),
        }
    }
}

/// What a word on a terminal is to look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// As it should be.
    Good,
    /// Worth a look.
    Doubtful,
    /// Not as it should be.
    Bad,
    /// What a screen is about.
    Strong,
}

impl Tone {
    /// A word in its colour.
    pub(crate) fn paint(self, word: &str) -> String {
        let style = match self {
            Self::Good => AnsiColor::Green.on_default(),
            Self::Doubtful => AnsiColor::Yellow.on_default(),
            Self::Bad => AnsiColor::Red.on_default().bold(),
            Self::Strong => Style::new().bold(),
        };
        format!("{style}{word}{style:#}")
    }
}

/// The streams that a command speaks on.
pub(crate) struct Streams {
    out: RefCell<Box<dyn Write>>,
    error: RefCell<Box<dyn Write>>,
    /// Whether standard output shows colours.
    colour: bool,
    /// Whether standard output is a terminal.
    terminal: bool,
    /// Whether somebody looks at standard error while it is written.
    watched: bool,
    clock: fn() -> u64,
}

impl Streams {
    /// Those of the process. Colours are for terminals only, and not where `NO_COLOR` is set.
    pub(crate) fn standard() -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let plain = set("NO_COLOR").is_some() || set("TERM").is_some_and(|term| term == "dumb");
        Self {
            out: RefCell::new(Box::new(std::io::stdout())),
            error: RefCell::new(Box::new(std::io::stderr())),
            colour: !plain && std::io::stdout().is_terminal(),
            terminal: std::io::stdout().is_terminal(),
            watched: std::io::stderr().is_terminal(),
            clock: || {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
            },
        }
    }

    /// Others, at a time that stands still.
    #[cfg(test)]
    pub(crate) fn captured(out: impl Write + 'static, error: impl Write + 'static) -> Self {
        Self {
            out: RefCell::new(Box::new(out)),
            error: RefCell::new(Box::new(error)),
            colour: false,
            terminal: false,
            watched: false,
            clock: || crate::stub::NOW,
        }
    }
}

impl fmt::Debug for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams").field("colour", &self.colour).finish_non_exhaustive()
    }
}

/// What a command has to say, for people or for programs.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) json: bool,
    streams: Streams,
}

impl Output {
    pub(crate) fn new(streams: Streams, json: bool) -> Self {
        Self { json, streams }
    }

    /// Milliseconds since the epoch, by this machine's clock.
    pub(crate) fn now(&self) -> u64 {
        (self.streams.clock)()
    }

    /// Whether somebody looks on while the command works.
    pub(crate) fn is_watched(&self) -> bool {
        self.streams.watched && !self.json
    }

    /// Whether colours are shown.
    pub(crate) fn colour(&self) -> bool {
        self.streams.colour
    }

    /// Columns and lines of the terminal; nothing where there is none.
    pub(crate) fn size(&self) -> Option<(u16, u16)> {
        let size = termion::terminal_size();
        size.ok().filter(|(width, height)| self.streams.terminal && *width > 0 && *height > 0)
    }

    /// A word as it is to look like.
    pub(crate) fn paint(&self, tone: Tone, word: &str) -> String {
        if self.streams.colour { tone.paint(word) } else { word.to_owned() }
    }

    /// A line for people.
    pub(crate) fn line(&self, line: &str) -> Result<(), Failure> {
        self.write(&format!("{line}\n"))
    }

    /// A document on one line, for programs.
    pub(crate) fn document(&self, value: &Value) -> Result<(), Failure> {
        self.write(&format!("{}\n", terminal::json(value)))
    }

    pub(crate) fn write(&self, text: &str) -> Result<(), Failure> {
        self.octets(text.as_bytes())
    }

    pub(crate) fn octets(&self, octets: &[u8]) -> Result<(), Failure> {
        let mut out = self.streams.out.borrow_mut();
        out.write_all(octets).and_then(|()| out.flush()).map_err(|_| Failure::Output)
    }

    /// A remark that is no part of the answer.
    pub(crate) fn remark(&self, line: &str) {
        // Whoever reads no remarks has the answer and the exit status.
        let _ = writeln!(self.streams.error.borrow_mut(), "switchyard: {}", terminal::visible(line));
    }

    /// Ends a command. What was refused goes to standard error, for programs as the appliance has put it.
    pub(crate) fn end(&self, result: Result<(), Failure>) -> ExitCode {
        let Err(failure) = result else { return ExitCode::SUCCESS };
        match &failure {
            Failure::Output => {}
            Failure::Appliance(ClientError::Refused { problem, .. }) if self.json && problem.is_object() => {
                let _ = writeln!(self.streams.error.borrow_mut(), "{}", terminal::json(problem));
            }
            Failure::Appliance(ClientError::Refused { problem, title, detail, .. }) => {
                let told: Vec<String> =
                    problem["problems"].as_array().into_iter().flatten().map(misplaced).collect();
                match (problem.get("reason").and_then(Value::as_str), &told[..]) {
                    (Some(reason), _) => self.remark(&format!("{reason}: {detail}")),
                    (None, []) => self.remark(&failure.to_string()),
                    // The detail tells the first of them, too.
                    (None, [one]) => self.remark(&format!("{title}: {one}")),
                    (None, all) => {
                        self.remark(&format!("{title}: {} things are wrong", all.len()));
                        all.iter().for_each(|one| self.remark(one));
                    }
                }
            }
            failure => {
                for line in failure.to_string().lines() {
                    self.remark(line);
                }
            }
        }
        failure.exit()
    }
}
