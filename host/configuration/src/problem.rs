//! What is wrong with a document, and where.

use crate::Lines;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;

/// One thing that is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1, where the document came as a file.
    pub line: Option<usize>,
    /// The key, with the tables that it stands in: `peer[0].address`.
    pub key: String,
    /// The same as a JSON pointer (RFC 6901): `/peer/0/address`.
    pub pointer: String,
    /// What is wrong.
    pub what: String,
    /// What it must be instead, where that can be said in a few words.
    pub allowed: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.what)?;
        match &self.allowed {
            Some(allowed) => write!(f, ", and must be {allowed}"),
            None => Ok(()),
        }
    }
}

/// One reading of a document: where its lines are, and everything that was found on the way.
#[derive(Debug, Default)]
pub struct Reading {
    lines: Option<Lines>,
    problems: RefCell<Vec<Problem>>,
    asked: RefCell<BTreeSet<String>>,
}

impl Reading {
    /// Begins to read; `lines` of the file that the document came from, if it came from one.
    #[must_use]
    pub fn new(lines: Option<Lines>) -> Self {
        Self { lines, ..Self::default() }
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

    /// Remembers a problem.
    pub fn add(&self, problem: Problem) {
        self.problems.borrow_mut().push(problem);
    }

    pub(crate) fn asked(&self, key: String) {
        self.asked.borrow_mut().insert(key);
    }

    /// All problems, in the order of the file's lines or, without a file, of reading.
    #[must_use]
    pub fn problems(self) -> Vec<Problem> {
        let mut problems = self.problems.into_inner();
        problems.sort_by_key(|problem| problem.line);
        problems
    }

    /// All keys that were asked for, wherever sections were read to their end: `peer[].address`.
    #[must_use]
    pub fn keys(&self) -> BTreeSet<String> {
        self.asked.borrow().clone()
    }
}
