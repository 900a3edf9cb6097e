"""Submits messages to an HTTP API; policy.txt is an example of its policy document."""

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.peering import (
    Called, Outcome_Accepted, Outcome_Refused, Receipt, ReceiptState, Refusal, RefusalClass, Submitted
)
from wit_world.imports import details, http, secrets
from wit_world.imports.types import HttpResponse

# The address of the API.
url = ""

UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
STATES = {"delivered": ReceiptState.DELIVERED, "failed": ReceiptState.UNDELIVERABLE}


def escape(text):
    """A text in a form: all but unreserved characters as percent signs and hexadecimal digits."""
    return "".join(chr(octet) if octet in UNRESERVED else f"%{octet:02X}" for octet in text.encode())


def field(query, name):
    """The value of a field in a query. Escapes are not decoded: this API needs none."""
    for pair in query.split("&"):
        key, separator, value = pair.partition("=")
        if separator and key == name:
            return value
    return None


def refused(reason, code, note, retry_after=None):
    return Submitted(Outcome_Refused(Refusal(reason, code, retry_after)), note)


def called(status, receipts):
    return Called(HttpResponse(status, [], b""), receipts, [], None)


class Peering(exports.Peering):
    def configure(self, document):
        global url
        address = None
        for number, line in enumerate(document.splitlines(), 1):
            match line.split():
                case []:
                    pass
                case [first, *_] if first.startswith("#"):
                    pass
                case ["url", word]:
                    address = word
                case _:
                    # The admin sees this error as the reason of the refusal.
                    raise Err(f"line {number}: expected 'url ADDRESS'")
        if address is None:
            raise Err("there is no line 'url ADDRESS'")
        url = address

    def submit(self, message, attempt):
        text = details.text()
        if text is None:
            return refused(RefusalClass.PERMANENT, 0, "8-bit data has no text")
        source, destination = escape(message.source.value), escape(message.destination.value)
        body = f"from={source}&to={destination}&text={escape(text)}".encode()
        headers = [("content-type", "application/x-www-form-urlencoded")]
        try:
            answer = http.fetch(http.Request("POST", url, headers, body))
        except Err:
            # The host makes the outcome uncertain if the peer may have the message.
            return refused(RefusalClass.TEMPORARY, 0, "no answer")
        if 200 <= answer.status < 300:
            return Submitted(Outcome_Accepted(answer.body.decode(errors="replace").strip()), None)
        if answer.status == 429:
            return refused(RefusalClass.THROTTLED, answer.status, None, 1000)
        if 400 <= answer.status < 500:
            return refused(RefusalClass.PERMANENT, answer.status, "refused by the API")
        return refused(RefusalClass.TEMPORARY, answer.status, "the API fails")

    def callback(self, peer, request):
        key = secrets.get("callback")
        if key is None or field(request.query, "key") != key:
            return called(403, [])
        id, status = field(request.query, "id"), field(request.query, "status")
        if id is None or status is None:
            return called(400, [])
        state = STATES.get(status, ReceiptState.ENROUTE)
        return called(204, [Receipt(id, None, None, state, 0, None)])
