//! The subcommands.

pub(crate) mod aims;
pub(crate) mod archive_bench;
pub(crate) mod bench;
mod console_bench;
pub(crate) mod crash;
pub(crate) mod demo;
pub(crate) mod demo_gsm;
pub(crate) mod demo_sgip;
mod gsm_bench;
pub(crate) mod hooks_bench;
pub(crate) mod image;
pub(crate) mod load;
pub(crate) mod package;
mod pool_bench;
pub(crate) mod reconfigure;
pub(crate) mod setup;
pub(crate) mod swap;
pub(crate) mod test;
mod tool_run;
mod traffic_phase;
mod verbs;
