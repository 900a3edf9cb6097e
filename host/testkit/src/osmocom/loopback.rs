//! Loopback addresses for programs whose ports cannot be configured.

use anyhow::{Context, Result};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// A port that no tested program uses: binding it reserves the address.
const CLAIM: u16 = 4220;

/// An address of 127/8 that is reserved while this value exists, also against other test programs.
#[derive(Debug)]
pub struct Loopback {
    address: Ipv4Addr,
    _claim: TcpListener,
}

impl Loopback {
    /// Reserves a free address.
    pub fn claim() -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let start = std::process::id().wrapping_mul(64);
        let mut last = None;
        for _ in 0..10_000 {
            let number = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
            let [_, b, c, d] = number.to_be_bytes();
            // Everybody else uses 127.0/16.
            let address = Ipv4Addr::new(127, b | 0x80, c, d.clamp(1, 254));
            match TcpListener::bind((address, CLAIM)) {
                Ok(claim) => return Ok(Self { address, _claim: claim }),
                Err(error) => last = Some(error),
            }
        }
        Err(last.map_or_else(|| anyhow::anyhow!("no attempt"), Into::into))
            .context("no free address in 127/8, or the system has only 127.0.0.1")
    }

    /// The address.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }
}
