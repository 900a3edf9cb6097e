use api::PluginOrigin;

/// A component to store as a version of a plugin, with what belongs to it. What is `None` leaves what is stored with the same
/// component as it is.
#[derive(Debug, Clone, Default)]
pub struct NewComponent<'a> {
    /// The component.
    pub octets: &'a [u8],
    /// The ed25519 signature over the octets, Base64.
    pub signature: Option<&'a str>,
    /// Where it was pulled from.
    pub origin: Option<PluginOrigin>,
    /// The bill of materials (SBOM), a JSON document.
    pub sbom: Option<&'a [u8]>,
}
