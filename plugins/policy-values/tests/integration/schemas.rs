//! The documents of `policies/` against the schemas of `policies/schemas`, which they name in their first line.

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies")
}

/// The default plugins: the components among the folders of `plugins/`.
fn default_plugins() -> BTreeSet<String> {
    let plugins = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let is_component = |folder: &Path| {
        let Ok(manifest) = std::fs::read_to_string(folder.join("Cargo.toml")) else { return false };
        let manifest: Value = toml::from_str(&manifest).unwrap();
        manifest["lib"]["crate-type"].as_array().is_some_and(|types| types.iter().any(|one| one == "cdylib"))
    };
    let folders = std::fs::read_dir(plugins).unwrap().map(|entry| entry.unwrap().path());
    let components = folders.filter(|folder| is_component(folder));
    components.map(|folder| folder.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

fn compile(path: &Path, schemas: &mut Schemas) -> SchemaIndex {
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut compiler = Compiler::new();
    let name = format!("file:///{}", path.file_name().unwrap().to_string_lossy());
    compiler.add_resource(&name, schema).unwrap();
    compiler.compile(&name, schemas).unwrap()
}

/// The document, and the document with its commented-out examples, each on its own.
fn documents(text: &str) -> Vec<Value> {
    let mut documents = vec![toml::from_str(text).unwrap()];
    for paragraph in text.split("\n\n") {
        let example: String = paragraph
            .lines()
            .filter_map(|line| {
                line.strip_prefix("# ").filter(|line| !line.starts_with("  ")).or(line.strip_prefix("#"))
            })
            .skip_while(|line| !line.starts_with('['))
            .fold(String::new(), |all, line| all + line + "\n");
        if let Ok(example) = toml::from_str::<Value>(&example)
            && example.as_object().is_some_and(|keys| !keys.is_empty())
        {
            documents.push(example);
        }
    }
    documents
}

#[test]
fn each_default_plugin_has_a_schema() {
    let files = std::fs::read_dir(folder().join("schemas")).unwrap().map(|entry| entry.unwrap().path());
    let schemas: BTreeSet<String> =
        files.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(schemas, default_plugins(), "the schemas in policies/schemas, and the plugins that need one");
}

#[test]
fn the_shipped_documents_conform_to_their_schemas() {
    let mut examples = 0;
    let mut checked = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "toml") || path.ends_with("numbering.toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let schema = text.lines().next().and_then(|line| line.strip_prefix("#:schema ./"));
        let schema = schema.unwrap_or_else(|| panic!("{} names no schema", path.display()));
        let mut schemas = Schemas::new();
        let index = compile(&folder().join(schema), &mut schemas);
        let documents = documents(&text);
        examples += documents.len() - 1;
        checked += 1;
        // The first document is whole; an example is a part, in which required keys may be missing.
        for (number, document) in documents.iter().enumerate() {
            if let Err(error) = schemas.validate(document, index)
                && (number == 0 || !error.to_string().contains("missing propert"))
            {
                panic!("{}, document {number}: {error:#}", path.display());
            }
        }
    }
    assert_eq!(checked, std::fs::read_dir(folder().join("schemas")).unwrap().count());
    assert!(examples >= 5, "{examples} examples");
}

#[test]
fn the_schemas_refuse_mistakes() {
    let mistakes = [
        ("prefix-router", "[[route]]\nprefix = \"+86\"\nhome = true\n"),
        ("prefix-router", "[[route]]\nprefix = \"86\"\nlegs = [{ pear = \"north\" }]\n"),
        ("prefix-router", "[[route]]\nprefix = \"86\"\nreject = \"because\"\n"),
        ("retry-ladder", "[temporary]\nwaits = [\"5\"]\n"),
        ("second-chance", "[[rule]]\nnext-leg = [\"enroute\"]\n"),
        ("least-cost", "lowest-quality = 101\n"),
        ("adaptive", "leave-margin = 101\n"),
        ("adaptive", "[[destination]]\nprefix = \"86\"\ncandidates = [{ peer = \"north\", cost = 0.01 }]\n"),
        ("firewall", "[[rule]]\nname = \"a\"\nwords = \"win\"\n"),
        ("firewall", "[[rule]]\nname = \"a\"\nwords = \"win\"\nthen = \"block\"\n"),
        (
            "firewall",
            "[[rule]]\nname = \"a\"\nwords = \"win\"\nthen = \"tag\"\ntags = { Spam = \"likely\" }\n",
        ),
        ("firewall", "[[rule]]\nname = \"a\"\nvolume = { over = 5, window = \"10\" }\nthen = \"drop\"\n"),
        ("number-portability", "[[source]]\ntable = \"a\"\n[[network]]\nname = \"a\"\nmcc = \"26\"\n"),
        ("prepaid", "[[tariff]]\nname = \"a\"\nprices = { \"86\" = \"1,5\" }\n"),
        ("fraud-guard", "[[block]]\nname = \"a\"\nsize = 50\nnumbers = 5\nwindow = \"1m\"\n"),
        ("hlr-resolver", "home = [\"\"]\n"),
        ("http-resolver", "url = \"ftp://a/{msisdn}\"\n"),
        ("shared-sender", "[[share]]\npool = \"a\"\npeers = []\n"),
        ("table-resolver", "valid = 60\n"),
        ("kannel-front-end", "default-charset = 8\n"),
        ("jasmin-front-end", "validity = -1\n"),
        ("twilio-front-end", "accounts = [\"shop\"]\n"),
        ("http-peer", "[request]\nurl = 5\n"),
    ];
    let tried: BTreeSet<String> = mistakes.iter().map(|(schema, _)| (*schema).to_owned()).collect();
    assert_eq!(tried, default_plugins(), "the schemas with a mistake above, and the plugins");
    for (schema, document) in mistakes {
        let mut schemas = Schemas::new();
        let index = compile(&folder().join(format!("schemas/{schema}.json")), &mut schemas);
        let value: Value = toml::from_str(document).unwrap();
        assert!(schemas.validate(&value, index).is_err(), "{schema}: {document}");
    }
}
