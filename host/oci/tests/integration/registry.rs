use crate::fake_registry::{FakeAnswer, FakeRequest, FakeServer, Repository};
use crate::{artifact, description, store};
use oci::{
    ArtifactLocation, ContentDigest, ContentStore as _, OciError, PulledArtifact, RegistryClient,
    RegistryCredentials, RegistryOptions, pull, push,
};
use proptest::prelude::*;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A registry with this repository.
fn start(repository: Repository) -> (FakeServer, Arc<Mutex<Repository>>) {
    let repository = Arc::new(Mutex::new(repository));
    let served = Arc::clone(&repository);
    (FakeServer::start(move |request| served.lock().unwrap().serve(request)), repository)
}

fn location(server: &FakeServer, ending: &str) -> String {
    format!("oci://{}/sms/first{ending}", server.address)
}

/// Pushes the artifact with the tag 1.0; returns its digest.
fn push_first(server: &FakeServer) -> ContentDigest {
    let target = store(&location(server, ":1.0"), None);
    push(&*target, &artifact(), &description(), Some("1.0")).unwrap().digest
}

fn pull_from(server: &FakeServer, ending: &str) -> Result<PulledArtifact, OciError> {
    pull(&*store(&location(server, ending), None))
}

fn pull_error(server: &FakeServer, ending: &str) -> OciError {
    pull_from(server, ending).unwrap_err()
}

#[test]
fn an_artifact_is_pulled_as_it_was_pushed_with_and_without_a_list_of_referrers() {
    for (repository, has_tag) in [(Repository::with_referrers(), false), (Repository::default(), true)] {
        let (server, repository) = start(repository);
        let digest = push_first(&server);
        for ending in [":1.0".to_owned(), format!("@{digest}"), format!(":2.0@{digest}")] {
            let pulled = pull_from(&server, &ending).unwrap();
            assert_eq!(pulled, PulledArtifact { digest, artifact: artifact() });
        }
        let tag = format!("sha256-{}", digest.digits());
        assert_eq!(repository.lock().unwrap().manifests.contains_key(&tag), has_tag);
        // A second push changes nothing.
        assert_eq!(push_first(&server), digest);
        assert_eq!(pull_from(&server, ":1.0").unwrap().digest, digest);
        assert!(
            matches!(pull_error(&server, ":2.0"), OciError::NotFound { content, .. } if content == "2.0")
        );
        assert!(pull_error(&server, "").to_string().contains("a tag or a digest is needed"));
    }
}

#[test]
fn the_config_is_that_of_the_cncf() {
    let (server, repository) = start(Repository::default());
    push_first(&server);
    let repository = repository.lock().unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&repository.manifests["1.0"]).unwrap();
    assert_eq!(manifest["annotations"]["org.switchyard.signature"], "c2lnbmF0dXJl");
    assert_eq!(manifest["layers"][0]["annotations"]["org.opencontainers.image.title"], "first.wasm");
    let config = &repository.blobs[manifest["config"]["digest"].as_str().unwrap()];
    let config: serde_json::Value = serde_json::from_slice(config).unwrap();
    assert_eq!(
        config,
        serde_json::json!({
            "created": "2025-11-28T12:00:00Z",
            "architecture": "wasm",
            "os": "wasip2",
            "layerDigests": [manifest["layers"][0]["digest"]],
            "component": {
                "exports": ["switchyard:hooks/routing@0.3.0"],
                "imports": ["switchyard:hooks/log@0.3.0"],
                "target": "switchyard:hooks/router@0.3.0",
            },
        })
    );
}

