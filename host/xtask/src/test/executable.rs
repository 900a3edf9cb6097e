//! A test executable built by cargo.

use std::path::PathBuf;

/// The kind of tests in an executable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TestKind {
    /// Unit tests of a crate.
    Unit,
    /// Integration tests of a crate, which use its public interface.
    Integration,
    /// Behaviour tests, which run the daemon and the other programs.
    Behaviour,
}

/// A test executable.
#[derive(Debug, Clone)]
pub(super) struct Executable {
    pub(super) package: String,
    /// The name of its target.
    pub(super) target: String,
    pub(super) kind: TestKind,
    pub(super) path: PathBuf,
    /// The package's folder, where its tests run.
    pub(super) folder: PathBuf,
}

impl Executable {
    /// The name to show: `engine`, `engine integration`, `behaviour gsm`.
    pub(super) fn name(&self) -> String {
        match self.kind {
            TestKind::Unit => self.package.clone(),
            TestKind::Integration => format!("{} {}", self.package, self.target),
            TestKind::Behaviour => format!("behaviour {}", self.target),
        }
    }

    /// Whether `--only` with this name selects all tests of the executable.
    pub(super) fn has_name(&self, name: &str) -> bool {
        self.package == name
            || (self.kind == TestKind::Behaviour && self.target == name)
            || self.name() == name
    }
}
