"""Routes by the longest prefix of the destination; policy.txt is an example of its policy document."""

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.routing import (
    Decision,
    Leg,
    Verdict_Forward,
    Verdict_Pass,
    Verdict_Reject,
)
from wit_world.imports import tables
from wit_world.imports.types import RejectReason

EXPECTED = "expected 'route PREFIX PEER', 'reject PREFIX' or, once, 'sender NAME PEER'"

# (prefix, peer) by index; without a peer: refused.
rules = []
# A sender, and the peer for its messages.
sender = None
# The host's table of prefixes; a value is an index into `rules`.
table = 0


class Routing(exports.Routing):
    def configure(self, document):
        global rules, sender, table
        read_rules, read_sender = [], None
        for number, line in enumerate(document.splitlines(), 1):
            match line.split():
                case []:
                    pass
                case [first, *_] if first.startswith("#"):
                    pass
                case ["route", prefix, peer]:
                    read_rules.append((prefix, peer))
                case ["reject", prefix]:
                    read_rules.append((prefix, None))
                case ["sender", name, peer] if read_sender is None:
                    read_sender = (name, peer)
                case _:
                    # The admin sees this error as the reason of the refusal.
                    raise Err(f"line {number}: {EXPECTED}")
        rows = [tables.Row(prefix, value) for value, (prefix, _) in enumerate(read_rules)]
        table = tables.define_prefixes("prefixes", rows)
        rules, sender = read_rules, read_sender

    def route(self, message):
        found = tables.match_destination(table, 0xFFFFFFFF)
        prefix, peer = rules[found.value] if found else (None, None)
        if found and peer is None:
            return Decision(Verdict_Reject(RejectReason.PROHIBITED), f"prefix {prefix} is refused", [])
        if sender and sender[0] == message.source.value:
            return forward(sender[1], f"sender {sender[0]}")
        if peer:
            return forward(peer, f"prefix {prefix}")
        return Decision(Verdict_Pass(), None, [])


def forward(peer, note):
    leg = Leg(peer, rank=0, weight=1, cost=0, longest_wait=None, source=None, destination=None)
    return Decision(Verdict_Forward([leg]), note, [])
