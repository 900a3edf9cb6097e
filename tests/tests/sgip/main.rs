//! SGIP, as an SP and as a gateway. All its peers are scripts in Python.

mod foreign;
