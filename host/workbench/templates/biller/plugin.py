"""Charges by the longest prefix of the destination, for each segment; policy.txt is an example of its policy document."""

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.billing import Charge, Fee_Charge, Fee_Free, Fee_Refuse, Quote
from wit_world.imports import tables

# The host's table of prefixes; a value is a price in millionths.
table = 0
# Accounts that are not charged.
free = set()


class Billing(exports.Billing):
    def configure(self, document):
        global table, free
        rows, accounts = [], set()
        for number, line in enumerate(document.splitlines(), 1):
            match line.split():
                case []:
                    pass
                case [first, *_] if first.startswith("#"):
                    pass
                case ["price", prefix, price] if price.isdecimal() and len(price) < 10:
                    rows.append(tables.Row(prefix, int(price)))
                case ["free", account]:
                    accounts.add(account)
                case _:
                    # The admin sees this error as the reason of the refusal.
                    raise Err(f"line {number}: expected 'price PREFIX MILLIONTHS' or 'free ACCOUNT'")
        table = tables.define_prefixes("prices", rows)
        free = accounts

    def price(self, message, leg):
        if message.origin in free:
            return Quote(Fee_Free(), None)
        found = tables.match_destination(table, 0xFFFFFFFF)
        if found is None:
            return Quote(Fee_Refuse(), "no price for this destination")
        amount = found.value * message.parts
        charge = Charge(message.origin, amount, keep_on_failure=False, settle=False)
        return Quote(Fee_Charge(charge), f"{message.parts} at {found.value}")

    def settle(self, settlements):
        pass
