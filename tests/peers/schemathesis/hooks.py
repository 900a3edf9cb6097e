"""Components of WebAssembly are octets like any others."""

import os
from urllib.parse import unquote

import schemathesis

schemathesis.serializer.alias("application/wasm", "application/octet-stream")


@schemathesis.check
def nothing_of_another_branch(ctx, response, case):
    """No answer has a word of another tenant's branch, unless its request has it."""
    words = os.environ.get("SWITCHYARD_FOREIGN_WORDS", "").split(",")
    request = response.request
    body = request.body or b""
    if isinstance(body, str):
        body = body.encode()
    asked = unquote(request.url) + body.decode(errors="replace")
    answered = response.content.decode(errors="replace") + str(response.headers)
    found = [word for word in words if word and word in answered and word not in asked]
    assert not found, f"the answer has {found}, which belong to another branch"
