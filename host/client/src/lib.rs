//! The other end of the admin's API, for commands: which appliance it is ([`At`]), how it is asked ([`Appliance`]), and how
//! what it says is shown ([`terminal`]).
#![forbid(unsafe_code)]

mod appliance;
mod logins;
pub mod terminal;
mod trust;

pub use appliance::{Appliance, At, ClientError, segment};
