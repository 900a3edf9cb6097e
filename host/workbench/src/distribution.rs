//! Plugins in registries and in folders with an image layout: `switchyard plugin push` and `pull`.

use crate::bill_file::{SBOM_SUFFIXES, read_bill};
use crate::component::Component;
use crate::hooks_api::stem;
use crate::{WorkbenchError, contract, signing};
use clap::Args;
use cli::format::{list, value_text};
use oci::{
    ArtifactLocation, BillOfMaterials, ComponentDescription, ContentStore, ImageLayout, OciError,
    PluginArtifact, PulledArtifact, RegistryClient, RegistryCredentials, RegistryOptions, RegistryReference,
};
use serde::Serialize;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Options for access to a registry.
#[derive(Debug, Args)]
pub struct RegistryArgs {
    /// File with credentials of registries, in the format of `skopeo login --authfile FILE` and `podman login --authfile
    /// FILE`. Default: SWITCHYARD_REGISTRY_USER and SWITCHYARD_REGISTRY_PASSWORD, or the file REGISTRY_AUTH_FILE.
    #[arg(long, value_name = "FILE")]
    auth_file: Option<PathBuf>,
    /// PEM file with the certificate authority of the registry; default: the authorities that the system trusts.
    #[arg(long, value_name = "FILE")]
    registry_ca: Option<PathBuf>,
    /// Access a registry on another machine without TLS. A registry on this machine, such as localhost, is always accessed
    /// without TLS.
    #[arg(long)]
    plain_http: bool,
}

impl RegistryArgs {
    /// Whether no option is given.
    pub(crate) fn is_default(&self) -> bool {
        self.auth_file.is_none() && self.registry_ca.is_none() && !self.plain_http
    }

    fn credentials(&self, reference: &RegistryReference) -> Result<Option<RegistryCredentials>, OciError> {
        if let Some(path) = &self.auth_file {
            return RegistryCredentials::from_auth_file(path, reference);
        }
        if let Some(credentials) = RegistryCredentials::from_environment()? {
            return Ok(Some(credentials));
        }
        match std::env::var_os("REGISTRY_AUTH_FILE").filter(|path| !path.is_empty()) {
            Some(path) => RegistryCredentials::from_auth_file(Path::new(&path), reference),
            None => Ok(None),
        }
    }

    fn store(&self, location: &ArtifactLocation) -> Result<Box<dyn ContentStore>, WorkbenchError> {
        Ok(match location.clone() {
            ArtifactLocation::Layout(reference) => Box::new(ImageLayout::new(reference)),
            ArtifactLocation::Registry(reference) => {
                let credentials = self.credentials(&reference)?;
                let roots = client::root_certificates(self.registry_ca.as_deref())?;
                let plain_http = self.plain_http;
                let options = RegistryOptions { credentials, plain_http, roots, time_limit: None };
                Box::new(RegistryClient::new(reference, options))
            }
        })
    }
}

/// An artifact that was pushed or pulled.
#[derive(Debug, Serialize)]
pub(crate) struct ArtifactView {
    /// Its destination: a location or a file.
    written: String,
    /// The digest of its manifest.
    digest: String,
    /// The location with the digest in place of the tag.
    bound: String,
    /// The version that an appliance assigns to the component; for the contract, the version of the contract.
    version: String,
    /// Size of the component in octets.
    size: usize,
    /// Whether a signature belongs to it.
    signed: bool,
    /// The format of its bill of materials.
    bill_of_materials: Option<&'static str>,
}

impl ArtifactView {
    /// The description for people.
    pub(crate) fn text(&self) -> String {
        list(&[
            ("written to", value_text(&self.written)),
            ("digest", self.digest.clone()),
            ("bound", value_text(&self.bound)),
            ("version", self.version.clone()),
            ("size", format!("{} octets", self.size)),
            ("signature", if self.signed { "yes" } else { "none" }.to_owned()),
            ("bill of materials", self.bill_of_materials.unwrap_or("none").to_owned()),
        ])
    }
}

/// Writes a component to a registry or a folder.
pub(crate) fn push(
    file: &Path,
    target: &str,
    sbom: Option<&Path>,
    registry: &RegistryArgs,
) -> Result<ArtifactView, WorkbenchError> {
    if file.to_str().is_some_and(ArtifactLocation::is_location) {
        return Err(WorkbenchError::Usage(
            "an artifact is copied from registry to registry or folder by `skopeo copy`; `push FILE LOCATION` takes a component's file"
                .to_owned(),
        ));
    }
    let location = parse_target(target)?;
    let octets = std::fs::read(file).map_err(WorkbenchError::file(file))?;
    let created = std::fs::metadata(file).and_then(|metadata| metadata.modified());
    let component = Component::new(file, &octets)?;
    let (hook, wit) = component.hook()?;
    let description = ComponentDescription {
        created: created.map_err(WorkbenchError::file(file))?,
        exports: component.exports.clone(),
        imports: component.imports.clone(),
        target: Some(format!("{}/{}@{wit}", contract::PACKAGE, hook.name())),
    };
    let bill = read_bill(file, &octets, sbom)?;
    let artifact = PluginArtifact {
        component: octets,
        file_name: file.file_name().and_then(OsStr::to_str).map(str::to_owned),
        signature: signing::read(file)?,
        bill,
    };
    push_artifact(&location, &artifact, &description, component.version, registry)
}

