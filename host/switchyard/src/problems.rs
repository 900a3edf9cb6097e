//! Problems that operations of several services return.

use admin::{Problem, ProblemKind};
use api::FieldProblem;
use archive::ArchiveError;
use hooks::HookError;

pub(crate) fn shutting_down_problem() -> Problem {
    Problem::new(ProblemKind::Unavailable, "the appliance is shutting down")
}

pub(crate) fn archive_problem(error: &ArchiveError) -> Problem {
    Problem::new(ProblemKind::Unavailable, error.to_string())
}

/// A field of the request's document is invalid.
pub(crate) fn field_problem(pointer: &str, what: impl Into<String>, allowed: Option<&str>) -> Problem {
    let what = what.into();
    let mut problem = Problem::new(ProblemKind::Unprocessable, format!("{pointer}: {what}"));
    problem.problems.push(FieldProblem {
        pointer: pointer.to_owned(),
        what,
        allowed: allowed.map(str::to_owned),
    });
    problem
}

pub(crate) fn hook_problem(error: &HookError) -> Problem {
    let kind = match error {
        HookError::Storage { .. } | HookError::Engine(_) => ProblemKind::Internal,
        HookError::Unknown { .. }
        | HookError::NoPolicySchema { .. }
        | HookError::NoSbom { .. }
        | HookError::NoCandidate => ProblemKind::NotFound,
        HookError::NoEarlierBinding | HookError::Changed { .. } => ProblemKind::Conflict,
        _ => ProblemKind::Unprocessable,
    };
    Problem::new(kind, error.to_string())
}

/// The request is well-formed but contradictory.
pub(crate) fn unprocessable(what: impl Into<String>) -> Problem {
    Problem::new(ProblemKind::Unprocessable, what)
}
