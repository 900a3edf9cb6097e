//! With the tools that build plugins in JavaScript, with databases, and with a registry.

mod author;
mod dev;
mod life;
mod registry;
mod replay;
