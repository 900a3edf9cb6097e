use super::*;
use proptest::prelude::*;

const DIGEST: &str = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

fn parse(text: &str) -> ArtifactLocation {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn parse_registry(text: &str) -> RegistryReference {
    match parse(text) {
        ArtifactLocation::Registry(reference) => reference,
        ArtifactLocation::Layout(_) => panic!("{text} is a folder"),
    }
}

#[test]
fn a_registry_reference_has_host_repository_tag_and_digest() {
    let whole = parse_registry(&format!("oci://registry.example:5000/sms/plugins/first:1.0@{DIGEST}"));
    assert_eq!((&*whole.host, whole.port), ("registry.example", Some(5000)));
    assert_eq!((&*whole.repository, whole.tag.as_deref()), ("sms/plugins/first", Some("1.0")));
    assert_eq!(whole.digest, Some(DIGEST.parse().unwrap()));
    let least = parse_registry("oci://registry.example/first");
    assert_eq!((least.port, least.tag, least.digest), (None, None, None));
    let bound = parse("oci://[::1]:5000/first:1.0").bound_to(DIGEST.parse().unwrap());
    assert_eq!(bound.to_string(), format!("oci://[::1]:5000/first@{DIGEST}"));
    assert_eq!(bound.repository_name(), Some("first"));
}

#[test]
fn a_layout_reference_has_a_folder_tag_and_digest() {
    let layout = |text: &str| match parse(text) {
        ArtifactLocation::Layout(reference) => (reference.folder, reference.tag, reference.digest.is_some()),
        ArtifactLocation::Registry(_) => panic!("{text} is a registry"),
    };
    let tag = |tag: &str| Some(tag.to_owned());
    assert_eq!(layout("oci-layout:/media/stick:1.0"), ("/media/stick".into(), tag("1.0"), false));
    assert_eq!(layout("oci-layout:stick"), ("stick".into(), None, false));
    assert_eq!(layout(&format!("oci-layout:a@b:1@{DIGEST}")), ("a@b".into(), tag("1"), true));
    assert_eq!(layout("oci-layout:a:b/c"), ("a:b/c".into(), None, false));
}

#[test]
fn loopback_is_this_machine_only() {
    for host in ["localhost", "127.0.0.1:5000", "127.9.9.9", "[::1]"] {
        assert!(parse_registry(&format!("oci://{host}/a")).is_loopback(), "{host}");
    }
    for host in ["localhost.example", "128.0.0.1", "[::2]", "127.example", "0.0.0.0"] {
        assert!(!parse_registry(&format!("oci://{host}/a")).is_loopback(), "{host}");
    }
}

#[test]
fn every_fault_of_a_reference_has_its_message() {
    for (wrong, why) in [
        ("registry.example/first", "neither oci://"),
        ("oci://registry.example", "a host and a repository"),
        ("oci:///first", "the host"),
        ("oci://-a.example/first", "the host"),
        ("oci://a_b/first", "the host"),
        ("oci://[::1/first", "']'"),
        ("oci://[1.2.3.4]/first", "IPv6"),
        ("oci://[::1]5000/first", "after ']'"),
        ("oci://host:0/first", "port"),
        ("oci://host:+1/first", "port"),
        ("oci://host:65536/first", "port"),
        ("oci://host:/first", "port"),
        ("oci://host/First", "a repository has"),
        ("oci://host/a//b", "a repository has"),
        ("oci://host/a___b", "a repository has"),
        ("oci://host/a..b", "a repository has"),
        ("oci://host/a/../b", "a repository has"),
        ("oci://host/a-", "a repository has"),
        ("oci://host/", "a repository has"),
        ("oci://host/a:", "a tag has"),
        ("oci://host/a:.1", "a tag has"),
        ("oci://host/a:1:2", "a tag has"),
        ("oci://host/a@sha512:00", "after '@'"),
        ("oci://host/a@", "after '@'"),
        ("oci-layout:", "a folder"),
        ("oci-layout::1", "a folder"),
        ("oci-layout:stick:", "a tag has"),
    ] {
        let error = wrong.parse::<ArtifactLocation>().unwrap_err().to_string();
        assert!(error.contains(why), "{wrong}: {error}");
    }
    let long = format!("oci://host/{}", "a".repeat(251));
    assert!(long.parse::<ArtifactLocation>().unwrap_err().to_string().contains("255"));
    let long = format!("oci://host/a:{}", "1".repeat(129));
    assert!(long.parse::<ArtifactLocation>().is_err());
}

#[test]
fn a_password_in_a_reference_is_not_quoted() {
    for wrong in
        ["oci://user:hush@host/a", "oci://user:hu/sh@host/a", "oci://user:hush/a", "oci:user:hush@host"]
    {
        let error = wrong.parse::<ArtifactLocation>().unwrap_err().to_string();
        assert!(!error.contains("hu"), "{error}");
    }
}

fn part() -> impl Strategy<Value = String> {
    "[a-z0-9]{1,8}((\\.|_|__|-{1,3})[a-z0-9]{1,8}){0,2}"
}

proptest! {
    #[test]
    fn a_reference_of_the_grammar_is_read_and_printed(
        host in "[a-z0-9]{1,10}(\\.[a-z0-9-]{0,3}[a-z0-9]){0,3}",
        port in proptest::option::of(1..=u16::MAX),
        parts in proptest::collection::vec(part(), 1..4),
        tag in proptest::option::of("[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}"),
        digest in proptest::option::of(any::<[u8; 8]>()),
    ) {
        // A label may not start with '-'.
        prop_assume!(!host.contains(".-"));
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        let tag = tag.map(|tag| format!(":{tag}")).unwrap_or_default();
        let digest = digest.map(|octets| format!("@{}", ContentDigest::of(&octets))).unwrap_or_default();
        let text = format!("oci://{host}{port}/{}{tag}{digest}", parts.join("/"));
        let location: ArtifactLocation = text.parse().unwrap();
        prop_assert_eq!(location.to_string(), text);
    }

    #[test]
    fn no_text_panics_and_what_is_read_is_printed(text in "(oci://|oci-layout:)?[a-z0-9A-Z:/@.\\[\\]_é-]{0,40}") {
        if let Ok(location) = text.parse::<ArtifactLocation>() {
            prop_assert_eq!(location.to_string().parse::<ArtifactLocation>().unwrap(), location);
        }
    }
}
