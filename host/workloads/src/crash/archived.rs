//! Check of the archive at the end of the run.

use anyhow::{Context as _, Result, ensure};
use sqlx::ConnectOptions as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use std::path::Path;
use std::str::FromStr as _;
use testkit::load::Tally;

/// The URL of the archive in this folder.
pub(super) fn url(folder: &Path) -> String {
    format!("sqlite:{}", folder.join("archive.db").display())
}

/// Checks that the archive has every positively answered message exactly once. Returns the number of its messages.
///
/// # Errors
/// A message is missing or duplicated, or the archive cannot be read.
pub(super) fn check(url: &str, tally: &Tally) -> Result<u64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let numbers = runtime.block_on(numbers(url))?;
    let archived = numbers.len() as u64;
    let mut counts = vec![0_u8; tally.capacity()];
    for number in numbers {
        let count = usize::try_from(number).ok().and_then(|number| counts.get_mut(number));
        let count =
            count.with_context(|| format!("the archive has the message {number}, which nobody sent"))?;
        *count = count.saturating_add(1);
    }
    let is_missing = |number: &u64| counts.get(*number as usize) == Some(&0);
    let missing: Vec<u64> = tally.accepted_numbers().filter(is_missing).take(10).collect();
    ensure!(missing.is_empty(), "accepted messages are not in the archive, the first: {missing:?}");
    let twice = counts.iter().filter(|count| **count > 1).count();
    ensure!(twice == 0, "the archive has {twice} messages twice");
    Ok(archived)
}

/// Message numbers of all archived messages from the source: the last digits of their destinations.
async fn numbers(url: &str) -> Result<Vec<u64>> {
    let mut connection: SqliteConnection = SqliteConnectOptions::from_str(url)?.connect().await?;
    let sql = "SELECT destination FROM messages WHERE destination LIKE '861%'";
    let destinations: Vec<String> = sqlx::query_scalar(sql).fetch_all(&mut connection).await?;
    let number = |destination: String| {
        let digits = destination.get(3..).context("a short destination")?;
        digits.parse().with_context(|| format!("the destination {destination}"))
    };
    destinations.into_iter().map(number).collect()
}
