//! A GSM core network of real programs, Debian's `osmo-hlr` and `osmo-msc`, with a simulated radio side.
//!
//! ```text
//! Handset ── Radio ──SGsAP── Msc (osmo-msc) ──GSUP── whatever is under test ──GSUP── Hlr (osmo-hlr)
//! ```
//!
//! [`Radio`] simulates an MME: SGsAP (3GPP TS 29.118) is the only radio interface of osmo-msc that needs neither a base
//! station nor a BSC. The rest of the network (paging, GSM 04.11 timers, the VLR, GSUP) is the real program.
//!
//! Most ports of these programs cannot be configured (GSUP 4222, VTY 4258, CTRL 4259), so every program has its own loopback
//! address.

mod handset;
mod msc;
mod radio;
mod relay;
mod sgsap;
mod tpdu;

pub use handset::{Handset, HandsetAnswer, Paging, ReceivedMt, RpAnswer};
pub use msc::Msc;
pub use radio::Radio;
pub use relay::{GsupRelay, Message};
pub use testkit::osmocom::{GSUP, Hlr};
pub use tpdu::{Submit, decode_report, decode_text};
