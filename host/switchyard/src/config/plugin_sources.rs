//! `[plugins] sources`: registries and folders from which the appliance pulls plugins.

use configuration::{Keys, Section};
use oci::{
    ArtifactLocation, ContentStore, ImageLayout, OciError, RegistryClient, RegistryCredentials,
    RegistryOptions,
};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const REGISTRY: &str = "oci://";
const LAYOUT: &str = "oci-layout:";
/// Maximum of `timeout`. Commands wait five minutes for the appliance, which needs a part of them to compile the
/// plugin.
const MAX_TIMEOUT: Duration = Duration::from_secs(240);

/// A source of plugins: a path in a registry, or a folder.
#[derive(Clone, PartialEq, Eq, Keys)]
#[keys(check = Self::check)]
pub(crate) struct PluginSource {
    /// The name. The source's plugins are named `NAME/PLUGIN:TAG`.
    #[key(example = "carrier", length = 1..=64)]
    pub(crate) name: String,
    /// `oci://HOST[:PORT][/PATH]` for a registry with one repository per plugin below this path, or `oci-layout:FOLDER`
    /// for a folder (an absolute path) that contains one folder with an image layout per plugin.
    #[key(example = "oci://registry.example/plugins")]
    pub(crate) url: String,
    /// File with the certificate authority of the registry, in PEM.
    #[key(existing, default_as = "the authorities that the system trusts")]
    ca: Option<PathBuf>,
    /// The user name at the registry, if it requires one.
    #[key(length = ..=255)]
    user: String,
    /// The password of `user`.
    #[key(secret, or_file)]
    password: String,
    /// Permits plain HTTP to a registry on another machine. A registry on this machine, such as localhost, is always
    /// accessed without TLS.
    #[key(default = false)]
    plain_http: bool,
    /// Maximum duration of a read of the source, for example a pull: at most four minutes.
    #[key(default = "2m")]
    timeout: Duration,
}

/// A source cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    #[error(transparent)]
    Artifact(#[from] OciError),
    #[error("ca: {0}")]
    Authority(#[from] client::ClientError),
}

impl fmt::Debug for PluginSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("PluginSource");
        out.field("name", &self.name).field("url", &self.url).finish_non_exhaustive()
    }
}

impl PluginSource {
    fn check(&mut self, section: &Section<'_>) {
        // A missing name or URL is already reported.
        if !self.name.is_empty() && !hooks::is_plugin_name(&self.name) {
            section.error("name", "must be letters, digits, '-' and '_'");
        }
        if let Some(folder) = self.url.strip_prefix(LAYOUT) {
            if !Path::new(folder).is_absolute() {
                section.error("url", "must name the folder by its absolute path");
            }
            for key in ["ca", "user", "password", "password-file", "plain-http"] {
                if section.has(key) {
                    section.error(key, "is for a registry, and the source is a folder");
                }
            }
        } else if let Some(rest) = self.url.strip_prefix(REGISTRY) {
            let authority = rest.split('/').next().unwrap_or_default();
            if authority.contains('@') {
                section.error("url", "must have no credentials: set user and password-file");
            } else if let Err(OciError::Location(why)) = self.location("plugin", None) {
                section
                    .error("url", format!("must be oci://HOST[:PORT][/PATH], without tag and digest: {why}"));
            }
        } else if !self.url.is_empty() {
            section.error("url", "must begin with oci:// for a registry, or oci-layout: for a folder");
        }
        if self.user.is_empty() != self.password.is_empty() {
            section.error("user", "and password (or password-file) go together");
        } else if self.user.contains(':') {
            section.error("user", "cannot have a colon");
        }
        if self.timeout.is_zero() || self.timeout > MAX_TIMEOUT {
            section.error("timeout", "must be above 0 and at most 4m");
        }
    }

    /// Maximum duration of a read of the source. The registry's client has the same limit, and its error says what it
    /// waited for.
    pub(crate) fn time_limit(&self) -> Duration {
        self.timeout + Duration::from_secs(1)
    }

    /// Whether the registry requires credentials.
    pub(crate) fn has_credentials(&self) -> bool {
        !self.user.is_empty()
    }

    /// The location of a plugin. `reference` must be `:TAG` or `@DIGEST`; the check prevents paths outside the folder
    /// of the source.
    ///
    /// # Errors
    /// Plugin or reference cannot be part of a location.
    pub(crate) fn location(
        &self,
        plugin: &str,
        reference: Option<&str>,
    ) -> Result<ArtifactLocation, OciError> {
        let base = self.url.trim_end_matches('/');
        format!("{base}/{plugin}{}", reference.unwrap_or_default()).parse()
    }

