//! CMPP and SMGP, as an SP and as a gateway.

mod foreign;
