//! Messages for people, so that nothing in them speaks to the terminal.

use crate::wire::{Direction, Item};
use client::terminal::visible;
use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, UtcOffset};

/// By the clock on the wall, if it can be told.
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

/// One message on one line.
pub(super) fn line(item: &Item) -> String {
    // This process has one thread, which is when the system's time zone can be read safely.
    line_at(item, |at| UtcOffset::local_offset_at(at).ok())
}

fn line_at(item: &Item, offset_at: impl Fn(OffsetDateTime) -> Option<UtcOffset>) -> String {
    let at = local(&item.at, offset_at);
    let (id, state) = (visible(&item.id), visible(&item.state));
    let who = match item.direction {
        Some(Direction::In) => format!("from {:<16}", visible(&item.from)),
        Some(Direction::Out) => format!("to   {:<16}", visible(&item.to)),
        None => format!("from {:<16} to {:<16}", visible(&item.from), visible(&item.to)),
    };
    let error = item.error.map(|error| format!(" (error {error})")).unwrap_or_default();
    let part = item.part.as_deref().map(|part| format!("[{}] ", visible(part))).unwrap_or_default();
    let text = match &item.text {
        Some(text) => visible(text),
        None => format!("({} octets)", item.length),
    };
    format!("{at}  {id}  {who}  {state:<10}{error}  {part}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(direction: Option<Direction>, text: Option<&str>) -> Item {
        Item {
            id: "1000000001".to_owned(),
            at: "2026-11-21T11:43:02.5Z".to_owned(),
            direction,
            from: "+16195550123".to_owned(),
            to: "+16195550199".to_owned(),
            state: "delivered".to_owned(),
            ended_at: None,
            error: None,
            text: text.map(str::to_owned),
            length: 5,
            part: None,
        }
    }

    #[test]
    fn a_message_is_a_line() {
        let show = |item: &Item| line_at(item, |_| UtcOffset::from_hms(-8, 0, 0).ok());
        assert_eq!(
            show(&item(Some(Direction::In), Some("two\nlines"))),
            "2026-11-21 03:43:02  1000000001  from +16195550123      delivered   two␊lines"
        );
        let failed = Item {
            state: "failed".to_owned(),
            error: Some(27),
            part: Some("2/3".to_owned()),
            ..item(Some(Direction::Out), Some("x"))
        };
        assert_eq!(
            show(&failed),
            "2026-11-21 03:43:02  1000000001  to   +16195550199      failed     (error 27)  [2/3] x"
        );
        assert_eq!(
            line_at(&item(None, None), |_| None),
            "2026-11-21 11:43:02Z  1000000001  from +16195550123     to +16195550199      delivered   (5 octets)"
        );
    }
}
