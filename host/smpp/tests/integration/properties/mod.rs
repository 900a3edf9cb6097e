//! Properties of every PDU and every stream.

mod generate;
mod oracle;
mod pair;
mod roundtrip;
mod streams;
