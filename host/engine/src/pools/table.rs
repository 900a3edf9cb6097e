//! The state machine of a number, cell by cell as the older system had it.

use model::NumberEvent::{self, Add, Call, Del, Hangup, Reg, Unreg};
use model::NumberState::{self, BusyDown, BusyUp, IdleDown, IdleUp};

/// What the older system answered to an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// Done, or it was so already.
    Ok,
    /// The number is not in the pool.
    Fail,
    /// The number is not in a state for that; nothing has changed.
    Error,
}

/// What an event makes of a number in a state; `None`: it is not in the pool.
///
/// Whether a number is to be had is not said here: an idle number that is up may still rest after its last call.
#[must_use]
pub fn step(state: Option<NumberState>, event: NumberEvent) -> (Option<NumberState>, Reply) {
    let Some(state) = state else {
        return match event {
            Add => (Some(IdleDown), Reply::Ok),
            Del => (None, Reply::Ok),
            Reg | Unreg | Call | Hangup => (None, Reply::Fail),
        };
    };
    let (next, reply) = match (state, event) {
        (_, Del) => return (None, Reply::Ok),
        (_, Add) => (state, Reply::Ok),
        (IdleUp | IdleDown, Reg) => (IdleUp, Reply::Ok),
        (BusyUp | BusyDown, Reg) => (BusyUp, Reply::Ok),
        (IdleUp | IdleDown, Unreg) => (IdleDown, Reply::Ok),
        (BusyUp | BusyDown, Unreg) => (BusyDown, Reply::Ok),
        (IdleUp, Call) => (BusyUp, Reply::Ok),
        (BusyUp, Hangup) => (IdleUp, Reply::Ok),
        (BusyDown, Hangup) => (IdleDown, Reply::Ok),
        (IdleDown | BusyUp | BusyDown, Call) | (IdleUp | IdleDown, Hangup) => (state, Reply::Error),
    };
    (Some(next), reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! cells {
        ($($name:ident: $from:expr, $event:ident => $to:expr, $reply:ident;)*) => { $(
            #[test]
            fn $name() {
                assert_eq!(step($from, $event), ($to, Reply::$reply));
            }
        )* };
    }

    cells! {
        none_add: None, Add => Some(IdleDown), Ok;
        none_del: None, Del => None, Ok;
        none_reg: None, Reg => None, Fail;
        none_unreg: None, Unreg => None, Fail;
        none_call: None, Call => None, Fail;
        none_hangup: None, Hangup => None, Fail;
        idle_up_add: Some(IdleUp), Add => Some(IdleUp), Ok;
        idle_up_del: Some(IdleUp), Del => None, Ok;
        idle_up_reg: Some(IdleUp), Reg => Some(IdleUp), Ok;
        idle_up_unreg: Some(IdleUp), Unreg => Some(IdleDown), Ok;
        idle_up_call: Some(IdleUp), Call => Some(BusyUp), Ok;
        idle_up_hangup: Some(IdleUp), Hangup => Some(IdleUp), Error;
        idle_down_add: Some(IdleDown), Add => Some(IdleDown), Ok;
        idle_down_del: Some(IdleDown), Del => None, Ok;
        idle_down_reg: Some(IdleDown), Reg => Some(IdleUp), Ok;
        idle_down_unreg: Some(IdleDown), Unreg => Some(IdleDown), Ok;
        idle_down_call: Some(IdleDown), Call => Some(IdleDown), Error;
        idle_down_hangup: Some(IdleDown), Hangup => Some(IdleDown), Error;
        busy_up_add: Some(BusyUp), Add => Some(BusyUp), Ok;
        busy_up_del: Some(BusyUp), Del => None, Ok;
        busy_up_reg: Some(BusyUp), Reg => Some(BusyUp), Ok;
        busy_up_unreg: Some(BusyUp), Unreg => Some(BusyDown), Ok;
        busy_up_call: Some(BusyUp), Call => Some(BusyUp), Error;
        busy_up_hangup: Some(BusyUp), Hangup => Some(IdleUp), Ok;
        busy_down_add: Some(BusyDown), Add => Some(BusyDown), Ok;
        busy_down_del: Some(BusyDown), Del => None, Ok;
        busy_down_reg: Some(BusyDown), Reg => Some(BusyUp), Ok;
        busy_down_unreg: Some(BusyDown), Unreg => Some(BusyDown), Ok;
        busy_down_call: Some(BusyDown), Call => Some(BusyDown), Error;
        busy_down_hangup: Some(BusyDown), Hangup => Some(IdleDown), Ok;
    }
}
