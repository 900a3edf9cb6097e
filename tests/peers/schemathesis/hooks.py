"""Components of WebAssembly are octets like any others."""

import schemathesis

schemathesis.serializer.alias("application/wasm", "application/octet-stream")
