//! Problems of a configuration document, with their positions.

use crate::SourceLines;
use std::cell::RefCell;
use std::fmt;
use std::path::{Path, PathBuf};

/// One problem in a configuration document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The line, counted from 1, if the document came from a file.
    pub line: Option<usize>,
    /// The key with its tables: `peer[0].address`.
    pub key: String,
    /// The same as a JSON pointer (RFC 6901): `/peer/0/address`.
    pub pointer: String,
    /// The problem, as the end of a sentence that begins with the key.
    pub message: String,
    /// The allowed values, if a few words can name them.
    pub allowed: Option<String>,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)?;
        match &self.allowed {
            Some(allowed) => write!(f, ", and must be {allowed}"),
            None => Ok(()),
        }
    }
}

/// Diagnostics of one pass over a document: the positions of its lines, and the problems.
#[derive(Debug, Default)]
pub struct Diagnostics {
    lines: Option<SourceLines>,
    base: PathBuf,
    problems: RefCell<Vec<ConfigProblem>>,
}

impl Diagnostics {
    /// Starts a pass; `lines` are the line positions of the file, if the document came from one. Relative paths refer
    /// to `base`.
    #[must_use]
    pub fn new(lines: Option<SourceLines>, base: &Path) -> Self {
        Self { lines, base: base.to_owned(), ..Self::default() }
    }

    pub(crate) fn base(&self) -> &Path {
        &self.base
    }

    pub(crate) fn is_file(&self) -> bool {
        self.lines.is_some()
    }

    pub(crate) fn line_of_value(&self, pointer: &str) -> Option<usize> {
        self.lines.as_ref()?.value(pointer)
    }

    pub(crate) fn line_of_key(&self, pointer: &str) -> Option<usize> {
        self.lines.as_ref()?.key(pointer)
    }

    /// Records a problem.
    pub fn add(&self, problem: ConfigProblem) {
        self.problems.borrow_mut().push(problem);
    }

    /// All problems, by line number or, without a file, in the order in which they were found.
    #[must_use]
    pub fn problems(self) -> Vec<ConfigProblem> {
        let mut problems = self.problems.into_inner();
        problems.sort_by_key(|problem| problem.line);
        problems
    }
}
