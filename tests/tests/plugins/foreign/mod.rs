//! With the tools that build plugins in JavaScript, with databases, and with a registry.

mod author;
mod dev;
mod life;
mod number_portability;
mod registry;
mod replay;
mod twilio;
