use api::PluginOrigin;

/// A component to store as a version of a plugin, with its metadata. A field that is `None` leaves the stored value of the
/// same component unchanged.
#[derive(Debug, Clone, Default)]
pub struct NewComponent<'a> {
    /// The component.
    pub octets: &'a [u8],
    /// The ed25519 signature over the octets, Base64.
    pub signature: Option<&'a str>,
    /// The source from which it was pulled.
    pub origin: Option<PluginOrigin>,
    /// The bill of materials (SBOM), a JSON document.
    pub sbom: Option<&'a [u8]>,
}
