/// Errors of the plugin host.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// The octets are not WebAssembly.
    #[error(
        "not a WebAssembly file: it does not begin with \"\\0asm\". Upload the .wasm file from the plugin's build"
    )]
    NotWasm,
    /// A core module, not a component.
    #[error(
        "a WebAssembly core module, not a component: link it with wasm-component-ld, or convert it with \
         `wasm-tools component new`"
    )]
    NotComponent,
    /// The component does not compile.
    #[error("the component does not compile: {0}")]
    Broken(String),
    /// The component serves no hook.
    #[error(
        "a component of another world: it exports {found}; a plugin exports one of switchyard:hooks/screening, number-lookup, \
         routing, resolution, delivery, receipts, billing, peering and translation"
    )]
    WrongWorld {
        /// Its exports.
        found: String,
    },
    /// The plugin serves another hook than the one in the binding.
    #[error("plugin {plugin} {version} serves the hook {serves}, not {wanted}")]
    WrongHook {
        /// The plugin.
        plugin: String,
        /// Its version.
        version: String,
        /// The hook that it serves.
        serves: &'static str,
        /// The hook in the binding.
        wanted: &'static str,
    },
    /// The component was built for an unsupported contract version.
    #[error("built for {found}, but this host supports {served}: build it against the wit/ of this version")]
    WrongVersion {
        /// The version that it was built for.
        found: String,
        /// The supported versions.
        served: &'static str,
    },
    /// The component has an import that its world does not offer.
    #[error("the component imports {name}, which the world of a {hook} does not offer")]
    ForeignImport {
        /// The import.
        name: String,
        /// The hook that it would serve.
        hook: &'static str,
    },
    /// Debug information of another component.
    #[error(
        "debug information of another component than {plugin} {version}: upload the .debug.wasm file that `switchyard plugin \
         build` wrote with it"
    )]
    OtherDebugInfo {
        /// The plugin.
        plugin: String,
        /// Its version.
        version: String,
    },
    /// The component's policy schema is not usable.
    #[error(transparent)]
    PolicySchema(#[from] policy_schema::PolicySchemaError),
    /// The component has no policy schema.
    #[error(
        "{plugin} {version} has no schema of its policy document: put policy.schema.json into the plugin's folder, and build it with \
         `switchyard plugin build`"
    )]
    NoPolicySchema {
        /// The plugin.
        plugin: String,
        /// Its version.
        version: String,
    },
    /// The version has no bill of materials.
    #[error(
        "{plugin} {version} has no bill of materials: push the plugin with the one that `switchyard plugin build` wrote, or with --sbom FILE"
    )]
    NoSbom {
        /// The plugin.
        plugin: String,
        /// Its version.
        version: String,
    },
    /// The bill of materials describes another component.
    #[error(
        "the bill of materials describes another component than {plugin} {version}, by its SHA-256; nothing is stored"
    )]
    OtherSbom {
        /// The plugin.
        plugin: String,
        /// Its version.
        version: String,
    },
    /// The component is not signed.
    #[error(
        "the component is not signed, but this appliance requires signatures: send one in the header \
         switchyard-signature (see `switchyard plugin sign`)"
    )]
    Unsigned,
    /// The signature is not valid.
    #[error("the component's signature is invalid: {0}")]
    BadSignature(&'static str),
    /// A trusted key is malformed.
    #[error("the trusted key {0:?} is not base64 of the 32 octets of an ed25519 public key")]
    BadKey(String),
    /// An HTTP grant is invalid.
    #[error("grants.http: {0}")]
    BadGrant(String),
    /// A durable counter grant is invalid.
    #[error("grants.counters: {0}")]
    BadCounter(String),
    /// A grant of observations of peers is invalid.
    #[error("grants.quality: {0}")]
    BadQuality(String),
    /// The bindings have changed since the caller read them.
    #[error("the {hook} hook is at change {found}, not {expected}: read it again before you change it")]
    Changed {
        /// The hook.
        hook: &'static str,
        /// The expected serial.
        expected: u64,
        /// The current serial.
        found: u64,
    },
    /// No candidate is on trial.
    #[error("no candidate is on trial")]
    NoCandidate,
    /// The canary's share is out of range.
    #[error("a canary's share is 0.01 to 100 percent")]
    BadShare,
    /// Several plugins for a hook that takes one.
    #[error("the {0} hook takes one plugin, not a chain")]
    OneOnly(&'static str),
    /// A candidate in shadow for a hook whose questions have effects.
    #[error(
        "the {0} hook has no shadow, which would submit each message twice: start the candidate as a canary"
    )]
    NoShadow(&'static str),
    /// A binding of the hook `peer` without peers.
    #[error("the binding of {0} serves no peer: name its [[plugin-peer]] in `peers`")]
    WithoutPeers(String),
    /// A binding of another hook with peers.
    #[error(
        "this binding of the {0} hook must not have `peers`: only bindings of the hook peer and routers of tenants have them"
    )]
    ServesNoPeers(&'static str),
    /// A binding of another hook than `router` with a tenant.
    #[error("bindings of the {0} hook must not have a `tenant`: only routers can have one")]
    ServesNoTenants(&'static str),
    /// A binding serves an unknown tenant.
    #[error(
        "`tenant` names {0:?}, which is not a [[tenant]] of the configuration. Add the tenant first, or force it (`\"force\": true`, \
         `--force`): the plugin is asked nothing until the tenant exists"
    )]
    UnknownTenant(String),
    /// The policy document of a tenant's router names peers to which it may not forward.
    #[error(
        "the policy of {plugin} for tenant {tenant} names {names}, to which its binding does not let it forward. Add them to `peers`, \
         or force it (`\"force\": true`, `--force`)"
    )]
    PeersNotAllowed {
        /// The plugin.
        plugin: String,
        /// The tenant.
        tenant: String,
        /// The peers.
        names: String,
    },
    /// A peer with two bindings.
    #[error("peer {0:?} is served by two bindings: leave it in one of them")]
    DuplicatePeer(String),
    /// A binding serves an unknown peer.
    #[error(
        "`peers` names {0:?}, which is not in the configuration. Add the peer first, or force it (`\"force\": true`, \
         `--force`)"
    )]
    ServesUnknownPeer(String),
    /// A plugin occurs twice in a chain whose bindings are chosen by the plugin's name.
    #[error("plugin {0} has two bindings: to serve two policy documents, upload it under a second name")]
    DuplicatePlugin(String),
    /// The plugin refused its policy document.
    #[error("plugin {plugin} refuses its policy document: {why}")]
    Refused {
        /// The plugin.
        plugin: String,
        /// The plugin's reason.
        why: String,
    },
    /// The plugin failed during configuration or self-check.
    #[error("plugin {plugin} failed its {stage}: {why}")]
    Faulty {
        /// The plugin.
        plugin: String,
        /// `configuration` or `self-check`.
        stage: &'static str,
        /// Description of the fault.
        why: String,
    },
    /// The policy document has unknown references.
    #[error(
        "the policy of {plugin} names {names}, unknown to this appliance. Add them \
         first, or force it (`\"force\": true`, `--force`)"
    )]
    UnknownReferences {
        /// The plugin.
        plugin: String,
        /// The unknown names.
        names: String,
    },
    /// A component has imports that its binding does not grant.
    #[error(
        "{plugin} {version} imports {imports}, but its binding does not grant {imports}: every such call would fail. \
         Set grants, or force it (`\"force\": true`, `--force`)"
    )]
    NotGranted {
        /// The plugin.
        plugin: String,
        /// Its version.
        version: String,
        /// The imports without a grant.
        imports: String,
    },
    /// Unknown plugin or version.
    #[error("no version {version} of plugin {plugin}: upload it first, or list the versions")]
    Unknown {
        /// The plugin.
        plugin: String,
        /// The version.
        version: String,
    },
    /// Several versions start with the same digits.
    #[error("several versions of plugin {plugin} start with {digits}: {versions}; give more digits")]
    AmbiguousVersion {
        /// The plugin.
        plugin: String,
        /// The digits.
        digits: String,
        /// The versions.
        versions: String,
    },
    /// A stored component does not match its digest.
    #[error("{path} is damaged: it does not match version {version}. Do not remove it; upload it again")]
    Damaged {
        /// The file.
        path: std::path::PathBuf,
        /// The expected version.
        version: String,
    },
    /// Another component is stored under the same version digits.
    #[error(
        "version {version} of {plugin} is stored with other octets whose SHA-256 starts with the same digits: rebuild the component, or give \
         the plugin another name"
    )]
    DigestConflict {
        /// The plugin.
        plugin: String,
        /// The version of both.
        version: String,
    },
    /// Not a valid plugin name.
    #[error("{0:?} cannot be a plugin's name: use 1 to 64 letters, digits, '-' or '_'")]
    BadName(String),
    /// The binding names an unknown peer.
    #[error("on-fault names peer {0:?}, which is not in the configuration")]
    UnknownPeer(String),
    /// There is no earlier binding to roll back to.
    #[error("there is no earlier binding to roll back to")]
    NoEarlierBinding,
    /// The chain has no plugin.
    #[error("a chain needs at least one plugin")]
    EmptyChain,
    /// Input or output in the plugin folder failed.
    #[error("plugin storage {path}: {source}")]
    Storage {
        /// The file.
        path: std::path::PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// wasmtime itself failed.
    #[error("the WebAssembly engine failed: {0}")]
    Engine(String),
}

impl HookError {
    pub(crate) fn storage(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::Storage { path: path.to_owned(), source }
    }
}
