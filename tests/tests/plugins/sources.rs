//! `[plugins] sources`: plugins that the appliance pulls itself, here from a folder with image layouts.

use anyhow::{Context, Result, ensure};
use behaviour_tests::test_daemon::{TestDaemon, TestDaemonConfig, free_port};
use behaviour_tests::{AdminClient, Fixture};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const BILL: &str = r#"{"bomFormat":"CycloneDX","specVersion":"1.6"}"#;

/// A folder with image layouts, and the key that signed its plugins.
struct SignedLayouts {
    fixture: Fixture,
    folder: PathBuf,
    public_key: String,
}

impl SignedLayouts {
    /// `router:1.0` is signed and has a bill of materials, `unsigned:1.0` neither.
    fn new() -> Result<Self> {
        let fixture = Fixture::new()?;
        let (author, folder) = (fixture.folder().join("author"), fixture.folder().join("stick"));
        std::fs::create_dir(&author)?;
        std::fs::create_dir(&folder)?;
        for (guest, name) in [("prefix_router", "router.wasm"), ("least_cost", "unsigned.wasm")] {
            std::fs::copy(fixture.guest(guest), author.join(name))?;
        }
        std::fs::write(author.join("router.bom.json"), BILL)?;
        let layouts = Self { fixture, folder, public_key: String::new() };
        layouts.plugin(&["keygen", "author.key"])?;
        layouts.push("router.wasm", "router")?;
        layouts.plugin(&["push", "unsigned.wasm", &layouts.layout("unsigned")])?;
        let public_key = std::fs::read_to_string(author.join("author.key.pub"))?.trim().to_owned();
        Ok(Self { public_key, ..layouts })
    }

    fn layout(&self, plugin: &str) -> String {
        format!("oci-layout:{}:1.0", self.folder.join(plugin).display())
    }

    /// Signs a file and pushes it with the tag 1.0.
    fn push(&self, file: &str, plugin: &str) -> Result<()> {
        self.plugin(&["sign", "--key", "author.key", file])?;
        self.plugin(&["push", file, &self.layout(plugin)]).map(drop)
    }

