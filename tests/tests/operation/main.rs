//! Running the daemon: backups, upgrades, crashes, supervision, and the manual.

mod archived_trace;
mod backup;
mod control;
mod events;
mod foreign;
mod guide;
mod journal;
mod older;
mod privacy;
mod supervision;
mod survival;
mod text_encryption;
mod upgrade;