#[test]
fn replaced_and_damaged_content_is_refused() {
    let (server, repository) = start(Repository::default());
    let digest = push_first(&server);
    let layer = ContentDigest::of(&artifact().component).to_string();
    let damage = |octets: &mut Vec<u8>| *octets.last_mut().unwrap() ^= 1;

    damage(repository.lock().unwrap().blobs.get_mut(&layer).unwrap());
    assert!(
        matches!(pull_error(&server, ":1.0"), OciError::DigestMismatch { expected, .. } if expected.to_string() == layer)
    );
    repository.lock().unwrap().blobs.get_mut(&layer).unwrap().push(0);
    assert!(matches!(pull_error(&server, ":1.0"), OciError::SizeMismatch { expected: 14, .. }));
    repository.lock().unwrap().blobs.remove(&layer);
    assert!(matches!(pull_error(&server, ":1.0"), OciError::NotFound { content, .. } if content == layer));

    let name = digest.to_string();
    repository.lock().unwrap().manifests.get_mut(&name).unwrap().push(b' ');
    assert!(matches!(pull_error(&server, &format!("@{name}")), OciError::DigestMismatch { .. }));
}

#[test]
fn the_digest_that_a_registry_claims_is_compared() {
    let mut repository = Repository::default();
    let other = ContentDigest::of(b"other").to_string();
    let server = FakeServer::start(move |request| {
        let answer = repository.serve(request);
        let claims = request.method == "GET" && request.target.contains("/manifests/1.0");
        if claims { answer.header("docker-content-digest", &other) } else { answer }
    });
    push_first(&server);
    assert!(matches!(pull_error(&server, ":1.0"), OciError::DigestMismatch { .. }));
}

#[test]
fn a_component_above_the_limit_is_not_fetched() {
    let (server, repository) = start(Repository::default());
    push_first(&server);
    let mut locked = repository.lock().unwrap();
    let manifest = String::from_utf8(locked.manifests["1.0"].clone()).unwrap();
    assert!(manifest.contains("\"size\":14"));
    let huge = manifest.replace("\"size\":14", &format!("\"size\":{}", (64 << 20) + 1));
    locked.manifests.insert("huge".to_owned(), huge.into_bytes());
    // A manifest without end.
    locked.manifests.insert("long".to_owned(), vec![b' '; (4 << 20) + 1]);
    drop(locked);
    assert!(matches!(pull_error(&server, ":huge"), OciError::TooLarge { limit: 67_108_864, .. }));
    let layer = ContentDigest::of(&artifact().component).to_string();
    assert!(!server.has_request_with_authorization(
        |request| request.method == "GET" && request.target.ends_with(&layer)
    ));
    assert!(matches!(pull_error(&server, ":long"), OciError::TooLarge { limit: 4_194_304, .. }));
}

fn bearer(request: &FakeRequest) -> Option<&str> {
    request.authorization.as_deref()?.strip_prefix("Bearer ")
}

