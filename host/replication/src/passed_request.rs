//! Headers and paths of connections and requests that a node passes on to another.

use axum::extract::{ConnectInfo, Request};
use axum::http::uri::{PathAndQuery, Uri};
use axum::http::{HeaderMap, HeaderName};
use ports::{LoginInterface, PassedApi, PassedConnection, PassedInterface, PassedOnMarker};
use std::net::SocketAddr;

/// The protocol of the upgrade of `GET /connection`.
pub(crate) const UPGRADE: &str = "switchyard-connection";
pub(crate) const PROTOCOL: HeaderName = HeaderName::from_static("passed-protocol");
pub(crate) const LISTENER: HeaderName = HeaderName::from_static("passed-listener");
/// The address and port of the client.
pub(crate) const REMOTE: HeaderName = HeaderName::from_static("passed-remote");
/// The address and port to which the client has connected, if the leader needs it.
pub(crate) const LOCAL: HeaderName = HeaderName::from_static("passed-local");
pub(crate) const TLS: HeaderName = HeaderName::from_static("passed-tls");

/// The interfaces whose connections are passed on.
const INTERFACES: [PassedInterface; 6] = [
    PassedInterface::Login(LoginInterface::Smpp),
    PassedInterface::Login(LoginInterface::Sgip),
    PassedInterface::Login(LoginInterface::Cmpp),
    PassedInterface::Login(LoginInterface::Smgp),
    PassedInterface::Login(LoginInterface::Redis),
    PassedInterface::Partition,
];

/// The APIs whose requests are passed on.
const APIS: [PassedApi; 3] = [PassedApi::Business, PassedApi::Admin, PassedApi::PeerCallbacks];

/// The path prefix of the requests of an API.
pub(crate) const fn prefix(api: PassedApi) -> &'static str {
    match api {
        PassedApi::Business => "/business",
        PassedApi::Admin => "/admin",
        PassedApi::PeerCallbacks => "/peer-callbacks",
    }
}

/// Reads a connection from its headers; `None` if a header is missing or invalid.
pub(crate) fn connection_of(headers: &HeaderMap) -> Option<PassedConnection> {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok();
    let protocol = text(PROTOCOL)?;
    Some(PassedConnection {
        interface: INTERFACES.into_iter().find(|known| known.name() == protocol)?,
        listener: text(LISTENER)?.to_owned(),
        remote: text(REMOTE)?.parse().ok()?,
        local: text(LOCAL).and_then(|address| address.parse().ok()),
        tls: text(TLS)? == "true",
    })
}

/// The headers of a connection.
pub(crate) fn headers_of(connection: &PassedConnection) -> impl Iterator<Item = (HeaderName, String)> {
    let always = [
        (PROTOCOL, connection.interface.name().to_owned()),
        (LISTENER, connection.listener.clone()),
        (REMOTE, connection.remote.to_string()),
        (TLS, connection.tls.to_string()),
    ];
    always.into_iter().chain(connection.local.map(|local| (LOCAL, local.to_string())))
}

/// Restores the client's request from a passed-on request: its path, and the client's address as the connection's.
pub(crate) fn unwrap(request: &mut Request) -> Option<PassedApi> {
    let whole = request.uri().path_and_query()?.as_str();
    let (api, path) = APIS.into_iter().find_map(|api| {
        let path = whole.strip_prefix(prefix(api))?;
        path.starts_with('/').then(|| (api, path.parse::<PathAndQuery>().ok()))
    })?;
    let remote: SocketAddr = request.headers_mut().remove(REMOTE)?.to_str().ok()?.parse().ok()?;
    *request.uri_mut() = Uri::from(path?);
    request.extensions_mut().insert(ConnectInfo(remote));
    request.extensions_mut().insert(PassedOnMarker);
    Some(api)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    #[test]
    fn a_connection_is_what_its_headers_say() {
        for interface in INTERFACES {
            let connection = PassedConnection {
                interface,
                listener: "smpp".to_owned(),
                remote: "[2001:db8::1]:5000".parse().unwrap(),
                local: (interface == PassedInterface::Login(LoginInterface::Redis))
                    .then(|| "192.0.2.1:6379".parse().unwrap()),
                tls: true,
            };
            let headers: HeaderMap =
                headers_of(&connection).map(|(name, value)| (name, value.parse().unwrap())).collect();
            assert_eq!(connection_of(&headers), Some(connection));
        }
        assert_eq!(connection_of(&HeaderMap::new()), None);
    }

    #[test]
    fn a_request_is_that_of_the_client_again() {
        let request =
            |path: &str| Request::get(path).header(REMOTE, "192.0.2.7:40000").body(Body::empty()).unwrap();
        let mut passed = request("/business/v1/inbox?limit=5");
        assert_eq!(unwrap(&mut passed), Some(PassedApi::Business));
        assert_eq!(passed.uri(), "/v1/inbox?limit=5");
        let ConnectInfo(remote) = passed.extensions().get::<ConnectInfo<SocketAddr>>().unwrap();
        assert_eq!(remote.to_string(), "192.0.2.7:40000");
        assert!(!passed.headers().contains_key(REMOTE));
        for other in ["/", "/businesses/v1", "/business", "/snapshot"] {
            assert_eq!(unwrap(&mut request(other)), None, "{other}");
        }
    }
}
