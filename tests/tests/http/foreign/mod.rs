//! With a browser, schemathesis, and third-party ESMEs and SMSCs.

mod configuration;
mod console;
mod openapi;
mod tenants;
