//! Who an MSC is, asked before its HLR is dialled: whoever merely finds the port costs the HLR nothing.

use bytes::BytesMut;
use gsup::ccm::{Ccm, tag};
use gsup::ipa::{Frame, HEADER, MOST};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Octets that are read before the identity: an MSC that does not wait for its HLR's question may send a little.
const LIMIT: usize = 64 << 10;

/// What OsmoHLR asks for, in its order.
const TAGS: [u8; 8] = [
    tag::UNIT_ID,
    tag::MAC,
    tag::LOCATION_2,
    tag::LOCATION,
    tag::EQUIPMENT_VERSION,
    tag::SOFTWARE_VERSION,
    tag::UNIT_NAME,
    tag::SERIAL,
];

/// Asks an MSC for its name and waits for the answer. The answer and all that the MSC sends with it are left in `input`, in
/// order, for the HLR.
///
/// # Errors
/// When it does not answer within `patience`, answers without a name, or sends what is no frame.
pub(crate) async fn ask(msc: &mut TcpStream, input: &mut BytesMut, patience: Duration) -> io::Result<String> {
    let asked = async {
        let mut question = BytesMut::new();
        Ccm::IdGet(TAGS.to_vec()).put(&mut question);
        msc.write_all(&question).await?;
        // Up to here there is no identity.
        let mut at = 0;
        loop {
            while let Some(octets) = whole_frame(input.get(at..).unwrap_or_default())? {
                let frame = input.get(at..at + octets).unwrap_or_default();
                if let Some(name) = identity(frame)? {
                    return Ok(name);
                }
                at += octets;
            }
            if input.len() > LIMIT {
                return Err(wrong("it sends without saying who it is"));
            }
            if msc.read_buf(input).await? == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it has closed the connection"));
            }
        }
    };
    match tokio::time::timeout(patience, asked).await {
        Ok(answered) => answered,
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, format!("no identity within {patience:?}"))),
    }
}

fn wrong(what: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Octets of the next frame with its header, if it is all there.
fn whole_frame(input: &[u8]) -> io::Result<Option<usize>> {
    let [high, low, stream, ..] = *input else { return Ok(None) };
    let octets = usize::from(u16::from_be_bytes([high, low]));
    if octets == 0 {
        return Err(wrong(gsup::ipa::FrameError::Empty { stream }));
    }
    Ok((input.len() >= HEADER + octets).then_some(HEADER + octets))
}

/// The name in an answer to our question; nothing where the frame is something else.
fn identity(frame: &[u8]) -> io::Result<Option<String>> {
    let mut frame = BytesMut::from(frame);
    match Frame::take(&mut frame, MOST).map_err(wrong)? {
        Some(Frame::Ccm(payload)) => match Ccm::decode(&payload) {
            Ccm::IdResponse(response) => match response.serial() {
                Some(name) => Ok(Some(name.to_owned())),
                None => {
                    Err(wrong("its identity has no serial number, which is the name that an HLR routes by"))
                }
            },
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use gsup::ccm::IdResponse;
    use tokio::net::TcpListener;

    fn frame(ccm: &Ccm) -> Vec<u8> {
        let mut output = BytesMut::new();
        ccm.put(&mut output);
        output.to_vec()
    }

    fn named(name: &'static [u8]) -> Vec<u8> {
        frame(&Ccm::IdResponse(IdResponse { items: vec![(tag::SERIAL, Bytes::from_static(name))] }))
    }

    /// What is asked, and what is left, when an MSC sends this.
    async fn asked(octets: &[u8], patience: Duration) -> (io::Result<String>, Vec<u8>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut msc = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut ours, _) = listener.accept().await.unwrap();
        msc.write_all(octets).await.unwrap();
        let mut input = BytesMut::new();
        let name = ask(&mut ours, &mut input, patience).await;
        (name, input.to_vec())
    }

    #[tokio::test]
    async fn an_msc_is_named_and_what_it_sends_is_kept_for_the_hlr() {
        let (ping, pong) = (frame(&Ccm::Ping), frame(&Ccm::Pong));
        let octets = [ping.clone(), named(b"MSC-1\0"), pong.clone(), vec![0, 9]].concat();
        let (name, left) = asked(&octets, Duration::from_secs(60)).await;
        assert_eq!(name.unwrap(), "MSC-1");
        assert_eq!(left, octets);
    }

    #[tokio::test]
    async fn who_does_not_say_a_name_is_refused() {
        let soon = Duration::from_millis(50);
        assert_eq!(asked(b"", soon).await.0.unwrap_err().kind(), io::ErrorKind::TimedOut);
        let long = Duration::from_secs(60);
        for bad in [&named(b"\0")[..], &[0, 0, 0xfe], &frame(&Ccm::Ping).repeat(20_000)] {
            assert_eq!(asked(bad, long).await.0.unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
    }
}
