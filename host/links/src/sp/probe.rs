//! Connection test of a gateway: an extra connection that logs in and out.

use super::gateway_link::{gateway_session, login};
use super::sp_link::login_status_text;
use super::{LinkedProtocol, SpGatewayOptions};
use crate::bind_probe::{ProbeRun, UNBIND_TIMEOUT, read, write};
use api::{TestStepKind, TestStepView};
use model::Timestamp;
use ports::{Socket, clock};
use sp_session::{Event, PduRole, Session};

/// Logs in at a gateway and out again. Messages of the gateway are refused temporarily; it repeats them on another
/// connection.
pub(crate) async fn probe<P: LinkedProtocol>(options: &SpGatewayOptions) -> Vec<TestStepView> {
    let mut run = ProbeRun::default();
    let _ = try_gateway::<P>(options, &mut run).await;
    run.into_steps()
}

async fn try_gateway<P: LinkedProtocol>(options: &SpGatewayOptions, run: &mut ProbeRun) -> Option<()> {
    let within = options.bind_timeout;
    let mut socket = run.connect_tls(&options.address, options.tls.as_ref(), within).await?;
    // A time that no regular login has used.
    let login = login::<P>(options, Timestamp(Timestamp::now().0.saturating_sub(60_000)));
    let mut session = Session::<P>::sp(clock::now(), gateway_session::<P>(options), options.version, &login);
    let bind = exchange(&mut socket, &mut session, Some((&login, &options.login_password.0)));
    run.step(TestStepKind::Bind, within, bind).await?;
    session.logout(clock::now());
    run.step(TestStepKind::Unbind, UNBIND_TIMEOUT, exchange(&mut socket, &mut session, None)).await
}

/// Exchanges PDUs until the login or logout is complete. For a login, `login` is given with its password.
async fn exchange<P: LinkedProtocol>(
    socket: &mut Socket,
    session: &mut Session<P>,
    login: Option<(&P::Pdu, &[u8])>,
) -> Result<((), Option<String>), String> {
    loop {
        write(socket, session.output()).await?;
        read(socket, session.input()).await?;
        session.process(clock::now());
        while let Some(event) = session.poll_event() {
            match (event, login) {
                (Event::LoggedIn(answer), Some((login, password))) => {
                    let version =
                        format!("version {:x}.{:x}", session.version() >> 4, session.version() & 0xF);
                    let proof = if P::proves_secret(&answer, login, password) {
                        "the gateway proves the password"
                    } else {
                        "the gateway does not prove the password"
                    };
                    return Ok(((), Some(format!("{version}; {proof}"))));
                }
                (Event::LoginRefused(answer), _) => {
                    let PduRole::LoginAnswer(status) = P::role(&answer) else { continue };
                    return Err(format!("login refused: {}", login_status_text::<P>(status)));
                }
                (Event::Closing(_), None) => {
                    let _ = write(socket, session.output()).await;
                    return Ok(((), None));
                }
                (Event::Closing(reason), Some(_)) => return Err(format!("{reason:?}")),
                (Event::Request { sequence, .. }, _) => {
                    session.refuse(sequence, P::STATUS.throttled, false);
                }
                _ => {}
            }
        }
    }
}
