//! Pace buckets and send windows that rules name.

use crate::TableNames;
use crate::document::{BucketEntry, DayKeyword, EachKeyword, UnitKeyword, WindowEntry};
use std::time::Duration;

/// Maximum length of a name, in octets, and of the first part of a name that continues with a group, an account or a source.
const MAX_NAME: usize = 64;
const MAX_BEGINNING: usize = 32;
/// The largest amount of a bucket.
const MAX_AMOUNT: u64 = 1_000_000_000_000;
/// The longest time in which a bucket fills.
const MAX_PERIOD: Duration = Duration::from_secs(31 * 86_400);

/// A pace bucket that a message uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    /// Its name.
    pub name: String,
    /// Its definition; `None`: the configuration defines it.
    pub limit: Option<BucketLimit>,
}

/// The definition of a pace bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketLimit {
    /// Messages or segments in its period.
    pub amount: u64,
    /// Its period.
    pub period: Period,
    /// Whether it counts segments, not messages.
    pub segments: bool,
}

/// The period of a pace bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Period {
    /// It fills evenly in this time.
    Time(Duration),
    /// It is full at the beginning of each day in this time zone.
    Day(String),
}

/// A send window that a message uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Its name.
    pub name: String,
    /// Its hours; `None`: the configuration defines it.
    pub hours: Option<WindowHours>,
}

/// The hours of a send window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowHours {
    /// The time zone.
    pub zone: String,
    /// The days on which the hours begin, from 0 for Monday; empty: all.
    pub days: Vec<u8>,
    /// Minute of the day at which the hours begin.
    pub opens: u16,
    /// Minute of the day at which the hours end.
    pub closes: u16,
}

/// The sender of a message that uses the limits.
#[derive(Debug, Clone, Copy)]
pub struct PacedSender<'a> {
    /// The account.
    pub account: &'a str,
    /// The source address.
    pub source: &'a str,
}

