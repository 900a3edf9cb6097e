//! Durations of the phases of a run.

use std::time::{Duration, Instant};

/// The phases of a run, in order.
#[derive(Debug, Default)]
pub(super) struct Phases {
    ended: Vec<(String, Duration)>,
}

impl Phases {
    /// Runs a phase.
    pub(super) fn time<T>(&mut self, name: &str, work: impl FnOnce() -> T) -> T {
        println!("test: {name} ...");
        let begun = Instant::now();
        let outcome = work();
        self.ended.push((name.to_owned(), begun.elapsed()));
        outcome
    }

    /// Prints the table.
    pub(super) fn print(&self) {
        println!("\ntime by phase, in seconds:");
        for (name, time) in &self.ended {
            println!("{:>8.1}  {name}", time.as_secs_f64());
        }
        let sum: Duration = self.ended.iter().map(|(_, time)| *time).sum();
        println!("{:>8.1}  in all", sum.as_secs_f64());
    }
}
