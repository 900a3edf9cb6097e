//! Formats numbers, times and states.

use maud::{Markup, html};
use time::OffsetDateTime;

/// The current time, in milliseconds since the epoch.
pub(crate) fn now() -> u64 {
    model::Timestamp::now().0
}

fn date_time(ms: u64) -> Option<OffsetDateTime> {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(ms) * 1_000_000).ok()
}

/// A time as `2026-11-22 14:38:01`, UTC.
pub(crate) fn timestamp(ms: u64) -> String {
    match date_time(ms) {
        Some(at) => format!(
            "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
            at.year(),
            u8::from(at.month()),
            at.day(),
            at.hour(),
            at.minute(),
            at.second()
        ),
        None => ms.to_string(),
    }
}

/// A time with milliseconds, as a `time` element.
pub(crate) fn exact_time(ms: u64) -> Markup {
    let clock = timestamp(ms);
    let machine = format!("{}.{:03}Z", clock.replace(' ', "T"), ms % 1_000);
    html! { time datetime=(machine) { (clock) span.muted { "." (format!("{:03}", ms % 1_000)) } } }
}

/// A time as a `time` element.
pub(crate) fn time_tag(ms: u64) -> Markup {
    let clock = timestamp(ms);
    let machine = format!("{}Z", clock.replace(' ', "T"));
    html! { time datetime=(machine) { (clock) } }
}

/// Hours and minutes of a time, for axes.
pub(crate) fn clock_tag(ms: u64) -> Markup {
    let clock = timestamp(ms);
    let machine = format!("{}Z", clock.replace(' ', "T"));
    html! { time datetime=(machine) data-part="clock" { (clock.get(11..16).unwrap_or_default()) } }
}

/// The day of a time, for axes.
pub(crate) fn day_tag(ms: u64) -> Markup {
    let clock = timestamp(ms);
    let machine = format!("{}Z", clock.replace(' ', "T"));
    html! { time datetime=(machine) data-part="day" { (clock.get(..10).unwrap_or_default()) } }
}

/// A duration in milliseconds, in its two largest units.
pub(crate) fn duration_text(ms: u64) -> String {
    let seconds = ms / 1_000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) if seconds == 0 => format!("{ms} ms"),
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, 10..) => format!("{minutes} min"),
        (0, 0, _) => unit_pair_text(minutes, "min", seconds % 60, "s"),
        (0, ..) => unit_pair_text(hours, "h", minutes, "min"),
        _ => unit_pair_text(days, "d", hours, "h"),
    }
}

fn unit_pair_text(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    if small == 0 {
        format!("{large} {large_unit}")
    } else {
        format!("{large} {large_unit} {small} {small_unit}")
    }
}

/// The time since, or until, a time in milliseconds since the epoch.
pub(crate) fn ago(ms: u64) -> String {
    let now = now();
    if ms > now + 1_000 {
        format!("in {}", duration_text(ms - now))
    } else {
        format!("{} ago", duration_text(now.saturating_sub(ms)))
    }
}

/// A number with its thousands separated.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// A number with a decimal if it is small.
pub(crate) fn figure(value: f64) -> String {
    if !value.is_finite() {
        return "—".to_owned();
    }
    if value >= 100.0 || value == value.trunc() {
        count(value.round().max(0.0) as u64)
    } else {
        format!("{value:.1}")
    }
}

/// A size in B, KiB, MiB …
pub(crate) fn octets(octets: u64) -> String {
    let mut value = octets as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            return if unit == "B" { format!("{octets} B") } else { format!("{value:.1} {unit}") };
        }
        value /= 1024.0;
    }
    format!("{value:.1} TiB")
}

/// An amount in millionths of the operator's currency.
pub(crate) fn money(millionths: i64) -> String {
    let sign = if millionths < 0 { "−" } else { "" };
    let millionths = millionths.unsigned_abs();
    let fraction = format!("{:06}", millionths % 1_000_000);
    let fraction = fraction.trim_end_matches('0');
    let fraction = if fraction.len() < 2 { format!("{fraction:0<2}") } else { fraction.to_owned() };
    format!("{sign}{}.{fraction}", count(millionths / 1_000_000))
}

/// An amount without separators, for programs.
pub(crate) fn decimal(millionths: i64) -> String {
    money(millionths).replace('\u{202f}', "").replace('−', "-")
}

