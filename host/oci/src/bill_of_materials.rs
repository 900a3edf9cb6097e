use crate::OciError;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// Maximum size of a bill of materials, in octets.
pub const MAX_BILL_OCTETS: u64 = 16 << 20;

/// The format of a bill of materials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BillFormat {
    /// SPDX, as JSON.
    Spdx,
    /// CycloneDX, as JSON.
    CycloneDx,
}

impl BillFormat {
    /// All formats.
    pub const ALL: [Self; 2] = [Self::Spdx, Self::CycloneDx];

    /// Its media type, as registered with IANA.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Spdx => "application/spdx+json",
            Self::CycloneDx => "application/vnd.cyclonedx+json",
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Spdx => "SPDX",
            Self::CycloneDx => "CycloneDX",
        }
    }
}

/// A bill of materials (SBOM): the parts of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BillOfMaterials {
    format: BillFormat,
    octets: Vec<u8>,
}

impl BillOfMaterials {
    /// Recognises the format. The document is not checked further.
    ///
    /// # Errors
    /// If it is larger than [`MAX_BILL_OCTETS`], or not JSON of one of the formats.
    pub fn new(octets: Vec<u8>) -> Result<Self, OciError> {
        #[derive(Deserialize)]
        struct Marks {
            #[serde(rename = "spdxVersion", default)]
            spdx: Option<IgnoredAny>,
            /// The key that identifies SPDX 3, which is JSON-LD.
            #[serde(rename = "@graph", default)]
            graph: Option<IgnoredAny>,
            #[serde(rename = "bomFormat", default)]
            cyclone_dx: Option<String>,
        }
        if octets.len() as u64 > MAX_BILL_OCTETS {
            return Err(OciError::too_large("the component", &"its bill of materials", MAX_BILL_OCTETS));
        }
        let marks: Marks = serde_json::from_slice(&octets).map_err(|_| OciError::BillOfMaterials)?;
        let format = match marks {
            Marks { cyclone_dx: Some(name), .. } if name == "CycloneDX" => BillFormat::CycloneDx,
            Marks { spdx, graph, .. } if spdx.is_some() || graph.is_some() => BillFormat::Spdx,
            _ => return Err(OciError::BillOfMaterials),
        };
        Ok(Self { format, octets })
    }

    /// The format.
    #[must_use]
    pub fn format(&self) -> BillFormat {
        self.format
    }

    /// The SHA-256 of the component that the document describes, in lower-case hexadecimal digits, if a CycloneDX document has it.
    #[must_use]
    pub fn component_sha256(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Document {
            metadata: Metadata,
        }
        #[derive(Deserialize)]
        struct Metadata {
            component: Described,
        }
        #[derive(Deserialize)]
        struct Described {
            #[serde(default)]
            hashes: Vec<Hash>,
        }
        #[derive(Deserialize)]
        struct Hash {
            alg: String,
            content: String,
        }
        let document: Document = serde_json::from_slice(&self.octets).ok()?;
        let mut hashes = document.metadata.component.hashes.into_iter();
        hashes.find(|hash| hash.alg == "SHA-256").map(|hash| hash.content.to_ascii_lowercase())
    }

    /// The document.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        &self.octets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_component_may_be_named_by_its_digest() {
        let sha256 = |text: &str| BillOfMaterials::new(text.into()).unwrap().component_sha256();
        let named = r#"{"bomFormat":"CycloneDX","metadata":{"component":{"hashes":[
            {"alg":"SHA-512","content":"00"},{"alg":"SHA-256","content":"0D"}]}}}"#;
        assert_eq!(sha256(named).as_deref(), Some("0d"));
        assert_eq!(sha256(r#"{"bomFormat":"CycloneDX","metadata":{"component":{}}}"#), None);
        assert_eq!(sha256(r#"{"spdxVersion":"SPDX-2.3"}"#), None);
    }

    #[test]
    fn the_format_is_recognised() {
        let format = |text: &str| BillOfMaterials::new(text.into()).map(|bill| bill.format());
        assert_eq!(format(r#"{"spdxVersion":"SPDX-2.3"}"#).unwrap(), BillFormat::Spdx);
        assert_eq!(format(r#"{"@context":"x","@graph":[]}"#).unwrap(), BillFormat::Spdx);
        assert_eq!(
            format(r#"{"bomFormat":"CycloneDX","specVersion":"1.6"}"#).unwrap(),
            BillFormat::CycloneDx
        );
        for wrong in ["", "{}", "[]", r#"{"bomFormat":"other"}"#, "SPDXVersion: SPDX-2.3"] {
            assert!(format(wrong).is_err(), "{wrong}");
        }
    }
}
