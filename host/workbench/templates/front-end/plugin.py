"""Serves an HTTP API with the parameters `login`, `password`, `to` and `text`, which answers with a line of text; policy.txt is an
example of its policy document."""

from urllib.parse import unquote_plus

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.translation import (
    Coding,
    Content_Text,
    Credentials,
    Outcome_Refused,
    Reading_Respond,
    Reading_Submit,
    RefusalReason,
    Submission,
    SubmissionResult_Accepted,
    Submit,
    WantedReceipts,
)
from wit_world.imports.types import HttpHeader, HttpResponse

accepted = "OK"
refused = "ERROR"

STATUS = {
    RefusalReason.UNAUTHENTICATED: 401,
    RefusalReason.THROTTLED: 429,
    RefusalReason.UNAVAILABLE: 503,
    RefusalReason.INTERNAL: 500,
}


def respond(status, word, detail):
    return HttpResponse(status, [HttpHeader("content-type", "text/plain")], f"{word} {detail}".encode())


class Translation(exports.Translation):
    def configure(self, document):
        global accepted, refused
        for number, line in enumerate(document.splitlines(), 1):
            match line.split():
                case []:
                    pass
                case [first, *_] if first.startswith("#"):
                    pass
                case ["accepted", word]:
                    accepted = word
                case ["refused", word]:
                    refused = word
                case _:
                    # The admin sees this error as the reason of the refusal.
                    raise Err(f"line {number}: expected 'accepted WORD' or 'refused WORD'")

    def read(self, request):
        form = request.body.decode(errors="replace") if request.method == "POST" else request.query
        parameters = {}
        for pair in form.split("&"):
            name, found, value = pair.partition("=")
            if found:
                parameters.setdefault(name, unquote_plus(value))
        for name in ("login", "password", "to", "text"):
            if name not in parameters:
                return Reading_Respond(respond(400, refused, f"{name} is missing"))
        submission = Submission(
            source=None,
            destination=parameters["to"],
            content=Content_Text(parameters["text"]),
            coding=Coding.AUTOMATIC,
            user_data_header=None,
            message_class=None,
            priority=None,
            validity=None,
            schedule=None,
            receipts=WantedReceipts.NONE,
            reference=None,
            tlvs=[],
            dlr_push=None,
        )
        return Reading_Submit(Submit(Credentials(parameters["login"], parameters["password"]), [submission], None))

    def reply(self, request, outcome):
        result = outcome if isinstance(outcome, Outcome_Refused) else outcome.value[0]
        if isinstance(result, SubmissionResult_Accepted):
            return respond(200, accepted, result.value.id)
        return respond(STATUS.get(result.value.reason, 422), refused, result.value.detail)
