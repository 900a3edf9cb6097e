//! Passing on of clients whose pools are in another partition of the cluster: its leader serves the client, and this node copies
//! the octets.

use ports::{PassOn, PassedConnection, Socket, splice};
use std::io;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Maximum length of an error in a leader's answer to a login, in octets.
const MAX_ERROR_OCTETS: usize = 4096;

/// The answer of a leader to a login.
pub(crate) enum LeaderAnswer {
    Accepted(LeaderConnection),
    /// The login is refused, with this error text.
    Refused(String),
}

/// A connection to a leader that has logged the client in.
pub(crate) struct LeaderConnection {
    leader: Socket,
    /// The octets that the leader has sent so far.
    answer: Vec<u8>,
}

impl LeaderConnection {
    /// Connects to the leader of a partition, and sends it the login request of a client.
    pub(crate) async fn log_in(
        pass_on: &dyn PassOn,
        partition: u8,
        connection: PassedConnection,
        request: &[u8],
    ) -> io::Result<LeaderAnswer> {
        let mut leader = pass_on.connect(partition, connection).await?;
        leader.write_all(request).await?;
        leader.flush().await?;
        let mut answer = Vec::new();
        loop {
            if leader.read_buf(&mut answer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(error) = error_of(&answer)? {
                return Ok(LeaderAnswer::Refused(error));
            }
            if answer.first().is_some_and(|octet| *octet != b'-') {
                return Ok(LeaderAnswer::Accepted(Self { leader, answer }));
            }
        }
    }

    /// Connects the client with the leader until either ends. `output` is sent to the client before the answer to its login; `rest`
    /// are the octets that the client has sent after the login.
    pub(crate) async fn serve(
        self,
        mut client: Socket,
        output: &[u8],
        rest: &[u8],
        closing: impl Future<Output = ()>,
    ) {
        let Self { mut leader, answer } = self;
        let begun = async {
            client.write_all(&[output, &answer].concat()).await?;
            client.flush().await?;
            leader.write_all(rest).await?;
            leader.flush().await
        };
        if begun.await.is_ok() {
            splice(client, leader, closing).await;
        }
    }
}

/// The text of the error at the start of an answer; `None` if the answer is not an error, or the error is incomplete.
fn error_of(answer: &[u8]) -> io::Result<Option<String>> {
    let Some(text) = answer.strip_prefix(b"-") else { return Ok(None) };
    match text.windows(2).position(|pair| pair == b"\r\n") {
        Some(end) => Ok(text.get(..end).map(|line| String::from_utf8_lossy(line).into_owned())),
        None if text.len() < MAX_ERROR_OCTETS => Ok(None),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_known_when_its_line_is_complete() {
        assert_eq!(error_of(b"+OK\r\n").unwrap(), None);
        assert_eq!(error_of(b"").unwrap(), None);
        assert_eq!(error_of(b"-WRONGPASS no\r").unwrap(), None);
        assert_eq!(error_of(b"-WRONGPASS no\r\n").unwrap().unwrap(), "WRONGPASS no");
        assert!(error_of(&[b'-'; 5000]).is_err());
    }
}
