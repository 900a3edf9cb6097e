//! With the tools that build plugins in JavaScript, and with databases.

mod author;
mod life;
mod replay;
