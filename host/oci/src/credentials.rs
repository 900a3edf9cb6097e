use crate::{OciError, RegistryReference};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

const USER: &str = "SWITCHYARD_REGISTRY_USER";
const PASSWORD: &str = "SWITCHYARD_REGISTRY_PASSWORD";

/// User and password of a registry. Neither appears in messages or in the debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct RegistryCredentials {
    user: String,
    password: String,
}

impl fmt::Debug for RegistryCredentials {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RegistryCredentials").finish_non_exhaustive()
    }
}

impl RegistryCredentials {
    /// Credentials with this user and this password.
    ///
    /// # Errors
    /// If one is empty, or the user contains a colon, which the scheme `Basic` does not allow (RFC 7617, section 2).
    pub fn new(user: &str, password: &str, place: &str) -> Result<Self, OciError> {
        let wrong = |why| Err(OciError::Credentials { place: place.to_owned(), why });
        if user.is_empty() || password.is_empty() {
            return wrong("a user and a password are needed");
        }
        if user.contains(':') {
            return wrong("a user's name cannot have a colon");
        }
        Ok(Self { user: user.to_owned(), password: password.to_owned() })
    }

    /// The credentials of the environment variables `SWITCHYARD_REGISTRY_USER` and `SWITCHYARD_REGISTRY_PASSWORD`; `None` if
    /// neither is set.
    ///
    /// # Errors
    /// If only one is set.
    pub fn from_environment() -> Result<Option<Self>, OciError> {
        let [user, password] = [USER, PASSWORD].map(|name| std::env::var(name).unwrap_or_default());
        if user.is_empty() && password.is_empty() {
            return Ok(None);
        }
        Self::new(&user, &password, &format!("{USER} and {PASSWORD}")).map(Some)
    }

    /// The credentials for a registry in a file in the format of `skopeo login --authfile` and `podman login --authfile`;
    /// `None` if the file has none. The entry of the longest matching repository counts.
    ///
    /// Source: containers-auth.json(5). Programs that store credentials (`credHelpers`) are not called.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn from_auth_file(path: &Path, reference: &RegistryReference) -> Result<Option<Self>, OciError> {
        let octets = std::fs::read(path).map_err(OciError::file(path))?;
        Self::in_auth_file(&octets, &path.display().to_string(), reference)
    }

    fn in_auth_file(
        octets: &[u8],
        place: &str,
        reference: &RegistryReference,
    ) -> Result<Option<Self>, OciError> {
        #[derive(Deserialize)]
        struct AuthFile {
            #[serde(default)]
            auths: BTreeMap<String, Entry>,
        }
        #[derive(Deserialize)]
        struct Entry {
            #[serde(default)]
            auth: String,
        }
        // The cause may quote the file.
        let wrong = |why| OciError::Credentials { place: place.to_owned(), why };
        let file: AuthFile = serde_json::from_slice(octets)
            .map_err(|_| wrong("it is not JSON with \"auths\", as `skopeo login --authfile` writes it"))?;
        let whole = format!("{}/{}", reference.authority(), reference.repository);
        let mut name = Some(&*whole);
        while let Some(key) = name {
            if let Some(entry) = file.auths.get(key).filter(|entry| !entry.auth.is_empty()) {
                let decoded = STANDARD.decode(&entry.auth).ok().and_then(|text| String::from_utf8(text).ok());
                let decoded = decoded.as_deref().and_then(|text| text.split_once(':'));
                let (user, password) = decoded
                    .ok_or_else(|| wrong("the \"auth\" of this registry is not base64 of USER:PASSWORD"))?;
                return Self::new(user, password, place).map(Some);
            }
            name = key.rsplit_once('/').map(|(parent, _)| parent);
        }
        Ok(None)
    }

    /// The value of the header `Authorization` (RFC 7617).
    pub(crate) fn basic(&self) -> String {
        format!("Basic {}", STANDARD.encode(format!("{}:{}", self.user, self.password)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ArtifactLocation;
    use proptest::prelude::*;

    fn reference(text: &str) -> RegistryReference {
        match text.parse().unwrap() {
            ArtifactLocation::Registry(reference) => reference,
            ArtifactLocation::Layout(_) => panic!("{text}"),
        }
    }

    fn find(file: &str, registry: &str) -> Result<Option<RegistryCredentials>, OciError> {
        RegistryCredentials::in_auth_file(file.as_bytes(), "auth.json", &reference(registry))
    }

    #[test]
    fn the_longest_match_of_an_auth_file_counts() {
        let [general, special] = ["u:general", "u:special:1"].map(|text| STANDARD.encode(text));
        let file = format!(
            r#"{{"auths":{{"host:5000":{{"auth":"{general}"}},"host:5000/sms":{{"auth":"{special}"}},"host":{{}}}},"x":1}}"#
        );
        let password = |registry| find(&file, registry).unwrap().map(|found| found.password);
        assert_eq!(password("oci://host:5000/first").as_deref(), Some("general"));
        assert_eq!(password("oci://host:5000/sms/first:1").as_deref(), Some("special:1"));
        assert_eq!(password("oci://host:5000/smsc").as_deref(), Some("general"));
        assert_eq!(password("oci://host/first"), None);
        assert_eq!(find("{}", "oci://host/first").unwrap(), None);
    }

    #[test]
    fn no_error_quotes_the_file() {
        let hush = STANDARD.encode("hush");
        for file in [
            "hush".to_owned(),
            format!(r#"{{"auths":{{"host":{{"auth":"{hush}"}}}}}}"#),
            r#"{"auths":"hush"}"#.into(),
        ] {
            let error = find(&file, "oci://host/first").unwrap_err().to_string();
            assert!(
                error.starts_with("auth.json: ") && !error.contains("hush") && !error.contains(&hush),
                "{error}"
            );
        }
        let credentials = RegistryCredentials::new("user", "hush", "here").unwrap();
        assert_eq!(format!("{credentials:?}"), "RegistryCredentials { .. }");
        assert!(RegistryCredentials::new("us:er", "hush", "here").is_err());
        assert!(RegistryCredentials::new("user", "", "here").is_err());
    }

    proptest! {
        #[test]
        fn no_auth_file_panics(octets: Vec<u8>, auth: String) {
            let host = reference("oci://host/first");
            let _ = RegistryCredentials::in_auth_file(&octets, "auth.json", &host);
            let file = serde_json::json!({ "auths": { "host": { "auth": auth } } }).to_string();
            let _ = RegistryCredentials::in_auth_file(file.as_bytes(), "auth.json", &host);
        }
    }
}
