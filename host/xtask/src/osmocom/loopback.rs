//! Addresses of loopback for programs whose ports cannot be chosen.

use anyhow::{Context, Result};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// No program that is tested listens there; who has it has the address.
const CLAIM: u16 = 4220;

/// An address of 127/8 that nobody else has, other test programs included, for as long as it is kept.
#[derive(Debug)]
pub struct Loopback {
    address: Ipv4Addr,
    _claim: TcpListener,
}

impl Loopback {
    /// Takes a free one.
    pub fn claim() -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let start = std::process::id().wrapping_mul(64);
        let mut last = None;
        for _ in 0..10_000 {
            let number = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
            let [_, b, c, d] = number.to_be_bytes();
            // 127.0/16 is where everybody else is.
            let address = Ipv4Addr::new(127, b | 0x80, c, d.clamp(1, 254));
            match TcpListener::bind((address, CLAIM)) {
                Ok(claim) => return Ok(Self { address, _claim: claim }),
                Err(error) => last = Some(error),
            }
        }
        Err(last.map_or_else(|| anyhow::anyhow!("no attempt"), Into::into))
            .context("no address of 127/8 is free, or the system has only 127.0.0.1")
    }

    /// It.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }
}
