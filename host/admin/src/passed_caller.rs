//! The caller of a request that a node of the cluster passes on to another.

use access::Caller;
use api::Role;
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue};
use ports::PassedOnMarker;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The caller of a passed-on request, JSON. The node to which it came has authenticated the caller. It counts only in requests
/// that came over the listener for nodes.
pub(crate) const CALLER: HeaderName = HeaderName::from_static("passed-caller");

#[derive(Serialize, Deserialize)]
struct PassedCaller {
    name: Arc<str>,
    role: Role,
    account: Option<Arc<str>>,
    tenant: Option<Arc<str>>,
    bodies: bool,
}

/// The caller of a request that another node has passed on.
pub(crate) fn passed_caller(extensions: &Extensions, headers: &HeaderMap) -> Option<Caller> {
    extensions.get::<PassedOnMarker>()?;
    let caller: PassedCaller = serde_json::from_slice(headers.get(CALLER)?.as_bytes()).ok()?;
    let PassedCaller { name, role, account, tenant, bodies } = caller;
    Some(Caller { name, role, account, tenant, bodies })
}

/// The header that names a caller.
pub(crate) fn header_of(caller: &Caller) -> Option<HeaderValue> {
    let Caller { name, role, account, tenant, bodies } = caller.clone();
    let octets = serde_json::to_vec(&PassedCaller { name, role, account, tenant, bodies }).ok()?;
    HeaderValue::from_bytes(&octets).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller() -> Caller {
        Caller {
            name: "ann@north".into(),
            role: Role::Account,
            account: Some("shop \u{e9}".into()),
            tenant: Some("north".into()),
            bodies: true,
        }
    }

    #[test]
    fn a_caller_counts_only_if_a_node_has_passed_the_request_on() {
        let headers: HeaderMap = [(CALLER, header_of(&caller()).unwrap())].into_iter().collect();
        let mut extensions = Extensions::new();
        assert_eq!(passed_caller(&extensions, &headers), None, "anybody can send a header");
        extensions.insert(PassedOnMarker);
        assert_eq!(passed_caller(&extensions, &headers), Some(caller()));
        assert_eq!(passed_caller(&extensions, &HeaderMap::new()), None);
    }
}
