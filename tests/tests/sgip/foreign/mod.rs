//! With SGIP nodes and business systems in Python, and databases.

mod as_gateway;
mod as_sp;
mod business_peer;
mod oracle;
mod peer;
mod platform;