/// Writes the contract with plugins, a WIT package, to a registry or a folder.
pub(crate) fn push_contract(target: &str, registry: &RegistryArgs) -> Result<ArtifactView, WorkbenchError> {
    let location = parse_target(target)?;
    let package = contract::package()?;
    let description = ComponentDescription {
        // The time of the build would give each build another digest.
        created: SystemTime::UNIX_EPOCH,
        exports: package.names,
        imports: Vec::new(),
        target: None,
    };
    let file_name = format!("{}.wasm", contract::PACKAGE.replace(':', "-"));
    let artifact =
        PluginArtifact { component: package.octets, file_name: Some(file_name), signature: None, bill: None };
    push_artifact(&location, &artifact, &description, package.version, registry)
}

/// A location that can be written to.
fn parse_target(target: &str) -> Result<ArtifactLocation, WorkbenchError> {
    let location: ArtifactLocation = target.parse()?;
    if location.digest().is_some() {
        return Err(WorkbenchError::Usage(
            "the digest of an artifact is known once it is written: give the tag only".to_owned(),
        ));
    }
    if location.tag().is_none() {
        return Err(WorkbenchError::Usage(format!("{location}: a tag is needed, such as {location}:1.0")));
    }
    Ok(location)
}

fn push_artifact(
    location: &ArtifactLocation,
    artifact: &PluginArtifact,
    description: &ComponentDescription,
    version: String,
    registry: &RegistryArgs,
) -> Result<ArtifactView, WorkbenchError> {
    let pushed = oci::push(&*registry.store(location)?, artifact, description, location.tag())?;
    Ok(ArtifactView {
        written: location.to_string(),
        digest: pushed.digest.to_string(),
        bound: location.bound_to(pushed.digest).to_string(),
        version,
        size: artifact.component.len(),
        signed: artifact.signature.is_some(),
        bill_of_materials: artifact.bill.as_ref().map(|bill| bill.format().name()),
    })
}

/// A pulled artifact that has been checked to be a plugin.
pub(crate) struct PulledPlugin {
    location: ArtifactLocation,
    pulled: PulledArtifact,
    version: String,
}

/// Reads a plugin from a registry or a folder. Checks only the format of its signature; the appliance verifies it.
pub(crate) fn pull(location: &str, registry: &RegistryArgs) -> Result<PulledPlugin, WorkbenchError> {
    let location: ArtifactLocation = location.parse()?;
    let pulled = oci::pull(&*registry.store(&location)?)?;
    // Errors name the location in place of a file.
    let bound = location.bound_to(pulled.digest);
    let place = PathBuf::from(bound.to_string());
    let component = Component::new(&place, &pulled.artifact.component)?;
    component.hook()?;
    if let Some(signature) = &pulled.artifact.signature {
        signing::check(&place, signature)?;
    }
    Ok(PulledPlugin { location, pulled, version: component.version })
}

impl PulledPlugin {
    /// The location with the digest in place of the tag.
    pub(crate) fn bound(&self) -> ArtifactLocation {
        self.location.bound_to(self.pulled.digest)
    }

    /// The component.
    pub(crate) fn component(&self) -> &[u8] {
        &self.pulled.artifact.component
    }

    /// The bill of materials.
    pub(crate) fn bill(&self) -> Option<&BillOfMaterials> {
        self.pulled.artifact.bill.as_ref()
    }

    /// The signature.
    pub(crate) fn signature(&self) -> Option<&str> {
        self.pulled.artifact.signature.as_deref()
    }

    /// The plugin's name: the name of its file, or of the repository.
    pub(crate) fn name(&self) -> Result<String, WorkbenchError> {
        match (&self.pulled.artifact.file_name, self.location.repository_name()) {
            (Some(file), _) => stem(Path::new(file)),
            (None, Some(repository)) => Ok(repository.to_owned()),
            (None, None) => Err(WorkbenchError::Usage(format!(
                "{}: the artifact has no file name; give --name NAME, or --out FILE to pull",
                self.location
            ))),
        }
    }

    /// Writes the component, its signature and its bill of materials. Overwrites nothing.
    pub(crate) fn write(self, out: Option<PathBuf>) -> Result<ArtifactView, WorkbenchError> {
        let out = match out {
            Some(out) => out,
            None => PathBuf::from(format!("{}.wasm", self.name()?)),
        };
        let bound = self.bound().to_string();
        let PluginArtifact { component, signature, bill, .. } = self.pulled.artifact;
        let signature_path = signing::signature_path(&out);
        // A component with the signature of another one in the same folder would be refused later, for no obvious reason.
        let bill_paths = SBOM_SUFFIXES.map(|ending| out.with_extension(ending));
        for path in [&out, &signature_path].into_iter().chain(&bill_paths) {
            if path.exists() {
                return Err(WorkbenchError::Exists(path.clone()));
            }
        }
        write_new(&out, &component)?;
        if let Some(signature) = &signature {
            write_new(&signature_path, format!("{signature}\n").as_bytes())?;
        }
        if let (Some(bill), [path, ..]) = (&bill, &bill_paths) {
            write_new(path, bill.octets())?;
        }
        Ok(ArtifactView {
            written: out.display().to_string(),
            digest: self.pulled.digest.to_string(),
            bound,
            version: self.version,
            size: component.len(),
            signed: signature.is_some(),
            bill_of_materials: bill.map(|bill| bill.format().name()),
        })
    }
}

/// Writes a file that does not exist.
fn write_new(path: &Path, octets: &[u8]) -> Result<(), WorkbenchError> {
    let opened = File::options().write(true).create_new(true).open(path);
    opened.and_then(|mut file| file.write_all(octets)).map_err(WorkbenchError::file(path))
}
