//! The WIT of this version of Switchyard, and the grant that each import needs.

use crate::WorkbenchError;
use model::Hook;
use std::collections::BTreeSet;
use std::path::Path;
use wit_parser::{Resolve, SourceMap};

/// The package's name.
pub(crate) const PACKAGE: &str = "switchyard:hooks";
/// The version of the package in `wit/`.
pub(crate) const VERSION: &str = "0.3.0";

/// The files of the contract.
pub(crate) const FILES: [(&str, &str); 11] = [
    ("types.wit", include_str!("../../../wit/types.wit")),
    ("capabilities.wit", include_str!("../../../wit/capabilities.wit")),
    ("screen.wit", include_str!("../../../wit/screen.wit")),
    ("lookup.wit", include_str!("../../../wit/lookup.wit")),
    ("router.wit", include_str!("../../../wit/router.wit")),
    ("resolver.wit", include_str!("../../../wit/resolver.wit")),
    ("delivery-policy.wit", include_str!("../../../wit/delivery-policy.wit")),
    ("receipt.wit", include_str!("../../../wit/receipt.wit")),
    ("biller.wit", include_str!("../../../wit/biller.wit")),
    ("peer.wit", include_str!("../../../wit/peer.wit")),
    ("front-end.wit", include_str!("../../../wit/front-end.wit")),
];

/// Writes the contract into a folder, unless the folder is a symbolic link.
pub(crate) fn write(folder: &Path) -> Result<(), WorkbenchError> {
    if folder.is_symlink() {
        return Ok(());
    }
    std::fs::create_dir_all(folder).map_err(WorkbenchError::file(folder))?;
    for (name, text) in FILES {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(WorkbenchError::file(&path))?;
    }
    Ok(())
}

/// The contract as a WIT package in the binary form that component tools exchange.
pub(crate) struct ContractPackage {
    /// The package.
    pub(crate) octets: Vec<u8>,
    /// Full names of its worlds and interfaces, in order.
    pub(crate) names: Vec<String>,
    /// Its version.
    pub(crate) version: String,
}

/// Encodes the contract.
///
/// # Errors
/// None that a user can cause: the contract is part of the program, and a test encodes it.
pub(crate) fn package() -> Result<ContractPackage, WorkbenchError> {
    let wrong = |why: String| WorkbenchError::Wit { path: PACKAGE.into(), why };
    let mut sources = SourceMap::default();
    for (name, text) in FILES {
        sources.push_str(name, text);
    }
    let group = sources.parse().map_err(|(_, error)| wrong(error.to_string()))?;
    let mut resolve = Resolve::default();
    let id = resolve.push_group(group).map_err(|error| wrong(error.to_string()))?;
    let octets = wit_component::encode(&resolve, id).map_err(|error| wrong(format!("{error:#}")))?;
    let package = resolve.packages.get(id).ok_or_else(|| wrong("it is empty".to_owned()))?;
    let names = package.interfaces.keys().chain(package.worlds.keys());
    let names: BTreeSet<_> = names.map(|name| resolve.id_of_name(id, name)).collect();
    let version = package.name.version.as_ref().map(ToString::to_string).unwrap_or_default();
    Ok(ContractPackage { octets, names: names.into_iter().collect(), version })
}

/// The interface that a plugin of this hook exports.
pub(crate) fn export(hook: Hook) -> &'static str {
    match hook {
        Hook::Screen => "screening",
        Hook::Lookup => "number-lookup",
        Hook::Router => "routing",
        Hook::Resolver => "resolution",
        Hook::DeliveryPolicy => "delivery",
        Hook::Receipt => "receipts",
        Hook::Biller => "billing",
        Hook::Peer => "peering",
        Hook::FrontEnd => "translation",
    }
}

/// A name of the contract as other languages write it: `number-lookup` is `numberLookup`.
pub(crate) fn camel_case(name: &str) -> String {
    let mut words = name.split('-');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |mut joined, word| {
        let mut letters = word.chars();
        joined.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        joined.push_str(letters.as_str());
        joined
    })
}

