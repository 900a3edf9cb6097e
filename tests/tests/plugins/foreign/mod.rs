//! With the tools that build plugins in JavaScript, with databases, and with registries and their tools.

mod author;
mod campaigns;
mod dev;
mod life;
mod number_portability;
mod profile;
mod registry;
mod registry_sources;
mod replay;
mod twilio;
mod wkg;
