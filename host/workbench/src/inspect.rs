use crate::component::Component;
use crate::{WorkbenchError, contract, signing};
use std::fmt::Write as _;
use std::path::Path;

/// Describes a component and its permissions.
pub(crate) fn inspect(path: &Path, key: Option<&Path>) -> Result<String, WorkbenchError> {
    let octets = std::fs::read(path).map_err(WorkbenchError::file(path))?;
    let component = Component::new(path, &octets)?;
    let signature = match (signing::read(path)?, key) {
        (None, _) => "none".to_owned(),
        (Some(_), None) => format!("{}; --key FILE.pub verifies it", signing::signature_path(path).display()),
        (Some(text), Some(key)) if signing::verify(key, &octets, &text)? => {
            format!("of this component, by {}", key.display())
        }
        (Some(_), Some(key)) => format!("not by {}, or not of this component", key.display()),
    };
    let schema = match policy_schema(path)? {
        Some(_) => "of its policy document; `switchyard plugin schema` prints it",
        None => "none",
    };
    Ok(text(&component, &signature, schema))
}

/// The schema of a component's policy document.
pub(crate) fn policy_schema(path: &Path) -> Result<Option<serde_json::Value>, WorkbenchError> {
    let octets = std::fs::read(path).map_err(WorkbenchError::file(path))?;
    policy_schema::read(&octets)
        .map_err(|error| WorkbenchError::NoComponent { path: path.to_owned(), why: error.to_string() })
}

fn text(component: &Component, signature: &str, schema: &str) -> String {
    let mut text = String::new();
    let mut line = |name: &str, words: &str| {
        let _ = writeln!(text, "{name:<10} {words}");
    };
    line("version", &component.version);
    line("size", &format!("{} octets", component.size));
    match &component.world {
        Some((hook, wit)) => line("world", &format!("{} ({}@{wit})", hook.name(), contract::PACKAGE)),
        None => line("world", "none: no hook calls its exports"),
    }
    line("signature", signature);
    line("schema", schema);
    let title = |first: bool, name: &'static str| if first { name } else { "" };
    for (index, export) in component.exports.iter().enumerate() {
        line(title(index == 0, "exports"), export);
    }
    let foreign: Vec<&str> = component.foreign_imports().collect();
    let mut first = true;
    for import in component.imports.iter().filter(|import| !foreign.contains(&&***import)) {
        let interface = import.rsplit_once('/').map_or(&**import, |(_, rest)| rest);
        let interface = interface.split('@').next().unwrap_or_default();
        let Some((meaning, grant)) = contract::describe_import(interface) else { continue };
        line(title(first, "imports"), &format!("{interface:<9} {meaning}"));
        if let Some(grant) = grant {
            line("", &format!("{:<9} grant in the binding: {grant}", ""));
        }
        first = false;
    }
    for import in &foreign {
        let fate = if import.starts_with("wasi:") {
            "served by an empty world: no files, no sockets, no environment"
        } else {
            "REFUSED: not available in this world"
        };
        line(title(first, "imports"), &format!("{import}: {fate}"));
        first = false;
    }
    if first {
        line("imports", "nothing");
    }
    if foreign.is_empty() {
        line("", "nothing else: no files, no sockets, no environment");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Hook;

    fn component(imports: &[&str], exports: &[&str], world: Option<Hook>) -> Component {
        Component {
            path: "a.wasm".into(),
            version: "0123456789ab".to_owned(),
            size: 4096,
            world: world.map(|hook| (hook, "0.3.0".to_owned())),
            imports: imports.iter().map(|&name| name.to_owned()).collect(),
            exports: exports.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    #[test]
    fn required_grants_are_shown() {
        let resolver = component(
            &["switchyard:hooks/clock@0.3.0", "switchyard:hooks/http@0.3.0"],
            &["switchyard:hooks/resolution@0.3.0"],
            Some(Hook::Resolver),
        );
        let expected = "\
version    0123456789ab
size       4096 octets
world      resolver (switchyard:hooks@0.3.0)
signature  none
schema     none
exports    switchyard:hooks/resolution@0.3.0
imports    clock     reads the start time of the call
           http      sends HTTP requests to granted URLs
                     grant in the binding: http = [\"https://HOST/PATH\"], for each URL prefix
           nothing else: no files, no sockets, no environment
";
        assert_eq!(text(&resolver, "none", "none"), expected);
    }

    #[test]
    fn another_worlds_import_is_refused() {
        let router = component(
            &["switchyard:hooks/http@0.3.0", "wasi:cli/environment@0.2.0"],
            &["switchyard:hooks/routing@0.3.0"],
            Some(Hook::Router),
        );
        let text = text(&router, "none", "none");
        assert!(text.contains("imports    switchyard:hooks/http@0.3.0: REFUSED"), "{text}");
        assert!(text.contains("wasi:cli/environment@0.2.0: served by an empty world"), "{text}");
        assert!(!text.contains("nothing else"), "{text}");
        assert!(self::text(&component(&[], &[], None), "none", "none").contains("no hook calls"));
    }
}
