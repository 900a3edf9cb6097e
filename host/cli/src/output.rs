//! The output of commands, and their errors and exit codes.

use crate::table_output::TableArgs;
use crate::yaml::yaml;
use anstyle::{AnsiColor, Style};
use api::{FieldProblem, Problem};
use clap::ValueEnum;
use client::{ClientError, terminal};
use serde::Serialize;
use std::cell::RefCell;
use std::fmt;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The error of a command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The API refused the request, or cannot be reached.
    #[error(transparent)]
    Appliance(#[from] ClientError),
    /// Part of the request was refused; the details are already printed.
    #[error("{0}")]
    PartlyRefused(String),
    /// The object does not exist, or its state does not permit the action.
    #[error("{0}")]
    Refused(String),
    /// The command line is wrong.
    #[error("{0}")]
    Usage(String),
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error.
        source: std::io::Error,
    },
    /// The connection to the appliance ended too early, or its answer is not valid.
    #[error("{0}")]
    Interrupted(String),
    /// A check found problems; they are already printed.
    #[error("{0}")]
    ProblemsFound(String),
    /// Standard output is closed.
    #[error("standard output is closed")]
    Output,
}

/// A problem of a document, with its JSON pointer.
fn problem_text(FieldProblem { pointer, what, allowed }: &FieldProblem) -> String {
    match allowed {
        Some(allowed) => format!("{pointer}: {what}; allowed: {allowed}"),
        None => format!("{pointer}: {what}"),
    }
}

impl Failure {
    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::File { path: path.to_owned(), source }
    }

    /// The exit code: 1 if the API refused the request, 3 if a check found problems, the code of a broken pipe if the output
    /// is closed, 2 for all other errors.
    fn exit_code(&self) -> ExitCode {
        match self {
            Self::Appliance(ClientError::Refused(Problem {
                status: 404 | 409 | 412 | 422 | 428 | 429,
                ..
            }))
            | Self::PartlyRefused(_)
            | Self::Refused(_) => ExitCode::from(1),
            Self::ProblemsFound(_) => ExitCode::from(3),
            Self::Output => ExitCode::from(broken_pipe::STATUS),
            _ => ExitCode::from(2),
        }
    }
}

/// The style of a text on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Ok,
    /// An admin should investigate.
    Warning,
    Error,
    /// A title.
    Strong,
}

impl Tone {
    /// The text in this style, with escape sequences.
    pub(crate) fn paint(self, word: &str) -> String {
        let style = match self {
            Self::Ok => AnsiColor::Green.on_default(),
            Self::Warning => AnsiColor::Yellow.on_default(),
            Self::Error => AnsiColor::Red.on_default().bold(),
            Self::Strong => Style::new().bold(),
        };
        format!("{style}{word}{style:#}")
    }
}

/// The output streams of a command, and its clock.
pub(crate) struct Streams {
    out: RefCell<Box<dyn Write>>,
    error: RefCell<Box<dyn Write>>,
    /// Whether standard output shows colours.
    colour: bool,
    /// Whether standard output is a terminal.
    stdout_is_terminal: bool,
    /// Whether standard error is a terminal.
    stderr_is_terminal: bool,
    clock: fn() -> u64,
}

impl Streams {
    /// The streams of the process. Colours are used on terminals only, and not if `NO_COLOR` is set.
    pub(crate) fn standard() -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let plain = set("NO_COLOR").is_some() || set("TERM").is_some_and(|term| term == "dumb");
        Self {
            out: RefCell::new(Box::new(std::io::stdout())),
            error: RefCell::new(Box::new(std::io::stderr())),
            colour: !plain && std::io::stdout().is_terminal(),
            stdout_is_terminal: std::io::stdout().is_terminal(),
            stderr_is_terminal: std::io::stderr().is_terminal(),
            clock: || model::Timestamp::now().0,
        }
    }

    /// Streams of a test, with a fixed time.
    #[cfg(test)]
    pub(crate) fn captured(out: impl Write + 'static, error: impl Write + 'static) -> Self {
        Self {
            out: RefCell::new(Box::new(out)),
            error: RefCell::new(Box::new(error)),
            colour: false,
            stdout_is_terminal: false,
            stderr_is_terminal: false,
            clock: || crate::fixtures::NOW,
        }
    }
}

impl fmt::Debug for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams").field("colour", &self.colour).finish_non_exhaustive()
    }
}

/// The format of the output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Text for people.
    #[default]
    Text,
    /// The API's documents as JSON, one a line.
    Json,
    /// The same as YAML.
    Yaml,
    /// Tables as CSV; everything else goes to standard error.
    Csv,
}