/// The interfaces that a world may import.
pub(crate) fn allowed_imports(hook: Hook) -> &'static [&'static str] {
    match hook {
        Hook::Screen => &["types", "log", "clock", "tables", "counters", "body", "details", "fault"],
        Hook::Lookup => {
            const IMPORTS: &[&str] =
                &["types", "log", "clock", "tables", "counters", "kv", "http", "dns", "hlr", "fault"];
            IMPORTS
        }
        Hook::Router => {
            const IMPORTS: &[&str] = &[
                "types", "log", "clock", "tables", "counters", "peers", "quality", "numbers", "body",
                "details", "fault",
            ];
            IMPORTS
        }
        Hook::Resolver => &["types", "log", "clock", "tables", "counters", "kv", "http", "hlr", "fault"],
        Hook::DeliveryPolicy | Hook::Receipt => {
            &["types", "log", "clock", "tables", "peers", "quality", "details", "fault"]
        }
        Hook::Biller => &["types", "log", "clock", "tables", "kv", "http", "details", "fault"],
        Hook::Peer => {
            &["types", "log", "clock", "tables", "kv", "http", "secrets", "body", "details", "fault"]
        }
        Hook::FrontEnd => &["types", "log", "clock", "tables", "fault"],
    }
}

/// The permission that comes with an import, and the grant that it needs in the binding.
pub(crate) fn describe_import(interface: &str) -> Option<(&'static str, Option<&'static str>)> {
    Some(match interface {
        "types" => ("words only", None),
        "log" => ("writes to the appliance's log: 16 lines per call, 100 per second", None),
        "clock" => ("reads the start time of the call", None),
        "tables" => (
            "fills and reads its own prefix tables; opens granted tables of the appliance",
            Some("tables = [\"NAME\"], for each appliance table"),
        ),
        "counters" => {
            ("counts over sliding windows in memory; durably by hour, day or month if granted", None)
        }
        "peers" => ("reads the links and queue length of every peer", None),
        "quality" => (
            "reads outcomes, DLRs and conversions of every peer; by destination or attribute if granted",
            None,
        ),
        "numbers" => (
            "reads the state of number pools, and requests a number as the sender of the current message",
            None,
        ),
        "body" => ("reads the text of the current message", None),
        "secrets" => ("reads the secrets that the configuration has for the peer at hand", None),
        "details" => ("reads the TLVs, header, text and attributes of the current message", None),
        "fault" => ("says why a call fails", None),
        "kv" => ("stores values durably, up to a quota", Some("kv = OCTETS")),
        "http" => (
            "sends HTTP requests to granted URLs",
            Some("http = [\"https://HOST/PATH\"], for each URL prefix"),
        ),
        "dns" => (
            "asks granted DNS servers about names in granted zones",
            Some("dns = { servers = [\"ADDRESS\"], zones = [\"ZONE\"] }"),
        ),
        "hlr" => ("queries the home location register", Some("hlr = true")),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_is_the_contract() {
        let package = package().unwrap();
        assert_eq!(package.version, VERSION);
        for name in
            ["switchyard:hooks/router@0.3.0", "switchyard:hooks/routing@0.3.0", "switchyard:hooks/kv@0.3.0"]
        {
            assert!(package.names.iter().any(|found| found == name), "{name}: {:?}", package.names);
        }
        let decoded = wit_component::decode(&package.octets).unwrap();
        assert!(matches!(decoded, wit_component::DecodedWasm::WitPackage(..)));
    }

    #[test]
    fn the_lists_match_the_wit() {
        let mut resolve = wit_parser::Resolve::default();
        let folder = tempfile::tempdir().unwrap();
        write(folder.path()).unwrap();
        let (package, _) = resolve.push_dir(folder.path()).unwrap();
        assert_eq!(resolve.packages[package].name.version.as_ref().unwrap().to_string(), VERSION);
        for hook in Hook::ALL {
            let world = &resolve.worlds[resolve.packages[package].worlds[hook.name()]];
            let names = |keys: Vec<&wit_parser::WorldKey>| {
                let mut names: Vec<String> = keys.iter().map(|key| resolve.name_world_key(key)).collect();
                names.sort();
                names
            };
            let whole = |name: &str| format!("{PACKAGE}/{name}@{VERSION}");
            assert_eq!(names(world.exports.keys().collect()), [whole(export(hook))]);
            let mut expected: Vec<String> = allowed_imports(hook).iter().map(|name| whole(name)).collect();
            expected.sort();
            let mut found = names(world.imports.keys().collect());
            // A world imports `types` only if its export needs it. It has no functions, so it may be in every list.
            if !found.contains(&whole("types")) {
                found.push(whole("types"));
                found.sort();
            }
            assert_eq!(found, expected, "{}", hook.name());
            assert!(allowed_imports(hook).iter().all(|name| describe_import(name).is_some()));
        }
    }
}
