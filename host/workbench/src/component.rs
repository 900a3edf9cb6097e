use crate::manifest::Manifest;
use crate::{WorkbenchError, contract};
use model::Hook;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use wit_component::DecodedWasm;

/// The static properties of a component.
#[derive(Debug)]
pub(crate) struct Component {
    pub(crate) path: PathBuf,
    /// The first twelve hexadecimal digits of its SHA-256 digest: the appliance's version.
    pub(crate) version: String,
    /// Size in octets.
    pub(crate) size: usize,
    /// The hook that it can serve, and the contract version for which it was built.
    pub(crate) world: Option<(Hook, String)>,
    /// Full names of its imports, in order.
    pub(crate) imports: Vec<String>,
    /// Full names of its exports, in order.
    pub(crate) exports: Vec<String>,
}

impl Component {
    pub(crate) fn read(path: &Path) -> Result<Self, WorkbenchError> {
        let octets = std::fs::read(path).map_err(WorkbenchError::file(path))?;
        Self::new(path, &octets)
    }

    pub(crate) fn new(path: &Path, octets: &[u8]) -> Result<Self, WorkbenchError> {
        let wrong = |why: String| WorkbenchError::NoComponent { path: path.to_owned(), why };
        let (resolve, world) = match wit_component::decode(octets) {
            Ok(DecodedWasm::Component(resolve, world)) => (resolve, world),
            Ok(DecodedWasm::WitPackage(..)) => {
                return Err(wrong(
                    "it is a WIT package, not a plugin; build one with 'switchyard plugin build'".to_owned(),
                ));
            }
            Err(error) => return Err(wrong(format!("{error:#}"))),
        };
        let Some(decoded) = resolve.worlds.get(world) else {
            return Err(wrong("it does not describe a world".to_owned()));
        };
        let imports: Vec<String> = decoded.imports.keys().map(|key| resolve.name_world_key(key)).collect();
        let exports: Vec<String> = decoded.exports.keys().map(|key| resolve.name_world_key(key)).collect();
        let world = exports.iter().find_map(|name| {
            let (interface, version) =
                name.strip_prefix(contract::PACKAGE)?.strip_prefix('/')?.split_once('@')?;
            let hook = Hook::ALL.into_iter().find(|hook| contract::export(*hook) == interface)?;
            Some((hook, version.to_owned()))
        });
        let digest = Sha256::digest(octets);
        let version = model::hex(&digest[..6]);
        Ok(Self { path: path.to_owned(), version, size: octets.len(), world, imports, exports })
    }

    /// The hook that it can serve.
    pub(crate) fn hook(&self) -> Result<(Hook, &str), WorkbenchError> {
        let Some((hook, wit)) = &self.world else {
            let found = if self.exports.is_empty() { "nothing".to_owned() } else { self.exports.join(", ") };
            return Err(WorkbenchError::NoWorld { path: self.path.clone(), found });
        };
        Ok((*hook, wit))
    }

    /// Imports that its world does not offer, such as WASI or interfaces of another world.
    pub(crate) fn foreign_imports(&self) -> impl Iterator<Item = &str> {
        let allowed = self.world.as_ref().map_or(&[][..], |(hook, _)| contract::allowed_imports(*hook));
        self.imports.iter().map(String::as_str).filter(move |name| {
            let ours = name.strip_prefix(contract::PACKAGE).and_then(|rest| rest.strip_prefix('/'));
            let interface = ours.and_then(|rest| rest.split_once('@')).map(|(interface, _)| interface);
            !interface.is_some_and(|interface| allowed.contains(&interface))
        })
    }

    /// Refuses a component that does not serve the manifest's hook, or that has foreign imports.
    pub(crate) fn check_manifest(&self, manifest: &Manifest) -> Result<(), WorkbenchError> {
        let (expected, language) = (manifest.world, manifest.language);
        let (hook, _) = self.hook()?;
        if hook != expected {
            return Err(WorkbenchError::Usage(format!(
                "plugin.toml says world = \"{}\", but the component exports {}",
                expected.name(),
                contract::export(hook)
            )));
        }
        match self.foreign_imports().find(|import| !(manifest.wasi && import.starts_with("wasi:"))) {
            None => Ok(()),
            Some(import) => Err(WorkbenchError::ForeignImport {
                path: self.path.clone(),
                import: import.to_owned(),
                remedy: format!(
                    "a {} plugin may import only the interfaces of wit/{}.wit",
                    language.name(),
                    hook.name()
                ),
            }),
        }
    }
}
