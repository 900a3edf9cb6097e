//! A GSM core network of real programs, Debian's `osmo-hlr` and `osmo-msc`, and the radio side that they do not have here.
//!
//! ```text
//! Phone ── Radio ──SGsAP── Msc (osmo-msc) ──GSUP── whatever is under test ──GSUP── Hlr (osmo-hlr)
//! ```
//!
//! [`Radio`] stands for an MME: SGsAP (3GPP TS 29.118) is the one radio side of osmo-msc that needs neither a base station
//! nor a BSC. Everything behind it, paging, GSM 04.11 timers, the VLR, GSUP, is the real program's.
//!
//! Most ports of these programs cannot be chosen (GSUP 4222, VTY 4258, CTRL 4259), so every program has an address of
//! loopback of its own.

mod msc;
mod phone;
mod radio;
mod relay;
mod sgsap;
mod tpdu;

pub use msc::Msc;
pub use phone::{Answer, Mt, Paging, Phone, RpAnswer};
pub use radio::Radio;
pub use relay::{Message, Relay};
pub use tpdu::{Submit, report_of, text_of};
pub use xtask::osmocom::{GSUP, Hlr};