/// A number with its noun, singular or plural.
pub(crate) fn plural(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// The first 12 characters of a version.
pub(crate) fn short_version(version: &str) -> &str {
    version.get(..12).unwrap_or(version)
}

/// A short version, with the whole version as title.
pub(crate) fn version_tag(version: &str) -> Markup {
    html! { code title=(version) { (short_version(version)) } }
}

/// The CSS class of the badge of a state.
fn badge_class(state: &str) -> &'static str {
    match state {
        "delivered" | "relayed" | "bound" | "ready" | "ok" | "active" | "live" | "idle+up" | "done"
        | "success" => "good",
        "absent" | "full" | "failed" | "rejected" | "refused" | "down" | "faulty" | "closed" | "error"
        | "denied" => "bad",
        "expired" | "unknown" | "uncertain" | "cancelled" | "quarantined" | "undo-window" | "dialling"
        | "backing-off" | "binding" | "busy+down" | "idle+down" => "warn",
        _ => "plain",
    }
}

/// A state as a badge.
pub(crate) fn state_badge(word: &str) -> Markup {
    html! { span.badge.(badge_class(word)) { (word) } }
}

/// A part of a text of the API.
#[derive(Debug, PartialEq)]
enum TextPart<'a> {
    Text(&'a str),
    /// A time in milliseconds since the epoch.
    Time(u64),
}

/// Splits a text at the times in it. Thirteen digits are a time from 2001 to 2286; after a letter they are part of a name or id.
fn split_at_times(text: &str) -> Vec<TextPart<'_>> {
    let mut parts = Vec::new();
    let (mut begun, mut at) = (0, 0);
    while let Some(start) = text[at..].find(|c: char| c.is_ascii_digit()).map(|found| at + found) {
        let end = text[start..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |found| start + found);
        let (before, digits, after) = (&text[..start], &text[start..end], &text[end..]);
        let alone = !before.ends_with(|c: char| c.is_alphanumeric() || c == '+' || c == '"' || c == '-');
        if let (Ok(ms), 13, true, false) = (digits.parse(), digits.len(), alone, after.starts_with('"')) {
            parts.push(TextPart::Text(&text[begun..start]));
            parts.push(TextPart::Time(ms));
            begun = end;
        }
        at = end;
    }
    parts.push(TextPart::Text(&text[begun..]));
    parts
}

/// A text of the API, with times in milliseconds replaced by `time` elements.
pub(crate) fn with_times(text: &str) -> Markup {
    html! {
        @for part in split_at_times(text) {
            @match part { TextPart::Text(text) => (text), TextPart::Time(ms) => (time_tag(ms)) }
        }
    }
}

/// A text of the API with times in UTC and without elements, for attributes.
pub(crate) fn with_readable_times(text: &str) -> String {
    let parts = split_at_times(text).into_iter();
    parts
        .map(|part| match part {
            TextPart::Text(text) => text.to_owned(),
            TextPart::Time(ms) => timestamp(ms) + " UTC",
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted() {
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(count(999), "999");
        assert_eq!(
            (figure(0.25), figure(12.0), figure(1234.4)),
            ("0.2".into(), "12".into(), "1\u{202f}234".into())
        );
        assert_eq!(
            (money(42_500), money(-1_000_000), money(0)),
            ("0.0425".into(), "−1.00".into(), "0.00".into())
        );
        assert_eq!(decimal(-1_234_500_000), "-1234.50");
        assert_eq!((octets(512), octets(3 << 20)), ("512 B".into(), "3.0 MiB".into()));
        assert_eq!(
            (duration_text(900), duration_text(61_000), duration_text(90_000_000)),
            ("900 ms".into(), "1 min 1 s".into(), "1 d 1 h".into())
        );
    }

    #[test]
    fn times_in_texts_are_formatted_and_phone_numbers_are_not() {
        assert_eq!(
            with_readable_times("deferred until 1763820000000"),
            "deferred until 2025-11-22 14:00:00 UTC"
        );
        assert_eq!(
            with_readable_times("to +1763820000000 and \"1763820000000\""),
            "to +1763820000000 and \"1763820000000\""
        );
        assert_eq!(with_readable_times("attempt 2, 0x45"), "attempt 2, 0x45");
        assert_eq!(with_readable_times("ends at 1763820000000; é"), "ends at 2025-11-22 14:00:00 UTC; é");
        assert_eq!(
            with_times("<b> at 1763820000000").into_string(),
            "&lt;b&gt; at <time datetime=\"2025-11-22T14:00:00Z\">2025-11-22 14:00:00</time>"
        );
    }

    #[test]
    fn states_are_escaped() {
        let shown = state_badge("<script>alert(1)</script>").into_string();
        assert!(!shown.contains("<script>") && shown.contains("&lt;script&gt;"), "{shown}");
    }
}
