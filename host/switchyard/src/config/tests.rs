use super::*;
use ports::ServerTlsFiles;
use std::time::Duration;

fn problems(text: &str) -> Vec<String> {
    Config::parse(text, Path::new("/nowhere")).unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn the_sample_is_valid() {
    // Any file stands for the plugin, which is built after these tests.
    let sample = include_str!("../../switchyard.toml")
        .replace("../../target/plugins/prefix_router.wasm", "Cargo.toml");
    let config = Config::parse(&sample, Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
    assert_eq!(config.names(), ["demo", "upstream"]);
}

#[test]
fn an_empty_document_has_only_the_mandatory_keys_missing() {
    assert_eq!(
        problems(""),
        ["line 1: appliance.data: is missing; write for example data = \"/var/lib/switchyard\""]
    );
    // All defaults are valid, even where a section is missing.
    let _ = (Peer::defaults(), Gateway::defaults(), Network::defaults(), Account::defaults());
    let _ = (RedisListener::defaults(), ShellSettings::defaults(), BusinessListener::defaults());
    let _ = (ListenerKind::defaults(), PoolKeys::defaults(), OptOutKeywords::defaults());
}

#[test]
fn the_schema_describes_keys_where_they_are() {
    let schema = configuration::schema(keys());
    let peer = &schema["properties"]["peer"]["items"];
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(
        (&peer["properties"]["password"]["writeOnly"], &peer["additionalProperties"]),
        (&true.into(), &false.into())
    );
    assert_eq!(peer["required"], serde_json::json!(["name", "address"]));
    assert!(!schema.to_string().contains("null"), "{schema:#}");
    for path in ["peer.*.tls.ca", "account.*.business.push.url", "shell.users.*.uid", "listener.*.idle"] {
        let path: Vec<&str> = path.split('.').collect();
        assert!(configuration::find(keys(), &path).is_some(), "{path:?}");
    }
}

#[test]
fn renamed_keys_and_values_have_only_their_new_names() {
    fn check(keys: &[Key], path: &str) -> usize {
        let mut renamed = 0;
        for key in keys {
            if let Some(old) = key.was {
                assert!(!keys.iter().any(|other| other.name == old), "{path}.{old}");
                renamed += 1;
            }
            renamed += key.shape.keys().map_or(0, |below| check(below, &format!("{path}.{}", key.name)));
        }
        renamed
    }
    assert!(check(keys(), "") >= 37);
    for (path, old, new) in configuration::RENAMED_VALUES {
        let path = path.strip_suffix(&["*"]).unwrap_or(path);
        let shape = configuration::find(keys(), path).unwrap().shape.schema().to_string();
        assert!(shape.contains(&format!("{new:?}")) && !shape.contains(&format!("{old:?}")), "{path:?}");
    }
}

#[test]
fn the_audit_retention_has_a_minimum() {
    let text = |kept: &str| format!("[appliance]\ndata = \"/x\"\n[http]\naudit-retention = \"{kept}\"\n");
    assert_eq!(
        problems(&text("1d")),
        ["line 4: http.audit-retention: is too short, and must be at least \"30d\""]
    );
    let config = Config::parse(&text("30d"), Path::new("/nowhere")).unwrap();
    assert_eq!(config.http.audit_retention, Duration::from_secs(30 * 86_400));
}

#[test]
fn all_errors_are_reported_with_line_key_and_remedy() {
    let text = r#"[appliance]
name = "a name that is far too long"
dta = "x"

[[account]]
name = "acme"
password-hash = "secret"
bind = ["both"]
networks = ["10.0.0.0/99"]
validity = "two days"
rate = -1

[[peer]]
name = "acme"
address = "nowhere"
windw = 5
default-account = "nobody"
bind = "sideways"

[router]
on-fault = "nowhere"
"#;
    assert_eq!(
        problems(text),
        [
            "line 1: appliance.data: is missing; write for example data = \"/var/lib/switchyard\"",
            "line 2: appliance.name: must be 1 to 15 ASCII characters",
            "line 3: appliance.dta: is unknown; did you mean \"data\"?",
            "line 7: account[0].password-hash: is not an argon2 hash; create one with: switchyard hash-password",
            "line 8: account[0].bind: has \"both\", and must be any of: transceiver, transmitter, receiver",
            "line 9: account[0].networks: \"10.0.0.0/99\" is not a network: expected an address with an optional prefix length, such as 10.0.0.0/8 or ::1",
            "line 10: account[0].validity: is \"two days\", and must be a time such as \"500ms\", \"30s\", \"5m\", \"1h\" or \"2d\"",
            "line 11: account[0].rate: must be above 0 messages per second; omit it for no limit",
            "line 14: peer[0].name: \"acme\" is also the name of another account; names must differ",
            "line 15: peer[0].address: is \"nowhere\", and must be host:port",
            "line 16: peer[0].windw: is unknown; did you mean \"window\"?",
            "line 17: peer[0].default-account: \"nobody\" is not an [[account]]; known are: acme",
            "line 18: peer[0].bind: is \"sideways\", and must be one of: transceiver, transmitter, receiver",
            "line 21: router.on-fault: \"nowhere\" is not a [[peer]], [[gateway]], [[plugin-peer]], [[gsm]] or [[account]]",
        ]
    );
}

#[test]
fn a_language_without_a_national_table_is_rejected() {
    let text = r#"[appliance]
data = "/nowhere"
[[gsm]]
name = "home"
hlr = "hlr.example.net:4222"
service-centre = "19990014444"
languages = ["turkish", "klingon"]
"#;
    assert_eq!(
        problems(text),
        [
            "line 7: gsm[0].languages: has \"klingon\", and must be any of: turkish, spanish, portuguese, bengali, gujarati, \
             hindi, kannada, malayalam, oriya, punjabi, tamil, telugu, urdu"
        ]
    );
}

#[test]
fn shell_users_are_validated() {
    let text = r#"[appliance]
data = "/nowhere"
[[peer]]
name = "shell"
address = "localhost:2775"
system-id = "us"
[shell]
socket = "/run/x.sock"
mode = "rw"
group = "no group of this name"
[[shell.users]]
user = "no user of this name"
numbers = ["16195550123"]
[[shell.users]]
uid = 7
gid = 8
numbers = "all"
[[shell.users]]
uid = 9
numbers = "any"
deliver = true
[[shell.users]]
uid = 10
oprator = true
"#;
    assert_eq!(
        problems(text),
        [
            "line 7: shell: is also the name of another peer; names must differ",
            "line 9: shell.mode: is \"rw\", and must be octal, such as \"0660\"",
            "line 10: shell.group: \"no group of this name\" is not a group of this system",
            "line 12: shell.users[0].user: \"no user of this name\" is not a user of this system",
            "line 13: shell.users[0].numbers: \"16195550123\" is not a number: write 3 to 20 digits with a plus sign in front, such as +16195550123",
            "line 14: shell.users[1].user: exactly one of user, uid, group and gid must be set",
            "line 17: shell.users[1].numbers: is \"all\", and must be a list of numbers, or \"any\"",
            "line 21: shell.users[2].deliver: must list numbers or prefixes if numbers = \"any\": deliver = [\"+16195550123\", \"+1619556*\"]",
            "line 22: shell.users[3].numbers: is missing; write for example numbers = [\"+16195550123\"]",
            "line 24: shell.users[3].oprator: is unknown; did you mean \"operator\"?",
        ]
    );
    let right = r#"[appliance]
data = "/nowhere"
[shell]
socket = "x.sock"
[[shell.users]]
uid = 7
numbers = ["+16195550123", "+16195550124"]
deliver = true
[[shell.users]]
gid = 8
numbers = "any"
deliver = ["+16195550125", "+1619556*"]
"#;
    let config = Config::parse(right, Path::new("/etc/switchyard")).unwrap();
    assert_eq!(config.names(), ["shell"]);
    let shell = config.shell.unwrap();
    assert_eq!(shell.options.socket, Path::new("/etc/switchyard/x.sock"));
    assert_eq!(shell.options.mode, 0o660);
    let inboxes = shell.options.inboxes();
    for number in ["16195550123", "16195550124", "16195550125", "16195560000"] {
        assert!(inboxes.contains(number.as_bytes()), "{number}");
    }
    assert!(shell.queue.addressee);
}

#[test]
fn syntax_errors_name_their_line() {
    let found = problems("[appliance]\ndata = \n");
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("line 2: TOML:"), "{found:?}");
}

#[test]
fn errors_do_not_quote_files_or_secrets() {
    const MARK: &str = "Xy7-secret";
    let folder = tempfile::tempdir().unwrap();
    let texts = [
        MARK.to_owned(),
        format!("mysql://user:{MARK}@host:x/{MARK}"),
        format!("postgres://host/db?sslmode={MARK}&password={MARK}"),
        format!("{MARK} = \"{MARK}\"\ndefault = \"{MARK}\"\n[plan.\"{MARK}\"]\ncountry-code = \"{MARK}\"\n"),
        format!("-----BEGIN {MARK}\n{MARK}"),
        format!("-----BEGIN PRIVATE KEY-----\n{MARK}\n-----END {MARK}-----\n"),
    ];
    let own = |key: &str| {
        // Every key that names a file, and every key that holds a secret or a URL with a secret.
        let mut document = serde_json::json!({
            "appliance": { "data": "data" },
            "http": { "tls": { "certificate": key, "key": key, "client-ca": key } },
            "listener": [{ "name": "l", "listen": "127.0.0.1:0",
                "tls": { "certificate": key, "key": key, "client-ca": key } }],
            "account": [{ "name": "a", "password-hash": MARK,
                "sgip": { "node": 1, "login-password-file": key },
                "business": { "push": { "url": format!("ftp://u:{MARK}@h"), "secret-file": key } } }],
            "peer": [{ "name": "p", "address": "h:1", "system-id": "x", "password-file": key,
                "tls": { "ca": key, "certificate": key, "key": key } }],
            "gateway": [{ "name": "g", "login-password-file": key, "inbound-login-password": MARK.repeat(3) }],
            "numbering": { "document": key },
            "telemetry": { "otlp": format!("ftp://u:{MARK}@h") },
            "archive": { "url-file": key },
            "redis": { "listen": ["127.0.0.1:0"], "account": [{ "name": "r", "password-hash": MARK }] },
        });
        for hook in ["router", "resolver", "delivery-policy", "receipt", "biller"] {
            document[hook] = serde_json::json!({ "component": key, "policy": key });
        }
        document
    };
    let mut errors = Vec::new();
    for (number, text) in texts.iter().enumerate() {
        let name = format!("file{number}");
        std::fs::write(folder.path().join(&name), text).unwrap();
        let problems = Config::from_document(&own(&name), None, folder.path()).unwrap_err();
        errors.extend(problems.iter().map(|problem| format!("{number}: {problem}")));
        let path = folder.path().join(&name);
        let tls =
            ServerTlsFiles { certificate: path.clone(), key: path.clone(), client_ca: Some(path.clone()) };
        errors.push(format!("{number}: {}", tls.read().unwrap_err()));
        errors.push(format!("{number}: {}", ports::read_private_key(&path).unwrap_err()));
    }
    for key in [
        "archive.url-file",
        "numbering.document",
        "push.url",
        "telemetry.otlp",
        "gateway[0].inbound-login-password",
    ] {
        assert!(errors.iter().any(|line| line.contains(key)), "nothing is wrong with {key}: {errors:#?}");
    }
    let quoting: Vec<_> = errors.iter().filter(|line| line.contains(MARK)).collect();
    assert!(quoting.is_empty(), "{quoting:#?}");
}

#[test]
fn number_plan_errors_are_detailed_for_files_only() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("plans"), "other = 1\n").unwrap();
    let text = "[appliance]\ndata = \"data\"\n[numbering]\ndocument = \"plans\"\n";
    let errors = Config::parse(text, folder.path()).unwrap_err()[0].to_string();
    assert!(errors.contains("\"other\" is unknown"), "{errors}");
}

