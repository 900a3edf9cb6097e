"""PyPI `twilio`, the client library of Twilio's API, with another base URL.

Reads one JSON line per action from standard input, and writes one JSON line per event to standard output.
Start: python3 twilio_client.py '{"base": "http://host:port", "account": "…", "token": "…"}'

Action: {"to": "…", "from": "…", "body": "…", "callback": "…"}: creates a message; the callback may be missing. Event "created" {"sid", "status",
"num_segments", "to", "body"}, or "refused" {"status", "code", "msg"}.
Action: {"validate": "URL", "form": "…", "signature": "…"}: verifies the signature of a request. Event "validated" {"right"}.
"""

import json
import sys
import urllib.parse

from twilio.base.exceptions import TwilioRestException
from twilio.http.http_client import TwilioHttpClient
from twilio.request_validator import RequestValidator
from twilio.rest import Client

options = json.loads(sys.argv[1])


class OtherBase(TwilioHttpClient):
    """Sends what is for api.twilio.com to the base URL of the options."""

    def request(self, method, url, *arguments, **keywords):
        return super().request(method, url.replace("https://api.twilio.com", options["base"]), *arguments, **keywords)


def tell(event, **details):
    print(json.dumps({"event": event, **details}), flush=True)


client = Client(options["account"], options["token"], http_client=OtherBase())
tell("ready")
for line in sys.stdin:
    action = json.loads(line)
    if "validate" in action:
        form = dict(urllib.parse.parse_qsl(action["form"], keep_blank_values=True, strict_parsing=True))
        right = RequestValidator(options["token"]).validate(action["validate"], form, action["signature"])
        tell("validated", right=right)
        continue
    try:
        callback = {"status_callback": action["callback"]} if "callback" in action else {}
        message = client.messages.create(to=action["to"], from_=action["from"], body=action["body"], **callback)
        tell(
            "created",
            sid=message.sid,
            status=str(message.status),
            num_segments=message.num_segments,
            to=message.to,
            body=message.body,
        )
    except TwilioRestException as error:
        tell("refused", status=error.status, code=error.code, msg=error.msg)
