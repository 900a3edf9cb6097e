//! The older system's table of states, in its own words. What a number does is read from here, so that nothing of the
//! appliance's own code, nor of its author's understanding, is in it.

/// State against event.
const TABLE: &str = "\
| state | add | del | reg | unreg | call | hangup |
| none | → idle+down | ok, none | fail | fail | fail | fail |
| idle+up | ok, same | → none, leaves the idle list | ok, same | → idle+down, leaves the idle list | → busy+up, leaves the idle list | error, same |
| idle+down | ok, same | → none | → idle+up, joins the idle list | ok, same | error, same | error, same |
| busy+up | ok, same | → none | ok, same | → busy+down | error, same | → idle+up, joins the idle list |
| busy+down | ok, same | → none | → busy+up | ok, same | error, same | → idle+down |";

/// What happens to a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// It comes into the pool.
    Add,
    /// It leaves the pool.
    Del,
    /// It can be used.
    Reg,
    /// It cannot be used.
    Unreg,
    /// Somebody takes it.
    Call,
    /// It is given back.
    Hangup,
}

impl Event {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Add, Self::Del, Self::Reg, Self::Unreg, Self::Call, Self::Hangup];

    /// As the table writes it.
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

/// What a cell of the table says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// The state after it, `none` if the number is not in the pool.
    pub state: &'static str,
    /// Whether it is done, or was so already.
    pub ok: bool,
    /// Whether the number joins the idle list.
    pub joins: bool,
    /// Whether it leaves the idle list.
    pub leaves: bool,
}

fn fields(line: &'static str) -> Vec<&'static str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

/// Looks a cell up.
///
/// # Panics
/// If the table has no such state, or says what nobody understands.
#[allow(clippy::panic, reason = "a test that asks for what there is not is wrong itself")]
pub fn look_up(state: &str, event: Event) -> Cell {
    let mut lines = TABLE.lines();
    let column = fields(lines.next().unwrap_or_default()).iter().position(|name| *name == event.name());
    let row = lines.map(fields).find(|row| row[0] == state);
    let (Some(column), Some(row)) = (column, row) else { panic!("no cell for {state} and {}", event.name()) };
    let mut cell = Cell { state: row[0], ok: true, joins: false, leaves: false };
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
    fn the_idle_list_has_exactly_what_is_idle_and_up() {
        for state in ["none", "idle+up", "idle+down", "busy+up", "busy+down"] {
            for event in Event::ALL {
                let cell = look_up(state, event);
                assert_eq!(cell.joins, state != "idle+up" && cell.state == "idle+up", "{state} {event:?}");
                assert_eq!(cell.leaves, state == "idle+up" && cell.state != "idle+up", "{state} {event:?}");
                assert!(cell.ok || cell.state == state, "{state} {event:?}");
            }
        }
    }
}