#[test]
fn durable_counters_are_granted_by_name_window_and_zone() {
    let head = "[appliance]\ndata = \"/x\"\n[router.grants]\n";
    let right = "counters = [{ name = \"daily\", window = \"day\", zone = \"Europe/Berlin\" }, { name = \"m\", window = \"month\" }]";
    let config = Config::parse(&format!("{head}{right}"), Path::new("/nowhere")).unwrap();
    let granted = &config.first_bindings[0].binding.grants.counters;
    let texts: Vec<_> =
        granted.iter().map(|one| (one.name.as_str(), one.window.name(), one.zone.as_str())).collect();
    assert_eq!(texts, [("daily", "day", "Europe/Berlin"), ("m", "month", "UTC")]);
    let wrong = |counters: &str| problems(&format!("{head}counters = [{counters}]\n"));
    assert_eq!(
        wrong("{ name = \"a\", window = \"week\" }, { name = \"b\" }, { window = \"day\", zome = \"UTC\" }"),
        [
            "line 4: router.grants.counters[0].window: is \"week\", and must be one of: hour, day, month",
            "line 4: router.grants.counters[1].window: is missing, and must be hour, day or month",
            "line 4: router.grants.counters[2].name: is missing; write for example name = \"daily\"",
            "line 4: router.grants.counters[2].zome: is unknown; did you mean \"zone\"?",
        ]
    );
    assert_eq!(
        wrong("{ name = \"a\", window = \"day\", zone = \"Bonn\" }"),
        [
            "line 4: router.grants.counters: counter \"a\": the time zone \"Bonn\" is unknown; a zone is a name of the IANA \
             database, such as Europe/Berlin or UTC"
        ]
    );
    let twice = "{ name = \"a\", window = \"day\" }, { name = \"a\", window = \"hour\" }";
    assert_eq!(
        wrong(twice),
        ["line 4: router.grants.counters: counter \"a\": the name occurs twice; give each counter its own"]
    );
}

