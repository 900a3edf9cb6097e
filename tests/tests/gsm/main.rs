//! Core networks, their subscribers, and subscribers on the command line.

mod core_network;
mod foreign;
mod shell;
mod subscriber;
