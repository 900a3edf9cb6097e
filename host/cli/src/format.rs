//! Formats values of the API as text and tables.

use client::terminal::visible;
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;
use time::OffsetDateTime;
use unicode_width::UnicodeWidthStr;

/// The range of numbers that are recognised as times, in milliseconds since the epoch: 2017 to 2096.
const TIMES: std::ops::Range<u64> = 1_500_000_000_000..4_000_000_000_000;

/// Pads a text with spaces to at least `width` columns.
pub fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// A table with a heading; each column is as wide as its widest cell.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = head.iter().map(|title| title.width()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
    }
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let cells: Vec<String> = cells.zip(&widths).map(|(cell, width)| padded(cell, *width)).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    let mut text = line(&mut head.iter().copied());
    for row in rows {
        text.push_str(&line(&mut row.iter().map(String::as_str)));
    }
    text
}

/// Name and value pairs, one a line.
pub fn list(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.width()).max().unwrap_or(0);
    let line = |(name, value): &(&str, String)| {
        format!("{}  {value}", padded(name, width)).trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

/// A field of a type of the API, as JSON.
fn json_of(field: &(impl Serialize + ?Sized)) -> Value {
    serde_json::to_value(field).unwrap_or_default()
}

/// A text, a number or a name as text; `-` if there is none.
pub fn value_text(field: &(impl Serialize + ?Sized)) -> String {
    match json_of(field) {
        Value::Null => "-".to_owned(),
        Value::String(text) if text.is_empty() => "-".to_owned(),
        Value::String(text) => visible(&text),
        other => other.to_string(),
    }
}

/// A number with a comma after every three digits.
pub fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut shown = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// A number with a comma after every three digits; `-` if there is none.
pub fn count(field: &impl Serialize) -> String {
    json_of(field).as_u64().map_or_else(|| value_text(field), number)
}

/// A size in octets, KiB, MiB …
pub fn octets(octets: u64) -> String {
    let units = ["octets", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut size = octets as f64;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < units.len() {
        (size, unit) = (size / 1024.0, unit + 1);
    }
    if unit == 0 { format!("{octets} octets") } else { format!("{size:.1} {}", units[unit]) }
}

/// A number with its noun, singular or plural.
pub fn plural(value: u64, one: &str, many: &str) -> String {
    format!("{} {}", number(value), if value == 1 { one } else { many })
}

/// Milliseconds since the epoch as date and time, in UTC.
pub fn timestamp(field: &impl Serialize) -> String {
    let Some(at) = json_of(field).as_u64() else { return value_text(field) };
    let Ok(at) = OffsetDateTime::from_unix_timestamp_nanos(i128::from(at) * 1_000_000) else {
        return at.to_string();
    };
    let (year, month, day) = at.to_calendar_date();
    let (hour, minute, second) = at.to_hms();
    format!("{year:04}-{:02}-{day:02} {hour:02}:{minute:02}:{second:02}Z", month as u8)
}

/// A text of the API, with times in milliseconds replaced by date and time.
pub fn with_readable_times(field: &(impl Serialize + ?Sized)) -> String {
    let text = value_text(field);
    let mut shown = String::with_capacity(text.len());
    for (at, piece) in text.split_inclusive(' ').enumerate() {
        let digits = piece.trim_end_matches([' ', ',', ';', '.', ')']);
        let time = digits.parse::<u64>().ok().filter(|ms| digits.len() == 13 && TIMES.contains(ms));
        let is_time = shown.ends_with("at ") || shown.ends_with("until ");
        match time {
            Some(ms) if at > 0 && is_time => {
                shown.push_str(&timestamp(&ms));
                shown.push_str(&piece[digits.len()..]);
            }
            _ => shown.push_str(piece),
        }
    }
    shown
}

/// The reason why a queue or a link is blocked; `-` if it is not blocked.
pub fn blocked_by(field: &(impl Serialize + ?Sized)) -> String {
    match with_readable_times(field) {
        text if text == "idle" || text == "none" => "-".to_owned(),
        text => text,
    }
}

/// A duration in milliseconds, in its two largest units.
pub fn duration_text(field: &impl Serialize) -> String {
    let Some(millis) = json_of(field).as_u64() else { return value_text(field) };
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
    fn columns_are_aligned() {
        let rows = [vec!["100".to_owned(), "idle+up".to_owned()], vec!["+4930".to_owned(), "-".to_owned()]];
        assert_eq!(table(&["NUMBER", "STATE"], &rows), "NUMBER  STATE\n100     idle+up\n+4930   -\n");
        // These letters are two columns wide.
        let rows = [vec!["短信".to_owned(), "a".to_owned()], vec!["abcde".to_owned(), "b".to_owned()]];
        assert_eq!(table(&["N", "S"], &rows), "N      S\n短信   a\nabcde  b\n");
        assert_eq!(list(&[("a", "1".to_owned()), ("long", String::new())]), "a     1\nlong\n");
    }

    #[test]
    fn values_are_formatted() {
        assert_eq!(timestamp(&json!(1_795_276_982_500_u64)), "2026-11-21 16:03:02Z");
        assert_eq!(
            (number(7), number(1_000), number(12_345_678)),
            ("7".into(), "1,000".into(), "12,345,678".into())
        );
        assert_eq!(
            (octets(1_023), octets(1_536), octets(u64::MAX)),
            ("1023 octets".into(), "1.5 KiB".into(), "16384.0 PiB".into())
        );
        assert_eq!(
            (timestamp(&Value::Null), value_text(&json!("a\x1b[0m"))),
            ("-".to_owned(), "a␛[0m".to_owned())
        );
        let text = json!("tried again at 1795276982500, or until 1795276982500; 1795276982500 stays");
        assert_eq!(
            with_readable_times(&text),
            "tried again at 2026-11-21 16:03:02Z, or until 2026-11-21 16:03:02Z; 1795276982500 stays"
        );
        assert_eq!(
            (blocked_by(&json!("idle")), blocked_by(&json!("no link is up"))),
            ("-".into(), "no link is up".into())
        );
        for (millis, words) in [
            (999_u64, "999ms"),
            (1_500, "1.5s"),
            (61_000, "1m 1s"),
            (7_260_000, "2h 1m"),
            (90_000_000, "1d 1h"),
        ] {
            assert_eq!(duration_text(&json!(millis)), words);
        }
    }
}
