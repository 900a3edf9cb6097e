//! With third-party ESMEs and SMSCs.

mod peers;
mod submit_multi;
