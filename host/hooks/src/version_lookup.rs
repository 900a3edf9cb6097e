//! Stored versions by the first digits of their SHA-256, and bindings by the whole digest.

use crate::HookError;
use crate::library::{Library, VERSION_DIGITS};
use api::Binding;

/// Minimum number of digits that identify a version.
const MIN_DIGITS: usize = 6;

/// A stored version.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FoundVersion {
    /// The first twelve digits, as people see them.
    pub(crate) version: String,
    /// The full SHA-256, in hexadecimal digits.
    pub(crate) sha256: String,
}

impl Library {
    /// The stored version of a plugin whose SHA-256 starts with these digits: 6 to 64 hexadecimal digits in lower case.
    ///
    /// # Errors
    /// No version, or more than one, starts with them.
    pub(crate) fn find_version(&self, plugin: &str, digits: &str) -> Result<FoundVersion, HookError> {
        let unknown = || HookError::Unknown { plugin: plugin.to_owned(), version: digits.to_owned() };
        if !(MIN_DIGITS..=64).contains(&digits.len()) || !digits.bytes().all(is_digit) {
            return Err(unknown());
        }
        let short = digits.get(..VERSION_DIGITS).unwrap_or(digits);
        let mut versions = self.stored_versions(plugin)?;
        versions.retain(|version| version.starts_with(short));
        let version = match versions.as_slice() {
            [] => return Err(unknown()),
            [version] => version.clone(),
            [..] => {
                versions.sort();
                return Err(HookError::AmbiguousVersion {
                    plugin: plugin.to_owned(),
                    digits: digits.to_owned(),
                    versions: versions.join(", "),
                });
            }
        };
        let sha256 = self.sha256(plugin, &version)?;
        if sha256.starts_with(digits) { Ok(FoundVersion { version, sha256 }) } else { Err(unknown()) }
    }

    /// Sets version and full SHA-256 of a binding without a digest, whose version may be the digest's first digits. A binding with a
    /// digest stays unchanged: its component is compared with the digest when it starts.
    pub(crate) fn pin(&self, binding: &mut Binding) -> Result<(), HookError> {
        if binding.sha256.is_empty() {
            let FoundVersion { version, sha256 } = self.find_version(&binding.plugin, &binding.version)?;
            (binding.version, binding.sha256) = (version, sha256);
        }
        Ok(())
    }
}

fn is_digit(octet: u8) -> bool {
    matches!(octet, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::Trust;
    use model::hex;
    use sha2::{Digest, Sha256};

    #[test]
    fn digits_name_one_version_or_none() {
        let folder = tempfile::tempdir().unwrap();
        let library = Library::open(folder.path(), Trust::default()).unwrap();
        let components = folder.path().join("components/p");
        std::fs::create_dir_all(&components).unwrap();
        let sha256 = hex(&Sha256::digest(b"component"));
        let version = &sha256[..VERSION_DIGITS];
        // One other version has the same first six digits.
        let other = format!("{}{}", &sha256[..6], "0".repeat(6));
        std::fs::write(components.join(format!("{version}.wasm")), b"component").unwrap();
        std::fs::write(components.join(format!("{other}.wasm")), b"other").unwrap();
        std::fs::write(components.join(format!("{version}.json")), b"{}").unwrap();

        let found = FoundVersion { version: version.to_owned(), sha256: sha256.clone() };
        for digits in [8, 12, 13, 64] {
            assert_eq!(library.find_version("p", &sha256[..digits]).unwrap(), found);
        }
        let error = library.find_version("p", &sha256[..6]).unwrap_err();
        assert!(matches!(error, HookError::AmbiguousVersion { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(version) && text.contains(&other), "{text}");
        let wrong_end = format!("{}{}", &sha256[..63], if sha256.ends_with('0') { '1' } else { '0' });
        let long = format!("{sha256}0");
        for digits in [&sha256[..5], "", "ffffff", &sha256[..12].to_uppercase(), "../../p", &wrong_end, &long]
        {
            let error = library.find_version("p", digits).unwrap_err();
            assert!(matches!(error, HookError::Unknown { .. }), "{digits}: {error}");
        }
        for plugin in ["q", "../p"] {
            assert!(matches!(library.find_version(plugin, version), Err(HookError::Unknown { .. })));
        }
    }
}
