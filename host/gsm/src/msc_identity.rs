//! MSC identity request. The name of an MSC is requested before the HLR is dialled, so that port scans cost the HLR
//! nothing.

use bytes::BytesMut;
use gsup::ccm::{Ccm, tag};
use gsup::ipa::{HEADER_LEN, IpaFrame, MAX_PAYLOAD};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Maximum number of octets before the identity response; an MSC may send messages without waiting for the identity
/// request.
const MAX_OCTETS_BEFORE_IDENTITY: usize = 64 << 10;

/// The tags that OsmoHLR requests, in its order.
const REQUESTED_TAGS: [u8; 8] = [
    tag::UNIT_ID,
    tag::MAC,
    tag::LOCATION_2,
    tag::LOCATION,
    tag::EQUIPMENT_VERSION,
    tag::SOFTWARE_VERSION,
    tag::UNIT_NAME,
    tag::SERIAL,
];

/// Requests the name of an MSC. The response and everything else that the MSC sends stays in `input`, in order, for the
/// HLR.
///
/// # Errors
/// If the MSC does not answer within `timeout`, answers without a name, or sends an invalid frame.
pub(crate) async fn request_name(
    msc: &mut TcpStream,
    input: &mut BytesMut,
    timeout: Duration,
) -> io::Result<String> {
    let request = async {
        let mut question = BytesMut::new();
        Ccm::IdGet(REQUESTED_TAGS.to_vec()).put(&mut question);
        msc.write_all(&question).await?;
        // Frames before this offset contain no identity.
        let mut at = 0;
        loop {
            while let Some(octets) = whole_frame(input.get(at..).unwrap_or_default())? {
                let frame = input.get(at..at + octets).unwrap_or_default();
                if let Some(name) = identity(frame)? {
                    return Ok(name);
                }
                at += octets;
            }
            if input.len() > MAX_OCTETS_BEFORE_IDENTITY {
                return Err(invalid_data("it sends messages before its identity"));
            }
            if msc.read_buf(input).await? == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "connection closed by the MSC"));
            }
        }
    };
    match tokio::time::timeout(timeout, request).await {
        Ok(answered) => answered,
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, format!("no identity within {timeout:?}"))),
    }
}

fn invalid_data(what: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Length of the next frame with its header, if it is complete.
fn whole_frame(input: &[u8]) -> io::Result<Option<usize>> {
    let [high, low, stream, ..] = *input else { return Ok(None) };
    let octets = usize::from(u16::from_be_bytes([high, low]));
    if octets == 0 {
        return Err(invalid_data(gsup::ipa::FrameError::Empty { stream }));
    }
    Ok((input.len() >= HEADER_LEN + octets).then_some(HEADER_LEN + octets))
}

/// The name in an identity response; `None` for other frames.
fn identity(frame: &[u8]) -> io::Result<Option<String>> {
    let mut frame = BytesMut::from(frame);
    match IpaFrame::take(&mut frame, MAX_PAYLOAD).map_err(invalid_data)? {
        Some(IpaFrame::Ccm(payload)) => match Ccm::decode(&payload) {
            Ccm::IdResponse(response) => match response.serial() {
                Some(name) => Ok(Some(name.to_owned())),
                None => Err(invalid_data(
                    "its identity has no serial number, which is the name that an HLR routes by",
                )),
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

    fn identity_frame(name: &'static [u8]) -> Vec<u8> {
        frame(&Ccm::IdResponse(IdResponse { items: vec![(tag::SERIAL, Bytes::from_static(name))] }))
    }

    /// The result of a request, and the remaining input, for an MSC that sends these octets.
    async fn request_outcome(octets: &[u8], timeout: Duration) -> (io::Result<String>, Vec<u8>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut msc = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut ours, _) = listener.accept().await.unwrap();
        msc.write_all(octets).await.unwrap();
        let mut input = BytesMut::new();
        let name = request_name(&mut ours, &mut input, timeout).await;
        (name, input.to_vec())
    }

    #[tokio::test]
    async fn msc_name_is_read_and_input_is_kept_for_the_hlr() {
        let (ping, pong) = (frame(&Ccm::Ping), frame(&Ccm::Pong));
        let octets = [ping.clone(), identity_frame(b"MSC-1\0"), pong.clone(), vec![0, 9]].concat();
        let (name, left) = request_outcome(&octets, Duration::from_secs(60)).await;
        assert_eq!(name.unwrap(), "MSC-1");
        assert_eq!(left, octets);
    }

    #[tokio::test]
    async fn msc_without_a_name_is_refused() {
        let soon = Duration::from_millis(50);
        assert_eq!(request_outcome(b"", soon).await.0.unwrap_err().kind(), io::ErrorKind::TimedOut);
        let long = Duration::from_secs(60);
        for bad in [&identity_frame(b"\0")[..], &[0, 0, 0xfe], &frame(&Ccm::Ping).repeat(20_000)] {
            assert_eq!(request_outcome(bad, long).await.0.unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
    }
}
