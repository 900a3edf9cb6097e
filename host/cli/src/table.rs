//! Values of the API as tables for people.

use client::terminal::visible;
use serde_json::Value;
use std::time::Duration;
use time::OffsetDateTime;

/// Rows under a head, each column as wide as it needs to be.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = head.iter().map(|title| title.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let cells: Vec<String> = cells.zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    let mut text = line(&mut head.iter().copied());
    for row in rows {
        text.push_str(&line(&mut row.iter().map(String::as_str)));
    }
    text
}

/// Names and what they stand for, one a line.
pub(crate) fn list(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    rows.iter().map(|(name, value)| format!("{name:<width$}  {value}").trim_end().to_owned() + "\n").collect()
}

/// A value in a few words; a stroke where there is none.
pub(crate) fn word(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if text.is_empty() => "-".to_owned(),
        Value::String(text) => visible(text),
        other => other.to_string(),
    }
}

/// Milliseconds since 1970 by the clock on the wall, in UTC.
pub(crate) fn moment(value: &Value) -> String {
    let Some(at) = value.as_u64() else { return word(value) };
    let Ok(at) = OffsetDateTime::from_unix_timestamp_nanos(i128::from(at) * 1_000_000) else {
        return at.to_string();
    };
    let (year, month, day) = at.to_calendar_date();
    let (hour, minute, second) = at.to_hms();
    format!("{year:04}-{:02}-{day:02} {hour:02}:{minute:02}:{second:02}Z", month as u8)
}

/// Milliseconds as people say them: the two largest units.
pub(crate) fn span(value: &Value) -> String {
    let Some(millis) = value.as_u64() else { return word(value) };
    let seconds = Duration::from_millis(millis).as_secs();
    match seconds {
        0 => format!("{millis}ms"),
        1..60 => format!("{}.{}s", seconds, millis % 1000 / 100),
        60..3_600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h {}m", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn columns_stand_under_each_other() {
        let rows = [vec!["100".to_owned(), "idle+up".to_owned()], vec!["+4930".to_owned(), "-".to_owned()]];
        assert_eq!(table(&["NUMBER", "STATE"], &rows), "NUMBER  STATE\n100     idle+up\n+4930   -\n");
        assert_eq!(list(&[("a", "1".to_owned()), ("long", String::new())]), "a     1\nlong\n");
    }

    #[test]
    fn values_in_words() {
        assert_eq!(moment(&json!(1_795_276_982_500_u64)), "2026-11-21 16:03:02Z");
        assert_eq!((moment(&Value::Null), word(&json!("a\x1b[0m"))), ("-".to_owned(), "a␛[0m".to_owned()));
        for (millis, words) in [
            (999_u64, "999ms"),
            (1_500, "1.5s"),
            (61_000, "1m 1s"),
            (7_260_000, "2h 1m"),
            (90_000_000, "1d 1h"),
        ] {
            assert_eq!(span(&json!(millis)), words);
        }
    }
}
