//! With Osmocom's programs, tshark, sshd, and third-party ESMEs and SMSCs.

mod osmocom;
mod osmocom_instruments;
mod shell;
mod tpdu_oracle;
