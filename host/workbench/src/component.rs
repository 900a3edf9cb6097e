use crate::manifest::Manifest;
use crate::{WorkbenchError, contract};
use model::Hook;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use wit_component::DecodedWasm;

/// What can be seen of a component without running it.
#[derive(Debug)]
pub(crate) struct Component {
    pub(crate) path: PathBuf,
    /// The first twelve hex digits of its SHA-256, by which the appliance knows it.
    pub(crate) version: String,
    /// Octets.
    pub(crate) size: usize,
    /// The hook that it can serve, and the version of the contract for which it was built.
    pub(crate) world: Option<(Hook, String)>,
    /// Full names of what it imports, in order.
    pub(crate) imports: Vec<String>,
    /// Full names of what it exports, in order.
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
                    "it is a WIT package; build a plugin with 'switchyard plugin build'".to_owned(),
                ));
            }
            Err(error) => return Err(wrong(format!("{error:#}"))),
        };
        let Some(decoded) = resolve.worlds.get(world) else {
            return Err(wrong("it describes no world".to_owned()));
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
        let version = digest.iter().take(6).map(|octet| format!("{octet:02x}")).collect();
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

    /// Imports that its world does not give: the authority of a system, or another world's.
    pub(crate) fn foreign(&self) -> impl Iterator<Item = &str> {
        let given = self.world.as_ref().map_or(&[][..], |(hook, _)| contract::given(*hook));
        self.imports.iter().map(String::as_str).filter(move |name| {
            let ours = name.strip_prefix(contract::PACKAGE).and_then(|rest| rest.strip_prefix('/'));
            let interface = ours.and_then(|rest| rest.split_once('@')).map(|(interface, _)| interface);
            !interface.is_some_and(|interface| given.contains(&interface))
        })
    }

    /// Refuses what does not serve this hook, or wants more than it is given.
    pub(crate) fn serves(&self, manifest: &Manifest) -> Result<(), WorkbenchError> {
        let (wanted, language) = (manifest.world, manifest.language);
        let (hook, _) = self.hook()?;
        if hook != wanted {
            return Err(WorkbenchError::Usage(format!(
                "plugin.toml says world = \"{}\", but the component exports {}",
                wanted.name(),
                contract::export(hook)
            )));
        }
        match self.foreign().find(|import| !(manifest.wasi && import.starts_with("wasi:"))) {
            None => Ok(()),
            Some(import) => Err(WorkbenchError::Ambient {
                path: self.path.clone(),
                import: import.to_owned(),
                remedy: format!(
                    "a {} plugin has no system under it, only what wit/{}.wit imports",
                    language.name(),
                    hook.name()
                ),
            }),
        }
    }
}