    /// `switchyard plugin` in the author's folder.
    fn plugin(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(self.fixture.binary());
        command.arg("plugin").args(arguments).stdin(Stdio::null());
        let output = command.current_dir(self.fixture.folder().join("author")).output()?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{arguments:?}: {error}");
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// An appliance that takes signed plugins only, with this folder, and with a registry that does not run.
    fn appliance(&self) -> Result<TestDaemon> {
        // Without a router, whose component would have to be signed.
        let folder = self.fixture.folder().join("appliance");
        let mut config = TestDaemonConfig::new(self.fixture.binary(), &folder)?;
        let gone = free_port()?;
        config.tables(&format!(
            "[plugins]\nrequire-signature = true\ntrusted-keys = {{ author = {:?} }}\nsources = [\n  \
             {{ name = \"stick\", url = {:?} }},\n  \
             {{ name = \"gone\", url = \"oci://127.0.0.1:{gone}/plugins\", user = \"reader\", password = \"hush-hush\" }},\n]\n",
            self.public_key,
            format!("oci-layout:{}", self.folder.display()),
        ));
        config.start()
    }

    /// The output of `switchyard plugin` about the appliance.
    fn ask(&self, appliance: &TestDaemon, arguments: &[&str]) -> Result<String> {
        let output = self.fixture.command(appliance).arg("plugin").args(arguments).output()?;
        ensure!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    }
}

fn pull(appliance: &TestDaemon, request: &Value) -> Result<(u16, Value)> {
    let (status, text) = appliance.request("POST", "/v1/plugins/pull", request.to_string().as_bytes())?;
    Ok((status, serde_json::from_str(&text).with_context(|| text.clone())?))
}

/// The blob of this size in an image layout.
fn component_blob(layout: &Path, size: u64) -> Result<PathBuf> {
    for entry in std::fs::read_dir(layout.join("blobs/sha256"))? {
        let path = entry?.path();
        if path.metadata()?.len() == size {
            return Ok(path);
        }
    }
    anyhow::bail!("no blob of {size} octets")
}

#[test]
fn an_appliance_pulls_signed_plugins_from_its_sources() -> Result<()> {
    let layouts = SignedLayouts::new()?;
    let appliance = layouts.appliance()?;
    let sources = appliance.get("/v1/plugins/sources")?;
    assert_eq!((&sources[0]["name"], &sources[1]["name"]), (&json!("stick"), &json!("gone")));
    ensure!(!sources.to_string().contains("hush-hush"), "{sources}");
    let configuration = appliance.get("/v1/configuration")?.to_string();
    ensure!(configuration.contains("reader") && !configuration.contains("hush-hush"), "{configuration}");
    assert!(layouts.ask(&appliance, &["sources"])?.contains("stick   oci-layout:/"));
    assert_eq!(layouts.ask(&appliance, &["tags", "stick/router"])?, "1.0\n");

    let printed = layouts.ask(&appliance, &["pull", "--json", "stick/router:1.0"])?;
    let version: Value = serde_json::from_str(&printed)?;
    let origin = &version["origin"];
    assert_eq!((&version["plugin"], &version["signed_by"]), (&json!("router"), &json!("author")));
    assert_eq!(
        (&origin["source"], &origin["tag"], &version["sbom"]),
        (&json!("stick"), &json!("1.0"), &json!(true))
    );
    let digest = origin["digest"].as_str().context("no digest")?;
    assert_eq!(appliance.get("/v1/plugins")?, json!([version]));
    let number = version["version"].as_str().context("no version")?;
    assert_eq!(layouts.ask(&appliance, &["sbom", &format!("router@{number}")])?.trim(), BILL);
    let audit = appliance.get("/v1/audit?limit=10")?.to_string();
    ensure!(
        audit.contains(&format!("router {number}, signed by author, from stick/router:1.0, {digest}")),
        "{audit}"
    );

    // By the digest, and by another name.
    let request = json!({ "source": "stick", "plugin": "router", "digest": digest, "name": "second" });
    let (status, second) = pull(&appliance, &request)?;
    assert_eq!((status, &second["plugin"], &second["sha256"]), (200, &json!("second"), &version["sha256"]));
    assert_eq!((&second["origin"]["tag"], &second["origin"]["plugin"]), (&Value::Null, &json!("router")));

    // The version is usable, and an upload of the same component and a restart keep its origin.
    let policy = "[default]\nreject = \"no-route\"\n";
    let binding =
        json!({ "plugin": "router", "version": version["sha256"], "policy": policy, "force": true });
    appliance.ask("POST", "/v1/hooks/router/activate", binding.to_string().as_bytes())?;
    appliance.ask("PUT", "/v1/plugins/router", &layouts.fixture.component("prefix_router")?)?;
    let appliance = appliance.kill()?.start()?;
    assert_eq!(appliance.get("/v1/plugins")?[0], version);
    let (status, _) = appliance.stop()?;
    ensure!(status.success());
    Ok(())
}

#[test]
fn a_plugin_that_cannot_be_trusted_or_reached_is_not_stored() -> Result<()> {
    let layouts = SignedLayouts::new()?;
    let appliance = layouts.appliance()?;
    let refused = |request: &Value, status: u16, words: &[&str]| -> Result<()> {
        let (found, problem) = pull(&appliance, request)?;
        let detail = problem["detail"].as_str().unwrap_or_default();
        ensure!(found == status, "{request}: {found} {problem}");
        ensure!(words.iter().all(|word| detail.contains(word)), "{request}: {detail}");
        ensure!(!problem.to_string().contains("hush-hush"), "{problem}");
        Ok(())
    };
    let named =
        |source: &str, plugin: &str, tag: &str| json!({ "source": source, "plugin": plugin, "tag": tag });
    let other = format!("sha256:{}", "0".repeat(64));
    refused(&named("stick", "unsigned", "1.0"), 422, &["is not signed", "requires signatures"])?;
    refused(&named("stick", "router", "2.0"), 404, &["has no tag 2.0", "plugin tags stick/router"])?;
    refused(&named("stick", "missing", "1.0"), 404, &["does not exist", "\"stick\" mounted"])?;
    refused(&named("stick", "../stick/router", "1.0"), 422, &["cannot be a plugin's name"])?;
    refused(&named("stick", "router", "x/../../unsigned:1.0"), 422, &["is not a tag"])?;
    refused(&named("elsewhere", "router", "1.0"), 404, &["[plugins] sources", "stick, gone"])?;
    refused(&named("gone", "router", "1.0"), 503, &["127.0.0.1", "\"gone\"", "plain-http", "is running"])?;
    let by_digest = |digest: &str| json!({ "source": "stick", "plugin": "router", "digest": digest });
    refused(&by_digest(&other), 404, &["has no sha256:00"])?;
    refused(&by_digest("sha256:00"), 422, &["64 hexadecimal digits"])?;
    refused(&json!({ "source": "stick", "plugin": "router" }), 422, &["a tag or a digest is needed"])?;
    let both = json!({ "source": "stick", "plugin": "router", "tag": "1.0", "digest": other });
    refused(&both, 409, &["points to sha256:", "nothing is stored"])?;

    // One octet of the component is changed, so its digest is another.
    let size = std::fs::metadata(layouts.fixture.guest("prefix_router"))?.len();
    let blob = component_blob(&layouts.folder.join("router"), size)?;
    let mut octets = std::fs::read(&blob)?;
    *octets.last_mut().context("empty")? ^= 1;
    std::fs::write(&blob, octets)?;
    refused(&named("stick", "router", "1.0"), 422, &["is damaged or was replaced"])?;
    assert_eq!(appliance.get("/v1/plugins")?, json!([]));

    // A viewer may see the sources, but may neither pull nor make the appliance connect to one.
    let root = AdminClient::root(&appliance)?;
    let viewer = AdminClient::anonymous(&appliance)
        .with_token(&root.make_token("viewer", &json!({ "role": "viewer" }))?);
    let status = |method: &str, path: &str, body: Option<&Value>| -> Result<u16> {
        Ok(viewer.ask(method, path, body)?.status)
    };
    assert_eq!(status("GET", "/v1/plugins/sources", None)?, 200);
    assert_eq!(status("GET", "/v1/plugins/sources/stick/router/tags", None)?, 403);
    assert_eq!(status("GET", "/v1/plugins/outdated", None)?, 403);
    assert_eq!(status("POST", "/v1/plugins/pull", Some(&named("stick", "router", "1.0")))?, 403);
    Ok(())
}

#[test]
fn the_check_of_a_configuration_reports_sources_that_cannot_be_used() -> Result<()> {
    let fixture = Fixture::new()?;
    let check = |source: &str| {
        let mut config = fixture.config()?;
        config.native("upstream").peer("upstream", ([127, 0, 0, 1], 1).into(), "");
        config.tables(&format!("[plugins]\nsources = [{source}]\n")).check()
    };
    let (valid, printed) = check(r#"{ name = "stick", url = "oci-layout:/media/stick" }"#)?;
    ensure!(valid, "{printed}");
    let (valid, printed) =
        check(r#"{ name = "carrier", url = "oci://user:hush@registry.example/plugins" }"#)?;
    ensure!(!valid && printed.contains("plugins.sources[0].url: must have no credentials"), "{printed}");
    ensure!(!printed.contains("hush"), "{printed}");
    Ok(())
}

#[test]
fn a_moved_tag_changes_nothing_until_the_next_pull() -> Result<()> {
    let layouts = SignedLayouts::new()?;
    let appliance = layouts.appliance()?;
    let request = json!({ "source": "stick", "plugin": "router", "tag": "1.0" });
    let (status, first) = pull(&appliance, &request)?;
    assert_eq!(status, 200, "{first}");
    assert_eq!(appliance.get("/v1/plugins/outdated")?, json!([]));
    assert!(layouts.ask(&appliance, &["outdated"])?.starts_with("Each pulled tag"));

    std::fs::copy(layouts.fixture.guest("least_cost"), layouts.fixture.folder().join("author/next.wasm"))?;
    layouts.push("next.wasm", "router")?;
    assert_eq!(appliance.get("/v1/plugins")?, json!([first]));
    let outdated = appliance.get("/v1/plugins/outdated")?;
    let stored = format!("router@{}", first["version"].as_str().context("no version")?);
    assert_eq!((&outdated[0]["tag"], &outdated[0]["stored"]), (&json!("1.0"), &json!([stored])));
    let now = outdated[0]["digest"].as_str().context("no digest")?;
    assert!(layouts.ask(&appliance, &["outdated"])?.contains(now));

    let (status, second) = pull(&appliance, &request)?;
    assert_eq!((status, &second["origin"]["digest"]), (200, &json!(now)));
    assert_ne!(second["sha256"], first["sha256"]);
    assert_eq!(appliance.get("/v1/plugins/outdated")?, json!([]));

    // A source that the configuration does not name any more is not read; its plugins stay.
    let etag = appliance.get("/v1/configuration")?["version"].as_u64().context("no version")?;
    let admin = AdminClient::root(&appliance)?.with_header("if-match", &format!("\"{etag}\""));
    let changed = admin.ask(
        "PATCH",
        "/v1/configuration",
        Some(&json!({ "plugins": { "sources": { "stick": null } } })),
    )?;
    ensure!(changed.status == 200, "{}", changed.text);
    assert_eq!(pull(&appliance, &request)?.0, 404);
    assert_eq!(appliance.get("/v1/plugins")?.as_array().map(Vec::len), Some(2));
    let outdated = appliance.get("/v1/plugins/outdated")?;
    let problem = outdated[0]["problem"].as_str().context("no problem")?;
    ensure!(problem.contains("is not in [plugins] sources") && outdated[0]["digest"].is_null(), "{outdated}");
    Ok(())
}

/// Writes another manifest into an image layout, and lets its tag lead to it.
fn change_manifest(layout: &Path, change: impl FnOnce(&mut Value)) -> Result<()> {
    let path = layout.join("index.json");
    let mut index: Value = serde_json::from_slice(&std::fs::read(&path)?)?;
    let blobs = layout.join("blobs/sha256");
    let digest = index["manifests"][0]["digest"].as_str().context("no digest")?;
    let manifest = blobs.join(digest.trim_start_matches("sha256:"));
    let mut manifest: Value = serde_json::from_slice(&std::fs::read(manifest)?)?;
    change(&mut manifest);
    let octets = manifest.to_string().into_bytes();
    let digest: String = Sha256::digest(&octets).iter().map(|octet| format!("{octet:02x}")).collect();
    index["manifests"][0]["digest"] = json!(format!("sha256:{digest}"));
    index["manifests"][0]["size"] = json!(octets.len());
    std::fs::write(blobs.join(digest), octets)?;
    Ok(std::fs::write(path, index.to_string())?)
}

#[test]
fn an_artifact_over_the_limit_is_refused_before_it_is_read() -> Result<()> {
    let layouts = SignedLayouts::new()?;
    let appliance = layouts.appliance()?;
    // The layout has no bill of materials, which would be a manifest, too.
    let layout = layouts.folder.join("unsigned");
    change_manifest(&layout, |manifest| {
        // The component is the largest layer.
        let layers = manifest["layers"].as_array_mut().into_iter().flatten();
        if let Some(component) = layers.max_by_key(|layer| layer["size"].as_u64()) {
            component["size"] = json!((64 << 20) + 1);
        }
    })?;
    let request = json!({ "source": "stick", "plugin": "unsigned", "tag": "1.0" });
    let (status, problem) = pull(&appliance, &request)?;
    let detail = problem["detail"].as_str().unwrap_or_default();
    ensure!(status == 422 && detail.starts_with("source \"stick\": "), "{status} {problem}");
    ensure!(detail.contains("is larger than 67108864 octets, which is the limit"), "{detail}");
    assert_eq!(appliance.get("/v1/plugins")?, json!([]));
    Ok(())
}

#[test]
fn a_source_that_hangs_holds_no_other_one() -> Result<()> {
    let layouts = SignedLayouts::new()?;
    // Accepts connections, and answers nothing.
    let silent = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
    let network = layouts.fixture.folder().join("network");
    let mut config = layouts.fixture.config()?;
    config.native("upstream").peer("upstream", ([127, 0, 0, 1], 1).into(), "");
    config.tables(&format!(
        "[plugins]\nsources = [\n  {{ name = \"stick\", url = {:?} }},\n  \
         {{ name = \"network\", url = {:?}, timeout = \"2s\" }},\n]\n",
        format!("oci-layout:{}", layouts.folder.display()),
        format!("oci-layout:{}", network.display()),
    ));
    let appliance = config.start()?;
    std::fs::create_dir(&network)?;
    let copied = Command::new("cp").arg("-r").arg(layouts.folder.join("router")).arg(&network).status()?;
    ensure!(copied.success());
    let named = |source: &str| json!({ "source": source, "plugin": "router", "tag": "1.0", "name": source });
    for source in ["network", "stick"] {
        let (status, pulled) = pull(&appliance, &named(source))?;
        assert_eq!(status, 200, "{pulled}");
    }

    // The network fails: from now on, its packets get no answer.
    let etag = appliance.get("/v1/configuration")?["version"].as_u64().context("no version")?;
    let admin = AdminClient::root(&appliance)?.with_header("if-match", &format!("\"{etag}\""));
    let url = format!("oci://{}/plugins", silent.local_addr()?);
    let change = json!({ "plugins": { "sources": { "network": { "url": url } } } });
    let changed = admin.ask("PATCH", "/v1/configuration", Some(&change))?;
    ensure!(changed.status == 200, "{}", changed.text);
    std::thread::scope(|scope| {
        let hangs = scope.spawn(|| pull(&appliance, &named("network")));
        let (status, pulled) = pull(&appliance, &named("stick"))?;
        ensure!(status == 200, "{pulled}");
        let (status, problem) = hangs.join().map_err(|_| anyhow::anyhow!("the pull panicked"))??;
        let detail = problem["detail"].as_str().unwrap_or_default();
        ensure!(status == 503 && detail.contains("\"network\""), "{status} {problem}");
        Ok(())
    })?;

    // The tag of the other source is resolved, and leads to the stored version.
    let outdated = appliance.get("/v1/plugins/outdated")?;
    let problem = outdated[0]["problem"].as_str().context("no problem")?;
    ensure!(problem.contains("\"network\""), "{outdated}");
    assert_eq!((&outdated[0]["source"], outdated.as_array().map(Vec::len)), (&json!("network"), Some(1)));
    Ok(())
}

#[test]
fn an_upload_has_a_bill_of_materials() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut config = fixture.config()?;
    config.native("upstream").peer("upstream", ([127, 0, 0, 1], 1).into(), "");
    let appliance = config.start()?;
    let folder = fixture.folder().join("author");
    std::fs::create_dir(&folder)?;
    let component = folder.join("router.wasm");
    std::fs::copy(fixture.guest("prefix_router"), &component)?;
    let octets = std::fs::read(&component)?;
    let sha256: String = Sha256::digest(&octets).iter().map(|octet| format!("{octet:02x}")).collect();
    let push = |arguments: &[&str]| -> Result<(bool, String)> {
        let output =
            fixture.command(&appliance).arg("plugin").arg("push").arg(&component).args(arguments).output()?;
        let printed = if output.status.success() { output.stdout } else { output.stderr };
        Ok((output.status.success(), String::from_utf8(printed)?))
    };
    let described = |sha256: &str| {
        let component = json!({ "name": "router", "hashes": [{ "alg": "SHA-256", "content": sha256 }] });
        json!({ "bomFormat": "CycloneDX", "specVersion": "1.5", "metadata": { "component": component } })
            .to_string()
    };

    let (pushed, printed) = push(&["--json"])?;
    ensure!(pushed, "{printed}");
    let version: Value = serde_json::from_str(&printed)?;
    assert_eq!(version["sbom"], json!(false));
    let number = version["version"].as_str().context("no version")?.to_owned();
    let path = format!("/v1/plugins/router/{number}/sbom");
    assert_eq!(appliance.request("GET", &path, &[])?.0, 404);

    // A bill of materials in a file next to the component, and one that is named by an option.
    std::fs::write(folder.join("router.sbom.json"), described(&sha256))?;
    let (pushed, printed) = push(&["--json"])?;
    ensure!(pushed, "{printed}");
    assert_eq!(serde_json::from_str::<Value>(&printed)?["sbom"], json!(true));
    assert_eq!(appliance.request("GET", &path, &[])?, (200, described(&sha256)));
    std::fs::write(folder.join("other.json"), BILL)?;
    let other = folder.join("other.json").display().to_string();
    ensure!(push(&["--sbom", &other])?.0);
    assert_eq!(appliance.request("GET", &path, &[])?, (200, BILL.to_owned()));

    // A bill of materials of another component is refused by the API and by the command.
    let wrong = described(&"0".repeat(64));
    let (status, problem) = appliance.request("PUT", &path, wrong.as_bytes())?;
    ensure!(status == 422 && problem.contains("describes another component"), "{status} {problem}");
    std::fs::write(folder.join("router.sbom.json"), wrong)?;
    let (pushed, printed) = push(&[])?;
    ensure!(!pushed && printed.contains("describes another component"), "{printed}");
    assert_eq!(appliance.request("PUT", &path, b"{}")?.0, 422);
    assert_eq!(appliance.request("GET", &path, &[])?, (200, BILL.to_owned()));
    let audit = appliance.get("/v1/audit?limit=10")?.to_string();
    ensure!(audit.contains(&format!("version {number}")), "{audit}");
    Ok(())
}
