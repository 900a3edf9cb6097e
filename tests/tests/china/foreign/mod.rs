//! With nodes of CMPP, SMGP and SGIP in Python, and SPs that others wrote.

mod as_gateway;
mod as_sp;
mod chain;
mod packages;
