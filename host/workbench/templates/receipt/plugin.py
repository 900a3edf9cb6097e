"""Tries the next leg when no DLR comes in time, or a DLR has one of some states; policy.txt is an example of its policy
document."""

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.receipts import Decision, DlrState, Event_Accepted, Event_Timeout, Step_Accept, Step_NextLeg

STATES = {
    "delivered": DlrState.DELIVERED,
    "expired": DlrState.EXPIRED,
    "deleted": DlrState.DELETED,
    "undeliverable": DlrState.UNDELIVERABLE,
    "unknown": DlrState.UNKNOWN,
    "rejected": DlrState.REJECTED,
}

# Milliseconds without a DLR.
wait = None
# The names of states, by state.
next_leg = {}


class Receipts(exports.Receipts):
    def configure(self, document):
        global wait, next_leg
        read_wait, read_next_leg = None, {}
        for number, line in enumerate(document.splitlines(), 1):
            match line.split():
                case []:
                    pass
                case [first, *_] if first.startswith("#"):
                    pass
                case ["wait", seconds] if seconds.isdecimal() and len(seconds) < 10:
                    read_wait = int(seconds) * 1000
                case ["next-leg", *names] if names and all(name in STATES for name in names):
                    read_next_leg = {STATES[name]: name for name in names}
                case _:
                    # The admin sees this error as the reason of the refusal.
                    raise Err(f"line {number}: expected 'wait SECONDS' or 'next-leg STATE ...'")
        wait, next_leg = read_wait, read_next_leg

    def decide(self, message, submission, event):
        if isinstance(event, Event_Accepted):
            has_next = submission.leg + 1 < submission.legs
            return Decision(Step_Accept(), wait if has_next else None, None)
        if isinstance(event, Event_Timeout):
            return Decision(Step_NextLeg(), None, f"no DLR from {submission.peer}")
        state = event.value.state
        if state in next_leg:
            return Decision(Step_NextLeg(), None, next_leg[state])
        return Decision(Step_Accept(), None, None)
