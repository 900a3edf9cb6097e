//! The policy documents of the default resolvers, and what the answers that they get come to.

mod answer;
pub mod hlr;
pub mod http;
mod json;
mod numbers;
pub mod table;

pub use answer::{Answer, Resolution, is_imsi};
pub use numbers::Numbers;
