//! With the tools that build plugins in JavaScript, and with databases.

mod author;
mod dev;
mod life;
mod replay;
