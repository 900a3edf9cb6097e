//! The policy documents of the default resolvers, and the conversion of replies to answers.

mod answer;
pub mod hlr;
pub mod http;
mod json;
mod numbers;
pub mod table;

pub use answer::{Answer, Resolution, is_imsi};
pub use numbers::Numbers;
