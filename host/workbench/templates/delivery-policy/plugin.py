"""Retries after increasing waits, then tries the next leg; policy.txt is an example of its policy document."""

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.delivery import Advice, ErrorClass, NextStep, Step_NextLeg, Step_RetryAfter

# Milliseconds before each further attempt.
waits = []
# Pause of a peer that throttles, in milliseconds.
pause = None


class Delivery(exports.Delivery):
    def configure(self, document):
        global waits, pause
        read_waits, read_pause = [], None
        for number, line in enumerate(document.splitlines(), 1):
            match line.split():
                case []:
                    pass
                case [first, *_] if first.startswith("#"):
                    pass
                case ["wait", *rest] if rest and all(map(is_seconds, rest)):
                    read_waits = [int(seconds) * 1000 for seconds in rest]
                case ["pause", seconds] if is_seconds(seconds):
                    read_pause = int(seconds) * 1000
                case _:
                    # The admin sees this error as the reason of the refusal.
                    raise Err(f"line {number}: expected 'wait SECONDS ...' or 'pause SECONDS'")
        waits, pause = read_waits, read_pause

    def next(self, message, attempt):
        note = f"attempt {attempt.number}"
        if attempt.class_ == ErrorClass.THROTTLED:
            # The peer waits, not the message.
            advice = None if pause is None else Advice(pause, rate=None, window=None)
            return NextStep(Step_RetryAfter(0), advice, note)
        if attempt.class_ != ErrorClass.PERMANENT and attempt.number <= len(waits):
            return NextStep(Step_RetryAfter(waits[attempt.number - 1]), None, note)
        return NextStep(Step_NextLeg(), None, note)


def is_seconds(word):
    return word.isdecimal() and len(word) < 10
