//! Numbers, times and states as people read them.

use maud::{Markup, html};
use serde_json::Value;
use std::time::{SystemTime, UNIX_EPOCH};
use time::OffsetDateTime;

/// Milliseconds since the epoch.
pub(crate) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

fn date_time(ms: u64) -> Option<OffsetDateTime> {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(ms) * 1_000_000).ok()
}

/// A time as `2026-11-22 14:38:01`, UTC.
pub(crate) fn clock(ms: u64) -> String {
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

/// The same with milliseconds, and the whole of it for programs.
pub(crate) fn exact(ms: u64) -> Markup {
    let clock = clock(ms);
    let machine = format!("{}.{:03}Z", clock.replace(' ', "T"), ms % 1_000);
    html! { time datetime=(machine) { (clock) span.muted { "." (format!("{:03}", ms % 1_000)) } } }
}

/// A time.
pub(crate) fn moment(ms: u64) -> Markup {
    let clock = clock(ms);
    let machine = format!("{}Z", clock.replace(' ', "T"));
    html! { time datetime=(machine) { (clock) } }
}

/// A time as the API says it: milliseconds, or RFC 3339.
pub(crate) fn time_of(value: &Value) -> Markup {
    match value {
        Value::Number(ms) => ms.as_u64().map_or_else(|| html! { "—" }, moment),
        Value::String(text) => {
            let short = text.get(..19).unwrap_or(text).replace('T', " ");
            html! { time datetime=(text) { (short) } }
        }
        _ => html! { span.muted { "—" } },
    }
}

/// A span, in its two largest units.
pub(crate) fn span(ms: u64) -> String {
    let seconds = ms / 1_000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) if seconds == 0 => format!("{ms} ms"),
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, 10..) => format!("{minutes} min"),
        (0, 0, _) => two(minutes, "min", seconds % 60, "s"),
        (0, ..) => two(hours, "h", minutes, "min"),
        _ => two(days, "d", hours, "h"),
    }
}

fn two(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    if small == 0 {
        format!("{large} {large_unit}")
    } else {
        format!("{large} {large_unit} {small} {small_unit}")
    }
}

/// How long ago something was.
pub(crate) fn ago(ms: u64) -> String {
    let now = now();
    if ms > now + 1_000 {
        format!("in {}", span(ms - now))
    } else {
        format!("{} ago", span(now.saturating_sub(ms)))
    }
}

/// A count with its thousands apart.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// A rate or a figure that may be small.
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

/// Octets.
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

/// An amount of money: millionths of the house's currency.
pub(crate) fn money(millionths: i64) -> String {
    let sign = if millionths < 0 { "−" } else { "" };
    let millionths = millionths.unsigned_abs();
    let fraction = format!("{:06}", millionths % 1_000_000);
    let fraction = fraction.trim_end_matches('0');
    let fraction = if fraction.len() < 2 { format!("{fraction:0<2}") } else { fraction.to_owned() };
    format!("{sign}{}.{fraction}", count(millionths / 1_000_000))
}

/// Many or one.
pub(crate) fn plural(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// The beginning of a version: enough to tell it from others.
pub(crate) fn short(version: &str) -> &str {
    version.get(..12).unwrap_or(version)
}

/// A version, short, with the whole of it to be read.
pub(crate) fn version(version: &str) -> Markup {
    html! { code title=(version) { (short(version)) } }
}

/// How well a state is: the class of its badge.
fn tone(state: &str) -> &'static str {
    match state {
        "delivered" | "relayed" | "bound" | "ready" | "ok" | "standing" | "live" | "idle+up" | "done"
        | "success" => "good",
        "absent" | "full" | "failed" | "rejected" | "refused" | "down" | "faulty" | "closed" | "error"
        | "denied" => "bad",
        "expired" | "unknown" | "uncertain" | "cancelled" | "undo-window" | "dialling" | "backing-off"
        | "binding" | "busy+down" | "idle+down" => "warn",
        _ => "plain",
    }
}

/// A state as a badge: its word, with a colour that only underlines it.
pub(crate) fn state(word: &str) -> Markup {
    html! { span.badge.(tone(word)) { (word) } }
}

/// A sentence in which times stand as milliseconds since the epoch, with times that can be read.
pub(crate) fn sentence(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, from) = rest.split_at(start);
        out.push_str(before);
        let end = from.find(|c: char| !c.is_ascii_digit()).unwrap_or(from.len());
        let (digits, after) = from.split_at(end);
        // Thirteen digits from 2001 to 2286; what follows a letter is somebody's name or id.
        let alone = !before.ends_with(|c: char| c.is_alphanumeric() || c == '+' || c == '"' || c == '-');
        match digits.parse() {
            Ok(ms) if digits.len() == 13 && alone && !after.starts_with('"') => out.push_str(&clock(ms)),
            _ => out.push_str(digits),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// A field of an answer as a number.
pub(crate) fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or(0)
}

/// A field of an answer as a text; empty where there is none.
pub(crate) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// A field that some write with a hyphen and some with an underscore.
pub(crate) fn either<'a>(value: &'a Value, name: &str) -> &'a Value {
    match &value[name] {
        Value::Null => &value[name.replace('-', "_")],
        found => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_by_people() {
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
        assert_eq!((octets(512), octets(3 << 20)), ("512 B".into(), "3.0 MiB".into()));
        assert_eq!(
            (span(900), span(61_000), span(90_000_000)),
            ("900 ms".into(), "1 min 1 s".into(), "1 d 1 h".into())
        );
    }

    #[test]
    fn times_in_sentences_are_times_and_numbers_of_people_are_not() {
        assert_eq!(sentence("deferred until 1763820000000"), "deferred until 2025-11-22 14:00:00");
        assert_eq!(
            sentence("to +1763820000000 and \"1763820000000\""),
            "to +1763820000000 and \"1763820000000\""
        );
        assert_eq!(sentence("attempt 2, 0x45"), "attempt 2, 0x45");
        assert_eq!(sentence("ends at 1763820000000; é"), "ends at 2025-11-22 14:00:00; é");
    }

    #[test]
    fn what_comes_from_outside_is_escaped() {
        let shown = state("<script>alert(1)</script>").into_string();
        assert!(!shown.contains("<script>") && shown.contains("&lt;script&gt;"), "{shown}");
    }
}
