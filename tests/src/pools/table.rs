//! The state table of the legacy system, in its own words. The expected behaviour is read from here, independently of the
//! appliance's code.

/// States (rows) and events (columns).
const TABLE: &str = "\
| state | add | del | reg | unreg | call | hangup |
| none | → idle+down | ok, none | fail | fail | fail | fail |
| idle+up | ok, same | → none, leaves the idle list | ok, same | → idle+down, leaves the idle list | → busy+up, leaves the idle list | error, same |
| idle+down | ok, same | → none | → idle+up, joins the idle list | ok, same | error, same | error, same |
| busy+up | ok, same | → none | ok, same | → busy+down | error, same | → idle+up, joins the idle list |
| busy+down | ok, same | → none | → busy+up | ok, same | error, same | → idle+down |";

/// An event of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolEvent {
    /// It is added to the pool.
    Add,
    /// It is removed from the pool.
    Del,
    /// It becomes usable.
    Reg,
    /// It becomes unusable.
    Unreg,
    /// It is leased.
    Call,
    /// It is released.
    Hangup,
}

impl PoolEvent {
    /// All events.
    pub const ALL: [Self; 6] = [Self::Add, Self::Del, Self::Reg, Self::Unreg, Self::Call, Self::Hangup];

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Del => "del",
            Self::Reg => "reg",
            Self::Unreg => "unreg",
            Self::Call => "call",
            Self::Hangup => "hangup",
        }
    }
}

/// A cell of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// The resulting state; `none` if the number is not in the pool.
    pub state: &'static str,
    /// Whether the event succeeds.
    pub ok: bool,
    /// Whether the number joins the idle list.
    pub joins: bool,
    /// Whether it leaves the idle list.
    pub leaves: bool,
}

fn fields(line: &'static str) -> Vec<&'static str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

/// Looks up a cell.
///
/// # Panics
/// If the table has no such state, or an unknown cell.
#[allow(clippy::panic, reason = "an unknown state or event is an error of the test")]
pub fn transition(state: &str, event: PoolEvent) -> Transition {
    let mut lines = TABLE.lines();
    let column = fields(lines.next().unwrap_or_default()).iter().position(|name| *name == event.name());
    let row = lines.map(fields).find(|row| row[0] == state);
    let (Some(column), Some(row)) = (column, row) else { panic!("no cell for {state} and {}", event.name()) };
    let mut cell = Transition { state: row[0], ok: true, joins: false, leaves: false };
    for words in row[column].split(", ") {
        match words {
            "ok" | "same" => {}
            "none" if state == "none" => {}
            "fail" | "error" => cell.ok = false,
            "joins the idle list" => cell.joins = true,
            "leaves the idle list" => cell.leaves = true,
            _ => match words.strip_prefix("→ ") {
                Some(state) => cell.state = state,
                None => panic!("{words:?} in the table"),
            },
        }
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_idle_list_has_exactly_the_idle_and_up_numbers() {
        for state in ["none", "idle+up", "idle+down", "busy+up", "busy+down"] {
            for event in PoolEvent::ALL {
                let cell = transition(state, event);
                assert_eq!(cell.joins, state != "idle+up" && cell.state == "idle+up", "{state} {event:?}");
                assert_eq!(cell.leaves, state == "idle+up" && cell.state != "idle+up", "{state} {event:?}");
                assert!(cell.ok || cell.state == state, "{state} {event:?}");
            }
        }
    }
}
