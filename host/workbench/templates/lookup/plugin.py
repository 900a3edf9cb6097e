"""Finds the network of a number in a table of the appliance; policy.txt is an example of its policy document."""

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.number_lookup import Answer_Found, Answer_Unknown, Known, LookedUp
from wit_world.imports import tables
from wit_world.imports.types import Attribute

# The appliance's table.
table = 0
# How long an answer is valid, in milliseconds.
valid = 60000


def unknown(note):
    return LookedUp(Answer_Unknown(valid), note)


class NumberLookup(exports.NumberLookup):
    def configure(self, document):
        global table, valid
        name, milliseconds = None, 60000
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

    def look_up(self, number):
        if not number.international:
            return unknown("not an international number")
        found = tables.get_prefix(table, number.digits)
        if found is None:
            return unknown("not in the table")
        mcc, dash, mnc = found.value.partition("-")
        if not dash:
            return unknown("the row is not MCC-MNC")
        attributes = [Attribute("mcc", mcc), Attribute("mnc", mnc)]
        return LookedUp(Answer_Found(Known(attributes, valid)), None)
