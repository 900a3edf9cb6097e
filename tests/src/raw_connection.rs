//! A bare TCP connection that sends any octets and returns what is received.

use anyhow::{Result, ensure};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// A received PDU: command id, status, sequence number, body.
pub type RawPdu = (u32, u32, u32, Vec<u8>);

/// A connection.
#[derive(Debug)]
pub struct RawConnection {
    socket: TcpStream,
}

impl RawConnection {
    /// Connects. Reads have the test timeout.
    pub fn connect(address: SocketAddr) -> Result<Self> {
        Self::accepted(TcpStream::connect(address)?)
    }

    /// Takes a connection that a listener has accepted.
    pub fn accepted(socket: TcpStream) -> Result<Self> {
        socket.set_read_timeout(Some(crate::TIMEOUT))?;
        socket.set_write_timeout(Some(crate::TIMEOUT))?;
        socket.set_nodelay(true)?;
        Ok(Self { socket })
    }

    /// Sends octets.
    pub fn send(&mut self, octets: &[u8]) -> Result<()> {
        Ok(self.socket.write_all(octets)?)
    }

    /// Sends a PDU with status 0.
    pub fn send_pdu(&mut self, id: u32, sequence: u32, body: &[u8]) -> Result<()> {
        let length = (16 + body.len()) as u32;
        self.send(
            &[&length.to_be_bytes(), &id.to_be_bytes(), &[0; 4], &sequence.to_be_bytes(), body].concat(),
        )
    }

    /// Binds as a transceiver; returns the status of the answer.
    pub fn bind(&mut self, system_id: &str, password: &str) -> Result<u32> {
        let body = [system_id.as_bytes(), &[0], password.as_bytes(), &[0, 0, 0x34, 0, 0, 0]].concat();
        self.send_pdu(9, 1, &body)?;
        let (id, status, sequence, _) = self.receive()?;
        ensure!((id, sequence) == (0x8000_0009, 1), "the bind was answered by {id:#x}, sequence {sequence}");
        Ok(status)
    }

    /// The next PDU.
    pub fn receive(&mut self) -> Result<RawPdu> {
        let mut header = [[0; 4]; 4];
        self.socket.read_exact(header.as_flattened_mut())?;
        let [length, id, status, sequence] = header.map(u32::from_be_bytes);
        ensure!((16..70_000).contains(&length), "an answer of {length} octets");
        let mut body = vec![0; length as usize - 16];
        self.socket.read_exact(&mut body)?;
        Ok((id, status, sequence, body))
    }

    /// Reads the head of an HTTP answer, up to its empty line.
    pub fn head(&mut self) -> Result<String> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut octet = [0];
            self.socket.read_exact(&mut octet)?;
            head.push(octet[0]);
        }
        Ok(String::from_utf8_lossy(&head).into_owned())
    }

    /// Reads until the other side closes; returns everything received.
    pub fn until_closed(&mut self) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        match self.socket.read_to_end(&mut all) {
            Ok(_) => Ok(all),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(all),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends until the other side takes no more or closes; returns the number of octets sent. Never reads.
    pub fn flood(&mut self, octets: &[u8], most: usize) -> Result<usize> {
        self.socket.set_write_timeout(Some(std::time::Duration::from_secs(2)))?;
        let mut sent = 0;
        while sent < most {
            match self.socket.write(octets) {
                Ok(0) => break,
                Ok(count) => sent += count,
                Err(_) => break,
            }
        }
        Ok(sent)
    }
}
