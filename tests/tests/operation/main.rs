//! Running the daemon: backups, upgrades, crashes, supervision, and the manual.

mod archived_trace;
mod backup;
mod control;
mod crash_under_load;
mod events;
mod foreign;
mod guide;
mod journal;
mod older;
mod privacy;
mod supervision;
mod text_encryption;
mod upgrade;
