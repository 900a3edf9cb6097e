//! Where a command's words go, and how it ends.

use client::{ClientError, terminal};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Why a command has not done what it should.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The appliance refuses, or cannot be reached.
    #[error(transparent)]
    Appliance(#[from] ClientError),
    /// Some of what was asked for was refused; what was is told already.
    #[error("{0}")]
    InPart(String),
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
    /// Nobody reads what is printed any more.
    #[error("nobody reads this any more")]
    Output,
}

impl Failure {
    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::File { path: path.to_owned(), source }
    }

    /// 1: the appliance understood and refused; 2: anything else.
    fn exit(&self) -> ExitCode {
        match self {
            Self::Appliance(ClientError::Refused { status: 404 | 409 | 422, .. }) | Self::InPart(_) => {
                ExitCode::from(1)
            }
            Self::Output => ExitCode::SUCCESS,
            _ => ExitCode::from(2),
        }
    }
}

/// Standard output, for people or for programs.
pub(crate) struct Output {
    pub(crate) json: bool,
}

impl Output {
    /// A line for people.
    pub(crate) fn line(&self, line: &str) -> Result<(), Failure> {
        self.write(&format!("{line}\n"))
    }

    /// A document on one line, for programs.
    pub(crate) fn document(&self, value: &Value) -> Result<(), Failure> {
        self.write(&format!("{}\n", terminal::json(value)))
    }

    pub(crate) fn write(&self, text: &str) -> Result<(), Failure> {
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|_| Failure::Output)
    }

    /// A remark that is no part of the answer.
    pub(crate) fn remark(&self, line: &str) {
        // Whoever reads no remarks has the answer and the exit status.
        let _ = writeln!(std::io::stderr(), "switchyard: {}", terminal::visible(line));
    }

    /// Ends a command. What was refused goes to standard error, for programs as the appliance has put it.
    pub(crate) fn end(&self, result: Result<(), Failure>) -> ExitCode {
        let Err(failure) = result else { return ExitCode::SUCCESS };
        match &failure {
            Failure::Output => {}
            Failure::Appliance(ClientError::Refused { problem, .. }) if self.json && problem.is_object() => {
                let _ = writeln!(std::io::stderr(), "{}", terminal::json(problem));
            }
            Failure::Appliance(ClientError::Refused { problem, detail, .. }) => {
                match problem.get("reason").and_then(Value::as_str) {
                    Some(reason) => self.remark(&format!("{reason}: {detail}")),
                    None => self.remark(&failure.to_string()),
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