#[test]
fn figures_of_peers_are_granted_by_digits_and_attributes() {
    let head = "[appliance]\ndata = \"/x\"\n[router.grants]\n";
    let granted = |text: &str| {
        let config = Config::parse(&format!("{head}{text}"), Path::new("/nowhere")).unwrap();
        config.first_bindings[0].binding.grants.quality.clone()
    };
    assert_eq!(granted(""), None);
    let grant = granted("quality = { digits = [2, 5], attributes = [\"campaign\"] }").unwrap();
    assert_eq!(
        (grant.window_ms, &*grant.digits, &*grant.attributes),
        (300_000, &[2, 5][..], &["campaign".to_owned()][..])
    );
    let wrong = |quality: &str| problems(&format!("{head}quality = {{ {quality} }}\n"));
    assert_eq!(
        wrong("digits = [9]"),
        ["line 4: router.grants.quality: digits has 9; it has numbers from 1 to 8"]
    );
    assert_eq!(
        wrong("digits = [2, \"x\"]"),
        ["line 4: router.grants.quality.digits: has \"x\", and must be integers from 0 to 255"]
    );
    assert_eq!(
        wrong("window-ms = 5"),
        ["line 4: router.grants.quality.window-ms: is 5, and must be 10000 to 86400000"]
    );
}