/// The output of a command.
#[derive(Debug)]
pub(crate) struct Output {
    /// Whether the API's documents are printed, as JSON or YAML.
    pub(crate) json: bool,
    pub(crate) format: OutputFormat,
    pub(crate) tables: TableArgs,
    streams: Streams,
}

impl Output {
    pub(crate) fn new(streams: Streams, format: OutputFormat, tables: TableArgs) -> Self {
        Self { json: matches!(format, OutputFormat::Json | OutputFormat::Yaml), format, tables, streams }
    }

    /// The output of a command that prints no tables.
    pub(crate) fn without_tables(streams: Streams, json: bool) -> Self {
        let format = if json { OutputFormat::Json } else { OutputFormat::Text };
        Self::new(streams, format, TableArgs::default())
    }

    /// Milliseconds since the epoch, by this machine's clock.
    pub(crate) fn now(&self) -> u64 {
        (self.streams.clock)()
    }

    /// Whether the command shows its progress.
    pub(crate) fn shows_progress(&self) -> bool {
        self.streams.stderr_is_terminal && !self.json
    }

    /// Whether text for people is printed on a terminal.
    pub(crate) fn is_text_on_a_terminal(&self) -> bool {
        self.streams.stdout_is_terminal && self.format == OutputFormat::Text
    }

    /// Whether colours are shown.
    pub(crate) fn colour(&self) -> bool {
        self.streams.colour
    }

    /// Columns and lines of the terminal; `None` without a terminal.
    pub(crate) fn terminal_size(&self) -> Option<(u16, u16)> {
        let size = termion::terminal_size();
        size.ok().filter(|(width, height)| self.streams.stdout_is_terminal && *width > 0 && *height > 0)
    }

    /// A text in a style, if colours are shown.
    pub(crate) fn paint(&self, tone: Tone, word: &str) -> String {
        if self.streams.colour { tone.paint(word) } else { word.to_owned() }
    }

    /// Prints a line.
    pub(crate) fn line(&self, line: &str) -> Result<(), Failure> {
        self.write(&format!("{line}\n"))
    }

    /// Prints a document: JSON on one line, or YAML.
    pub(crate) fn document(&self, value: &impl Serialize) -> Result<(), Failure> {
        // The fields of a `Value` are sorted, the fields of a type are not.
        let value = serde_json::to_value(value).unwrap_or_default();
        match self.format {
            OutputFormat::Yaml => self.write(&format!("---\n{}", yaml(&value))),
            _ => self.write(&format!("{}\n", terminal::json(&value))),
        }
    }

    pub(crate) fn write(&self, text: &str) -> Result<(), Failure> {
        if self.format == OutputFormat::Csv {
            // Standard output is only for tables.
            let mut error = self.streams.error.borrow_mut();
            return error.write_all(text.as_bytes()).map_err(|_| Failure::Output);
        }
        self.octets(text.as_bytes())
    }

    pub(crate) fn octets(&self, octets: &[u8]) -> Result<(), Failure> {
        let mut out = self.streams.out.borrow_mut();
        out.write_all(octets).and_then(|()| out.flush()).map_err(|_| Failure::Output)
    }

    /// Prints a remark on standard error.
    pub(crate) fn remark(&self, line: &str) {
        // Errors are ignored: the output and the exit status are enough.
        let _ = writeln!(self.streams.error.borrow_mut(), "switchyard: {}", terminal::visible(line));
    }

    /// Finishes a command: prints its error, and returns the exit code. With --json, a refusal is printed as the API's document.
    pub(crate) fn finish(&self, result: Result<(), Failure>) -> ExitCode {
        let Err(failure) = result else { return ExitCode::SUCCESS };
        match &failure {
            Failure::Output => {}
            Failure::Appliance(ClientError::Refused(problem)) if self.json => {
                let problem = serde_json::to_value(problem).unwrap_or_default();
                let _ = writeln!(self.streams.error.borrow_mut(), "{}", terminal::json(&problem));
            }
            Failure::Appliance(ClientError::Refused(problem)) => {
                let Problem { title, detail, .. } = problem;
                match (problem.reason_code(), &problem.problems[..]) {
                    (Some(reason), _) => self.remark(&format!("{reason}: {detail}")),
                    (None, []) => self.remark(&failure.to_string()),
                    // The detail contains the first problem as well.
                    (None, [one]) => self.remark(&format!("{title}: {}", problem_text(one))),
                    (None, all) => {
                        self.remark(&format!("{title}: {} problems", all.len()));
                        all.iter().for_each(|one| self.remark(&problem_text(one)));
                    }
                }
            }
            failure => {
                for line in failure.to_string().lines() {
                    self.remark(line);
                }
            }
        }
        failure.exit_code()
    }
}
