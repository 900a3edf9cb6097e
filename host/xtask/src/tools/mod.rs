//! The subcommands.

pub(crate) mod load;
