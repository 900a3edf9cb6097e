//! Property tests of the codec.

mod generate;
mod roundtrip;
mod smpp;
