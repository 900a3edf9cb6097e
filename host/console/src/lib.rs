//! The console: pages for people who run the appliance.
//!
//! It asks the public API and nothing else, in process, with the visitor's own session and address. So what somebody may
//! see and do, what is masked and what is audited is decided in one place, and a page cannot show more than the API says.
//!
//! Pages are drawn here, in HTML that can be read without scripts. The one script keeps the live parts of a page up to date
//! with what comes as server-sent events; those parts are drawn here as well.
#![forbid(unsafe_code)]

mod ask;
mod assets;
mod chart;
mod documents;
mod door;
mod form;
mod live;
mod pages;
mod places;
mod settings;
mod shell;
mod table;
mod visit;
mod words;

pub use door::router;