/// A bucket and a window that a rule names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaceRule {
    bucket: Option<BucketRule>,
    window: Option<Window>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct BucketRule {
    name: String,
    amount: Amount,
    period: Period,
    segments: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Amount {
    /// The bucket of the configuration.
    Configured,
    /// One bucket.
    One(u64),
    /// A bucket for each account or source.
    Each(u64, EachKeyword),
    /// A bucket for each group of sources, by a table: source → `GROUP AMOUNT`.
    Groups(usize, String),
}

impl PaceRule {
    /// Reads a rule with a bucket, a window, or both.
    ///
    /// # Errors
    /// The correction.
    pub fn read(
        bucket: Option<&BucketEntry>,
        window: Option<&WindowEntry>,
        tables: &mut TableNames,
    ) -> Result<Self, String> {
        let bucket = bucket.map(|entry| read_bucket(entry, tables)).transpose()?;
        Ok(Self { bucket, window: window.map(read_window).transpose()? })
    }

    /// Adds the buckets and windows that a message uses; existing names stay unchanged. `look_up` returns the value of a key
    /// in the table with this index in the [`TableNames`].
    ///
    /// # Errors
    /// The mistake in the row of a table.
    pub fn add(
        &self,
        sender: PacedSender<'_>,
        look_up: impl Fn(usize, &str) -> Option<String>,
        (buckets, windows): (&mut Vec<Bucket>, &mut Vec<Window>),
    ) -> Result<(), String> {
        if let Some(window) =
            self.window.as_ref().filter(|one| windows.iter().all(|other| other.name != one.name))
        {
            windows.push(window.clone());
        }
        let bucket = self.bucket.as_ref().map(|rule| rule.bucket(sender, look_up));
        let Some(bucket) = bucket.transpose()?.flatten() else { return Ok(()) };
        if buckets.iter().all(|other| other.name != bucket.name) {
            buckets.push(bucket);
        }
        Ok(())
    }
}

impl BucketRule {
    fn bucket(
        &self,
        sender: PacedSender<'_>,
        look_up: impl Fn(usize, &str) -> Option<String>,
    ) -> Result<Option<Bucket>, String> {
        let (name, amount) = match &self.amount {
            Amount::Configured => return Ok(Some(Bucket { name: self.name.clone(), limit: None })),
            Amount::One(amount) => (self.name.clone(), *amount),
            Amount::Each(amount, EachKeyword::Account) => (self.continued(sender.account), *amount),
            Amount::Each(amount, EachKeyword::Source) => (self.continued(sender.source), *amount),
            Amount::Groups(table, named) => {
                let key = sender.source.strip_prefix('+').unwrap_or(sender.source);
                let Some(row) = look_up(*table, key) else { return Ok(None) };
                let (group, amount) = read_row(&row).ok_or_else(|| {
                    format!("the row {key:?} of table {named:?} is not GROUP AMOUNT, such as \"c1 2000\"")
                })?;
                (self.continued(group), amount)
            }
        };
        let limit = BucketLimit { amount, period: self.period.clone(), segments: self.segments };
        Ok(Some(Bucket { name, limit: Some(limit) }))
    }

    /// The bucket's name, followed by another name; its invalid characters are replaced.
    fn continued(&self, by: &str) -> String {
        let by = by.strip_prefix('+').unwrap_or(by);
        let allowed = by.chars().map(|c| match c.to_ascii_lowercase() {
            c if c.is_ascii_lowercase() || c.is_ascii_digit() || ".-_".contains(c) => c,
            _ => '_',
        });
        self.name.chars().chain(['.']).chain(allowed).take(MAX_NAME).collect()
    }
}

fn read_row(row: &str) -> Option<(&str, u64)> {
    let (group, amount) = row.trim().split_once(char::is_whitespace)?;
    let amount = amount.trim().parse().ok().filter(|amount| (1..=MAX_AMOUNT).contains(amount))?;
    Some((group, amount))
}

fn read_bucket(entry: &BucketEntry, tables: &mut TableNames) -> Result<BucketRule, String> {
    let BucketEntry { name, amount, per, zone, counts, each, table } = entry;
    check_name("bucket", name, if each.is_some() || table.is_some() { MAX_BEGINNING } else { MAX_NAME })?;
    let period = match (per, zone) {
        (Some(_), Some(_)) => return Err(format!("the bucket {name:?} has `per` and `zone`; leave out one")),
        (Some(per), None) if per.0.is_zero() || per.0 > MAX_PERIOD => {
            return Err(format!("the bucket {name:?}: `per` is 1ms to 31d"));
        }
        (Some(per), None) => Period::Time(per.0),
        (None, zone) => Period::Day(zone.clone().unwrap_or_else(|| "UTC".to_owned())),
    };
    let amount = match (amount, each, table) {
        (Some(amount), ..) if !(1..=MAX_AMOUNT).contains(amount) => {
            return Err(format!("the bucket {name:?}: `amount` is 1 to {MAX_AMOUNT}"));
        }
        (Some(amount), None, None) => Amount::One(*amount),
        (Some(amount), Some(each), None) => Amount::Each(*amount, *each),
        (None, None, Some(table)) => Amount::Groups(tables.index(table)?, table.clone()),
        (None, None, None) if per.is_none() && zone.is_none() && counts.is_none() => Amount::Configured,
        (_, _, Some(_)) => {
            return Err(format!(
                "the bucket {name:?}: `table` has the amounts; leave out `amount` and `each`"
            ));
        }
        (None, ..) => return Err(format!("the bucket {name:?} needs `amount` or `table`")),
    };
    Ok(BucketRule { name: name.clone(), amount, period, segments: *counts == Some(UnitKeyword::Segments) })
}

fn read_window(entry: &WindowEntry) -> Result<Window, String> {
    let WindowEntry { name, zone, days, opens, closes } = entry;
    check_name("window", name, MAX_NAME)?;
    let hours = match (zone, opens, closes) {
        (None, None, None) if days.is_empty() => None,
        (Some(zone), Some(opens), Some(closes)) => {
            let (opens, closes) = (minute(opens)?, minute(closes)?);
            if opens == closes || opens == 1440 {
                return Err(format!(
                    "the window {name:?} never opens: `opens` is before 24:00, and not `closes`"
                ));
            }
            let mut days: Vec<u8> = days.iter().map(|day: &DayKeyword| *day as u8).collect();
            days.sort_unstable();
            days.dedup();
            Some(WindowHours { zone: zone.clone(), days, opens, closes })
        }
        _ => return Err(format!("the window {name:?} needs `zone`, `opens` and `closes`, or none of them")),
    };
    Ok(Window { name: name.clone(), hours })
}

/// The minutes of `HH:MM`, at most 24:00.
fn minute(text: &str) -> Result<u16, String> {
    let read = || {
        let (hours, minutes) = text.split_once(':')?;
        let number = |text: &str| {
            let digits = text.len() == 2 && text.bytes().all(|octet| octet.is_ascii_digit());
            text.parse::<u16>().ok().filter(|_| digits)
        };
        let (hours, minutes) = (number(hours)?, number(minutes)?);
        Some(hours * 60 + minutes).filter(|all| minutes < 60 && *all <= 1440)
    };
    read().ok_or_else(|| format!("{text:?} is not a time of day; write it as \"08:00\""))
}

fn check_name(kind: &str, name: &str, most: usize) -> Result<(), String> {
    let is_allowed =
        |octet: u8| octet.is_ascii_lowercase() || octet.is_ascii_digit() || b".-_".contains(&octet);
    if !(1..=most).contains(&name.len()) || !name.bytes().all(is_allowed) {
        return Err(format!(
            "the {kind} {name:?}: its name has 1 to {most} of a-z, 0-9, dot, hyphen and underscore"
        ));
    }
    Ok(())
}
