//! The challenge of a registry that requires credentials: `WWW-Authenticate` (RFC 9110, section 11.6.1) with the scheme
//! `Basic` (RFC 7617), or `Bearer` with a token server (Distribution specification, "Token Authentication").

/// The kind of credentials that a registry requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Challenge {
    /// User and password.
    Basic,
    /// A token.
    Bearer {
        /// The URL of the token server.
        realm: String,
        /// The name of the registry at the token server.
        service: Option<String>,
        /// The permissions of the token; `None`: the permissions that the client needs.
        scope: Option<String>,
    },
}

/// The first supported challenge in these header values. `Bearer` takes precedence over `Basic`, because its password goes
/// only to the token server.
pub(crate) fn choose<'a>(headers: impl Iterator<Item = &'a str>) -> Option<Challenge> {
    let mut basic = None;
    for header in headers {
        for challenge in http_auth::parse_challenges(header).unwrap_or_default() {
            let parameter = |name: &str| {
                let found = challenge.params.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
                found.map(|(_, value)| value.to_unescaped())
            };
            if challenge.scheme.eq_ignore_ascii_case("bearer") {
                if let Some(realm) = parameter("realm") {
                    let (service, scope) = (parameter("service"), parameter("scope"));
                    return Some(Challenge::Bearer { realm, service, scope });
                }
            } else if challenge.scheme.eq_ignore_ascii_case("basic") {
                basic = Some(Challenge::Basic);
            }
        }
    }
    basic
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_bearer_challenge_comes_first() {
        let bearer = r#"Bearer realm="https://auth.example/token",service="registry.example",scope="repository:a/b:pull,push""#;
        let expected = Challenge::Bearer {
            realm: "https://auth.example/token".to_owned(),
            service: Some("registry.example".to_owned()),
            scope: Some("repository:a/b:pull,push".to_owned()),
        };
        assert_eq!(choose([r#"Basic realm="x""#, bearer].into_iter()), Some(expected));
        assert_eq!(choose([r#"basic realm="x""#].into_iter()), Some(Challenge::Basic));
        assert_eq!(choose(["Bearer", "Negotiate abc", ",", "Digest realm=\"x\""].into_iter()), None);
    }

    proptest! {
        #[test]
        fn no_header_panics(header: String, parameters in "(Bearer|Basic) [a-z]{0,5}=\"?[a-z\\\\\",=]{0,20}\"?") {
            let _ = choose([&*header, &*parameters].into_iter());
        }
    }
}
