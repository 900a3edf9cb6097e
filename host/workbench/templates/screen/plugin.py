"""Rejects and tags texts by their words, and keeps messages of some senders in quarantine; policy.txt is an example of its
policy document."""

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.screening import Decision, Verdict_Pass, Verdict_Quarantine, Verdict_Reject
from wit_world.imports import details
from wit_world.imports.types import Attribute, Change_SetAttribute, RejectReason

# Words in lower case.
rejected = []
senders = set()
# Words in lower case.
tagged = []


class Screening(exports.Screening):
    def configure(self, document):
        global rejected, senders, tagged
        read_rejected, read_senders, read_tagged = [], set(), []
        for number, line in enumerate(document.splitlines(), 1):
            match line.split():
                case []:
                    pass
                case [first, *_] if first.startswith("#"):
                    pass
                case ["reject", word]:
                    read_rejected.append(word.lower())
                case ["quarantine", sender]:
                    read_senders.add(sender)
                case ["tag", word]:
                    read_tagged.append(word.lower())
                case _:
                    # The admin sees this error as the reason of the refusal.
                    raise Err(f"line {number}: expected 'reject WORD', 'quarantine SENDER' or 'tag WORD'")
        rejected, senders, tagged = read_rejected, read_senders, read_tagged

    def screen(self, message):
        text = (details.text() or "").lower()

        def find(words):
            return next((word for word in words if word in text), None)

        word = find(rejected)
        if word:
            return Decision(Verdict_Reject(RejectReason.PROHIBITED), f"the word {word}", [], None)
        sender = message.source.value
        if sender in senders:
            return Decision(Verdict_Quarantine(), f"sender {sender}", [], None)
        word = find(tagged)
        changes = [Change_SetAttribute(Attribute("word", word))] if word else []
        return Decision(Verdict_Pass(), None, changes, None)
