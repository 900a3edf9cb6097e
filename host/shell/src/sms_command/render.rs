//! Renders messages for the terminal; control characters are made visible.

use crate::wire::{ShellDirection, ShellMessage, ShellSegments};
use client::terminal::visible;
use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, UtcOffset};

/// Formats a time in local time, or in UTC if the offset is unknown.
fn local(stamp: &str, offset_at: impl Fn(OffsetDateTime) -> Option<UtcOffset>) -> String {
    let Ok(at) = OffsetDateTime::parse(stamp, &Rfc3339) else { return visible(stamp) };
    let (at, mark) = match offset_at(at) {
        Some(offset) => (at.to_offset(offset), ""),
        None => (at, "Z"),
    };
    let (year, month, day) = at.to_calendar_date();
    let (hour, minute, second) = at.to_hms();
    format!("{year:04}-{:02}-{day:02} {hour:02}:{minute:02}:{second:02}{mark}", month as u8)
}

/// Renders a message on one line.
pub(super) fn line(item: &ShellMessage) -> String {
    // The process has one thread; only then the time zone can be read safely.
    line_at(item, |at| UtcOffset::local_offset_at(at).ok())
}

fn line_at(item: &ShellMessage, offset_at: impl Fn(OffsetDateTime) -> Option<UtcOffset>) -> String {
    let at = local(&item.at, offset_at);
    let (id, state) = (visible(&item.id), visible(&item.state));
    let who = match item.direction {
        Some(ShellDirection::In) => format!("from {:<16}", visible(&item.from)),
        Some(ShellDirection::Out) => format!("to   {:<16}", visible(&item.to)),
        None => format!("from {:<16} to {:<16}", visible(&item.from), visible(&item.to)),
    };
    let error = match (&item.cause, item.error) {
        (Some(cause), _) => format!(" ({})", visible(cause)),
        (None, Some(error)) => format!(" (error {error})"),
        (None, None) => String::new(),
    };
    let part = match (&item.part, &item.segments) {
        (Some(part), _) => format!("[{}] ", visible(part)),
        (None, Some(ShellSegments { total, present })) if present.len() < usize::from(*total) => {
            format!("[{} of {total} segments] ", present.len())
        }
        (None, _) => String::new(),
    };
    let text = match &item.text {
        Some(text) => visible(text),
        None => format!("({} octets)", item.length),
    };
    format!("{at}  {id}  {who}  {state:<10}{error}  {part}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ShellSegment;

    fn item(direction: Option<ShellDirection>, text: Option<&str>) -> ShellMessage {
        ShellMessage {
            id: "1000000001".to_owned(),
            at: "2026-11-21T11:43:02.5Z".to_owned(),
            direction,
            from: "+16195550123".to_owned(),
            to: "+16195550199".to_owned(),
            state: "delivered".to_owned(),
            ended_at: None,
            error: None,
            cause: None,
            text: text.map(str::to_owned),
            length: 5,
            part: None,
            segments: None,
        }
    }

    #[test]
    fn message_is_rendered_on_one_line() {
        let show = |item: &ShellMessage| line_at(item, |_| UtcOffset::from_hms(-8, 0, 0).ok());
        assert_eq!(
            show(&item(Some(ShellDirection::In), Some("two\nlines"))),
            "2026-11-21 03:43:02  1000000001  from +16195550123      delivered   two␊lines"
        );
        let failed = ShellMessage {
            state: "failed".to_owned(),
            error: Some(27),
            part: Some("2/3".to_owned()),
            ..item(Some(ShellDirection::Out), Some("x"))
        };
        assert_eq!(
            show(&failed),
            "2026-11-21 03:43:02  1000000001  to   +16195550199      failed     (error 27)  [2/3] x"
        );
        let refused =
            ShellMessage { cause: Some("network: congestion (22)".to_owned()), part: None, ..failed };
        assert_eq!(
            show(&refused),
            "2026-11-21 03:43:02  1000000001  to   +16195550199      failed     (network: congestion (22))  x"
        );
        let segment = |number| ShellSegment { number, id: "1".to_owned(), state: "delivered".to_owned() };
        let long = |present| ShellMessage {
            segments: Some(ShellSegments { total: 3, present }),
            ..item(Some(ShellDirection::In), Some("x"))
        };
        let cut = show(&long(vec![segment(1), segment(3)]));
        assert!(cut.ends_with("delivered   [2 of 3 segments] x"), "{cut}");
        assert!(show(&long([1, 2, 3].map(segment).to_vec())).ends_with("delivered   x"));
        assert_eq!(
            line_at(&item(None, None), |_| None),
            "2026-11-21 11:43:02Z  1000000001  from +16195550123     to +16195550199      delivered   (5 octets)"
        );
    }
}
