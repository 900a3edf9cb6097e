//! The state machine of a number, as the older system had it.

use model::NumberEvent::{self, Add, Call, Del, Hangup, Reg, Unreg};
use model::NumberState::{self, BusyDown, BusyUp, IdleDown, IdleUp};

/// The older system's reply to an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepReply {
    /// Done, or already in that state.
    Ok,
    /// The number is not in the pool.
    Fail,
    /// The state does not allow the event; nothing changed.
    Error,
}

/// The transition of a number; `None`: not in the pool.
///
/// It does not tell whether a number is ready: an idle number that is up may be in quarantine.
#[must_use]
pub fn step(state: Option<NumberState>, event: NumberEvent) -> (Option<NumberState>, StepReply) {
    let Some(state) = state else {
        return match event {
            Add => (Some(IdleDown), StepReply::Ok),
            Del => (None, StepReply::Ok),
            Reg | Unreg | Call | Hangup => (None, StepReply::Fail),
        };
    };
    let (next, reply) = match (state, event) {
        (_, Del) => return (None, StepReply::Ok),
        (_, Add) => (state, StepReply::Ok),
        (IdleUp | IdleDown, Reg) => (IdleUp, StepReply::Ok),
        (BusyUp | BusyDown, Reg) => (BusyUp, StepReply::Ok),
        (IdleUp | IdleDown, Unreg) => (IdleDown, StepReply::Ok),
        (BusyUp | BusyDown, Unreg) => (BusyDown, StepReply::Ok),
        (IdleUp, Call) => (BusyUp, StepReply::Ok),
        (BusyUp, Hangup) => (IdleUp, StepReply::Ok),
        (BusyDown, Hangup) => (IdleDown, StepReply::Ok),
        (IdleDown | BusyUp | BusyDown, Call) | (IdleUp | IdleDown, Hangup) => (state, StepReply::Error),
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
                assert_eq!(step($from, $event), ($to, StepReply::$reply));
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
