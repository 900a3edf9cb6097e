//! ESMEs and SMSCs: sessions, queues, invalid input.

mod bad_input;
mod dialling;
mod dlr_resend;
mod foreign;
mod pace_limits;
mod queues;