#[test]
fn encrypted_texts_need_a_root_key_and_no_cluster() {
    let base = "[appliance]\ndata = \"/data\"\n";
    let account = "[[account]]\nname = \"acme\"\npassword-hash = \"x\"\nencrypt-texts = ";
    let of_privacy = problems(&format!("{base}[privacy]\nencrypt-texts = true\n"));
    assert!(
        of_privacy.iter().any(|one| one.contains("privacy.encrypt-texts: needs root-key-file")),
        "{of_privacy:?}"
    );
    let of_account = problems(&format!("{base}{account}true\n"));
    assert!(
        of_account.iter().any(|one| one.contains("encrypt-texts: needs root-key-file")),
        "{of_account:?}"
    );
    let not_needed = problems(&format!("{base}{account}false\nnonsense = 1\n"));
    assert!(!not_needed.iter().any(|one| one.contains("root-key-file")), "{not_needed:?}");
    let period = |period: &str| {
        problems(&format!(
            "{base}[privacy]\nroot-key-file = \"root.key\"\nkey-period = \"{period}\"\nnonsense = 1\n"
        ))
    };
    assert!(period("2d").iter().any(|one| one.contains("must be between 1s and 1d")));
    assert!(!period("1h").iter().any(|one| one.contains("key-period:")));
    let cluster = "[cluster]\nendpoints = [\"http://127.0.0.1:1\"]\nnode = \"a\"\n";
    let refused = problems(&format!("{base}[privacy]\nroot-key-file = \"root.key\"\n{cluster}"));
    assert!(
        refused.iter().any(|one| one.contains("root-key-file: does not go with [cluster]")),
        "{refused:?}"
    );
}
