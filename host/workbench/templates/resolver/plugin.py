"""Finds subscribers in a table of the appliance; policy.txt is an example of its policy document."""

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.resolution import Answer_Found, Answer_Unknown, Resolved, Subscriber
from wit_world.imports import tables

# The appliance's table.
table = 0
# Validity of an answer, in milliseconds.
valid = None


class Resolution(exports.Resolution):
    def configure(self, document):
        global table, valid
        name, milliseconds = None, None
        for number, line in enumerate(document.splitlines(), 1):
            match line.split():
                case []:
                    pass
                case [first, *_] if first.startswith("#"):
                    pass
                case ["table", word]:
                    name = word
                case ["valid", seconds] if seconds.isdecimal() and len(seconds) < 10:
                    milliseconds = int(seconds) * 1000
                case _:
                    # The admin sees this error as the reason of the refusal.
                    raise Err(f"line {number}: expected 'table NAME' or 'valid SECONDS'")
        if name is None:
            raise Err("there is no line 'table NAME'")
        table, valid = tables.open(name), milliseconds

    def resolve(self, msisdn):
        value = tables.get(table, msisdn)
        if value is None:
            return Resolved(Answer_Unknown(None), "not in the table")
        imsi, _, serving = value.partition(",")
        return Resolved(Answer_Found(Subscriber(imsi, serving or None, valid)), None)