#[test]
fn a_token_is_fetched_from_the_token_server_and_goes_to_no_other_host() {
    let tokens = FakeServer::start(|request| {
        if request.authorization.as_deref() != Some("Basic YWxpY2U6aHVzaA==") {
            return FakeAnswer::new(401);
        }
        let token = if request.target.contains("push") { "writer" } else { "reader" };
        FakeAnswer::new(200).body(format!(r#"{{"token":"{token}","expires_in":60}}"#).as_bytes())
    });
    let storage_repository = Arc::new(Mutex::new(Repository::default()));
    let served = Arc::clone(&storage_repository);
    let storage = FakeServer::start(move |request| served.lock().unwrap().serve(request));
    let (realm, elsewhere) = (tokens.address, storage.address);
    let server = FakeServer::start(move |request| {
        let is_read = ["GET", "HEAD"].contains(&&*request.method);
        let token = bearer(request);
        if token == Some("writer") || (token == Some("reader") && is_read) {
            // The check whether a blob exists is redirected, too.
            if is_read && request.target.contains("/blobs/") {
                return FakeAnswer::new(307)
                    .header("location", &format!("http://{elsewhere}{}", request.target));
            }
            return storage_repository.lock().unwrap().serve(request);
        }
        let scope = if is_read { "pull" } else { "pull,push" };
        let challenge = format!(
            r#"Bearer realm="http://{realm}/token",service="fake",scope="repository:sms/first:{scope}""#
        );
        FakeAnswer::new(401).header("www-authenticate", &challenge)
    });
    let credentials = |password| RegistryCredentials::new("alice", password, "test").unwrap();
    let target = store(&location(&server, ":1.0"), Some(credentials("hush")));
    let pushed = push(&*target, &artifact(), &description(), Some("1.0")).unwrap();
    let source = store(&location(&server, ":1.0"), Some(credentials("hush")));
    assert_eq!(pull(&*source).unwrap().digest, pushed.digest);

    assert!(tokens.has_request_with_authorization(|request| request.target
        == "/token?scope=repository:sms/first:pull&service=fake"
        || request.target == "/token?scope=repository%3Asms%2Ffirst%3Apull&service=fake"));
    assert!(!server.has_request_with_authorization(|request| {
        request.authorization.as_ref().is_some_and(|it| it.starts_with("Basic"))
    }));
    assert!(storage.has_request_with_authorization(|request| request.target.contains("/blobs/")));
    assert!(!storage.has_request_with_authorization(|request| request.authorization.is_some()));

    let source = store(&location(&server, ":1.0"), Some(credentials("wrong-word")));
    let error = pull(&*source).unwrap_err().to_string();
    assert!(error.contains("refuses the credentials") && !error.contains("wrong-word"), "{error}");
    let error = pull_error(&server, ":1.0").to_string();
    assert!(error.contains("SWITCHYARD_REGISTRY_USER"), "{error}");
}

#[test]
fn a_token_server_without_tls_is_on_this_machine_or_not_asked() {
    for realm in ["http://registry.example/token", "ftp://127.0.0.1/", "", "?"] {
        let challenge = format!(r#"Bearer realm="{realm}""#);
        let server = FakeServer::start(move |_| FakeAnswer::new(401).header("www-authenticate", &challenge));
        let error = pull_error(&server, ":1.0");
        assert!(matches!(error, OciError::Malformed { .. }), "{realm}: {error}");
    }
}

#[test]
fn an_upload_to_a_host_without_tls_is_refused() {
    let server = FakeServer::start(|request| match &*request.method {
        "HEAD" => FakeAnswer::new(404),
        _ => FakeAnswer::new(202).header("location", "http://registry.example/upload?_state=hush"),
    });
    let target = store(&location(&server, ":1.0"), None);
    let error = push(&*target, &artifact(), &description(), Some("1.0")).unwrap_err().to_string();
    assert!(error.contains("Location") && !error.contains("hush"), "{error}");
}

#[test]
fn an_error_of_the_registry_is_printed_without_control_characters() {
    let server = FakeServer::start(|_| {
        FakeAnswer::new(503)
            .body(br#"{"errors":[{"code":"DENIED","message":"\u001b[2Jlater"},{"detail":1}]}"#)
    });
    let error = pull_error(&server, ":1.0").to_string();
    assert!(error.ends_with("the registry answered 503: DENIED  [2Jlater; "), "{error:?}");
}

#[test]
fn other_artifacts_are_not_plugins() {
    let (server, repository) = start(Repository::default());
    push_first(&server);
    let first = String::from_utf8(repository.lock().unwrap().manifests["1.0"].clone()).unwrap();
    for (from, to, why) in [
        (
            "application/vnd.wasm.config.v0+json",
            "application/vnd.oci.image.config.v1+json",
            "its config is of type",
        ),
        ("application/wasm", "application/vnd.oci.image.layer.v1.tar", "its layer is of type"),
        ("\"layers\":[", "\"layers\":[],\"x\":[", "it has 0 layers"),
        ("application/vnd.oci.image.manifest.v1+json", "application/vnd.oci.image.index.v1+json", "an index"),
    ] {
        let other = first.replace(from, to).into_bytes();
        assert_ne!(other, first.as_bytes());
        repository.lock().unwrap().manifests.insert("other".to_owned(), other);
        let error = pull_error(&server, ":other");
        assert!(matches!(&error, OciError::NotAPlugin { .. }) && error.to_string().contains(why), "{error}");
    }
}

#[test]
fn redirections_end() {
    let server = FakeServer::start(|request| FakeAnswer::new(302).header("location", &request.target));
    let error = pull_error(&server, ":1.0").to_string();
    assert!(error.contains("redirects without end"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn no_answer_panics(
        statuses in proptest::collection::vec(200_u16..600, 8),
        header in "[ -~]{0,30}",
        bodies in proptest::collection::vec(any::<Vec<u8>>(), 8),
    ) {
        let mut answers = statuses.into_iter().zip(bodies);
        let server = FakeServer::start(move |_| {
            let (status, body) = answers.next().unwrap_or((200, Vec::new()));
            let headers = ["location", "www-authenticate", "docker-content-digest", "link"];
            headers.into_iter().fold(FakeAnswer::new(status).body(&body), |answer, name| answer.header(name, &header))
        });
        prop_assert!(pull_from(&server, ":1.0").is_err());
        let target = store(&location(&server, ":1.0"), None);
        let _ = target.tags();
        let _ = push(&*target, &artifact(), &description(), Some("1.0"));
    }
}

#[test]
fn tags_are_listed_page_by_page() {
    let (server, _) = start(Repository::default());
    push_first(&server);
    // The repository has a second tag for the list of referrers, which is not shown.
    let listed = store(&location(&server, ""), None).tags().unwrap();
    assert_eq!((listed.tags, listed.is_complete), (vec!["1.0".to_owned()], true));

    let page =
        |tags: &str| FakeAnswer::new(200).body(format!(r#"{{"name":"sms/first","tags":{tags}}}"#).as_bytes());
    let server = FakeServer::start(move |request| match request.target.split_once("/tags/list?") {
        Some((_, "n=1000")) => page(r#"["1.0","1.1"]"#).header("link", "<http://elsewhere/>; rel=\"next\""),
        Some((_, "n=1000&last=1.1")) => page(r#"["2.0"]"#),
        _ => FakeAnswer::new(404),
    });
    let listed = store(&location(&server, ""), None).tags().unwrap();
    assert_eq!((listed.tags.join(" ").as_str(), listed.is_complete), ("1.0 1.1 2.0", true));

    // Registries with an endless list, without tags, and without the repository.
    let server = FakeServer::start(move |_| page(r#"["1.0"]"#).header("link", "</>; rel=\"next\""));
    let listed = store(&location(&server, ""), None).tags().unwrap();
    assert_eq!((listed.tags.len(), listed.is_complete), (1, false));
    let server = FakeServer::start(move |_| page("null"));
    assert!(store(&location(&server, ""), None).tags().unwrap().tags.is_empty());
    let server = FakeServer::start(|_| FakeAnswer::new(404));
    assert!(matches!(store(&location(&server, ""), None).tags(), Err(OciError::NotFound { .. })));
}

#[test]
fn a_registry_that_does_not_answer_ends_with_the_time_limit() {
    // The system accepts the connection, but no process reads from it.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let ArtifactLocation::Registry(reference) =
        format!("oci://{}/sms/first:1.0", listener.local_addr().unwrap()).parse().unwrap()
    else {
        panic!("a registry");
    };
    let options = RegistryOptions {
        credentials: None,
        plain_http: false,
        roots: ureq::tls::RootCerts::WebPki,
        time_limit: Some(Duration::from_millis(50)),
    };
    let silent = RegistryClient::new(reference, options);
    assert!(matches!(pull(&silent), Err(OciError::Unreachable { .. })));
    // No time is left for another request.
    assert!(matches!(silent.tags(), Err(OciError::Unreachable { .. })));
}