    /// Opens the repository or folder of a location. Sends no request.
    ///
    /// # Errors
    /// The certificate authority cannot be read.
    pub(crate) fn open(&self, location: ArtifactLocation) -> Result<Box<dyn ContentStore>, SourceError> {
        let reference = match location {
            ArtifactLocation::Layout(reference) => return Ok(Box::new(ImageLayout::new(reference))),
            ArtifactLocation::Registry(reference) => reference,
        };
        let credentials = match self.has_credentials() {
            true => Some(RegistryCredentials::new(&self.user, &self.password, &self.name)?),
            false => None,
        };
        let roots = client::root_certificates(self.ca.as_deref())?;
        let (plain_http, time_limit) = (self.plain_http, Some(self.timeout));
        let options = RegistryOptions { credentials, plain_http, roots, time_limit };
        Ok(Box::new(RegistryClient::new(reference, options)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    /// The problems of `[plugins] sources`.
    fn problems(sources: &str) -> String {
        let text = format!("[appliance]\ndata = \"/tmp\"\n[plugins]\nsources = [{sources}]\n");
        let problems = Config::parse(&text, Path::new("/")).err().unwrap_or_default();
        problems.iter().map(|problem| format!("{problem}\n")).collect()
    }

    #[test]
    fn a_source_is_a_registry_or_a_folder() {
        for valid in [
            r#"{ name = "carrier", url = "oci://registry.example/plugins" }"#,
            r#"{ name = "all", url = "oci://registry.example" }"#,
            r#"{ name = "c", url = "oci://h:5000/a/b/", user = "u", password = "p", plain-http = true, timeout = "4m" }"#,
            r#"{ name = "stick", url = "oci-layout:/media/stick" }"#,
        ] {
            assert_eq!(problems(valid), "", "{valid}");
        }
        for (invalid, text) in [
            (r#"{ name = "a/b", url = "oci://h/p" }"#, "name: must be letters"),
            (r#"{ name = "a", url = "https://h/p" }"#, "url: must begin with oci://"),
            (r#"{ name = "a", url = "oci://h/p:1.0" }"#, "without tag and digest"),
            (r#"{ name = "a", url = "oci://u:hush@h/p" }"#, "url: must have no credentials"),
            (r#"{ name = "a", url = "oci-layout:stick" }"#, "absolute"),
            (
                r#"{ name = "a", url = "oci-layout:/s", user = "u", password = "hush" }"#,
                "user: is for a registry",
            ),
            (r#"{ name = "a", url = "oci://h/p", user = "u" }"#, "go together"),
            (
                r#"{ name = "a", url = "oci://h/p", user = "u:v", password = "hush" }"#,
                "user: cannot have a colon",
            ),
            (
                r#"{ name = "a", url = "oci://h/p", timeout = "1h" }"#,
                "timeout: must be above 0 and at most 4m",
            ),
            (r#"{ name = "a", url = "oci://h/p", ca = "/no/such" }"#, "ca: /no/such"),
            (r#"{ name = "a" }"#, "url: is missing"),
            (
                r#"{ name = "a", url = "oci://h/p" }, { name = "a", url = "oci://h/q" }"#,
                "name: \"a\" is also the name of another source",
            ),
        ] {
            let found = problems(invalid);
            assert!(found.contains(text) && !found.contains("hush"), "{invalid}: {found}");
        }
    }

    #[test]
    fn a_plugin_is_below_its_source() {
        let source = |url: &str| PluginSource { url: url.to_owned(), ..PluginSource::defaults() };
        let digest = format!("@sha256:{}", "a".repeat(64));
        for (url, reference, location) in [
            ("oci://h:5000/p/", ":1.4", "oci://h:5000/p/least-cost:1.4".to_owned()),
            ("oci://h", ":1.4", "oci://h/least-cost:1.4".to_owned()),
            ("oci-layout:/stick", ":1.4", "oci-layout:/stick/least-cost:1.4".to_owned()),
            ("oci://h/p", &digest, format!("oci://h/p/least-cost{digest}")),
        ] {
            let found = source(url).location("least-cost", Some(reference)).unwrap();
            assert_eq!(found.to_string(), location);
        }
        for reference in [":1/2", ":1:2", "@sha256:00", ":../x"] {
            assert!(source("oci://h/p").location("least-cost", Some(reference)).is_err(), "{reference}");
        }
        let source = PluginSource { password: "hush".to_owned(), ..source("oci://h/p") };
        assert!(!format!("{source:?}").contains("hush"));
    }
}
