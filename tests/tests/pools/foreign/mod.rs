//! With Redis clients, and third-party ESMEs and SMSCs.

mod redis;
mod sender;
