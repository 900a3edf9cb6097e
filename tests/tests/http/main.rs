//! The admin API, its clients, and the configuration.

mod access;
mod access_tls;
mod admins;
mod api_operations;
mod attention;
mod command_line;
mod configuration;
mod configuration_fuzz;
mod event_stream;
mod foreign;
mod refusals;
mod refused_submissions;
mod tenant_limits;
mod tenants;
mod traffic;
