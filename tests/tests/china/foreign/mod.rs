//! With nodes of CMPP, SMGP and SGIP in Python.

mod as_gateway;
mod as_sp;
mod chain;
