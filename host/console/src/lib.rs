//! The console: web pages for operators of the appliance.
//!
//! The console uses only the public API, in process, with the user's session and address. The API alone decides about
//! permissions, masking and audit; a page cannot show more than the API returns.
//!
//! The server renders all pages as HTML that works without scripts. One script updates the live regions of a page from
//! server-sent events; the server renders these regions as well.
#![forbid(unsafe_code)]

mod api_caller;
mod assets;
mod chart;
mod configuration_cache;
mod csv_export;
mod form;
mod format;
mod layout;
mod list_filter;
mod live;
mod manual;
mod nav;
mod pages;
mod partition;
mod problem_lines;
mod request_context;
mod router;
mod search;
mod session_extractor;
mod settings;
mod table;
mod toml_text;
mod traffic_map;

pub use router::router;
