/// What can go wrong with plugins.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// The octets are no WebAssembly.
    #[error(
        "not a WebAssembly file: it does not begin with \"\\0asm\". Upload the .wasm that the plugin's build made"
    )]
    NotWasm,
    /// A core module, not a component.
    #[error(
        "a WebAssembly core module, not a component: link it with wasm-component-ld, or turn it into one with \
         `wasm-tools component new`"
    )]
    NotComponent,
    /// It does not compile.
    #[error("the component does not compile: {0}")]
    Broken(String),
    /// It serves no hook.
    #[error(
        "a component of another world: it exports {found}; a plugin exports one of switchyard:hooks/routing, resolution, \
         delivery and billing"
    )]
    WrongWorld {
        /// What it exports.
        found: String,
    },
    /// It serves another hook than the one that it is bound to.
    #[error("plugin {plugin} {version} serves the hook {serves}, not {wanted}")]
    WrongHook {
        /// The plugin.
        plugin: String,
        /// Its version.
        version: String,
        /// What it can serve.
        serves: &'static str,
        /// What it was to serve.
        wanted: &'static str,
    },
    /// Built for a version of the interface that this host does not serve.
    #[error("built for {found}, and this host serves {served}: build it against the wit/ of this version")]
    WrongVersion {
        /// What it was built for.
        found: String,
        /// What is served.
        served: &'static str,
    },
    /// It wants something that its world does not offer.
    #[error("the component imports {name}, which a {hook} is not given")]
    ForeignImport {
        /// What it wants.
        name: String,
        /// The hook that it would serve.
        hook: &'static str,
    },
    /// It is not signed.
    #[error(
        "the component is not signed, and this appliance takes signed ones only: send its signature in the header \
         switchyard-signature (`switchyard plugin sign` makes one)"
    )]
    Unsigned,
    /// Its signature is wrong.
    #[error("the component's signature does not count: {0}")]
    BadSignature(&'static str),
    /// A trusted key is none.
    #[error("the trusted key {0:?} is not base64 of the 32 octets of an ed25519 public key")]
    BadKey(String),
    /// A grant makes no sense.
    #[error("grants.http: {0}")]
    BadGrant(String),
    /// A durable counter that cannot be granted.
    #[error("grants.counters: {0}")]
    BadCounter(String),
    /// The bindings have changed since they were looked at.
    #[error("the {hook} hook is at change {found}, not {expected}: look at it again before you change it")]
    Changed {
        /// The hook.
        hook: &'static str,
        /// What it was expected to be.
        expected: u64,
        /// What it is.
        found: u64,
    },
    /// No candidate is on trial.
    #[error("no candidate is on trial")]
    NoCandidate,
    /// A share that is none.
    #[error("a canary's share is 0.01 to 100 percent")]
    BadShare,
    /// Several plugins for a hook that takes one.
    #[error("the {0} hook takes one plugin, not a chain")]
    OneOnly(&'static str),
    /// The plugin refused its policy document.
    #[error("plugin {plugin} refuses its policy document: {why}")]
    Refused {
        /// The plugin.
        plugin: String,
        /// Its words.
        why: String,
    },
    /// The plugin failed while it was configured or tried out.
    #[error("plugin {plugin} failed its {stage}: {why}")]
    Faulty {
        /// The plugin.
        plugin: String,
        /// `configuration` or `self-check`.
        stage: &'static str,
        /// What happened.
        why: String,
    },
    /// A policy document names what does not exist.
    #[error(
        "the policy of {plugin} names {names}, unknown to this appliance. Add what is missing \
         first, or force it (`\"force\": true`, `--force`)"
    )]
    UnknownReferences {
        /// The plugin.
        plugin: String,
        /// What it names.
        names: String,
    },
    /// A component imports what its binding does not grant.
    #[error(
        "{plugin} {version} imports {imports}, and its binding grants no {imports}: each of its calls for that would fail. \
         Set grants, or force it (`\"force\": true`, `--force`)"
    )]
    NotGranted {
        /// The plugin.
        plugin: String,
        /// Its version.
        version: String,
        /// What is not granted.
        imports: String,
    },
    /// No such plugin or version.
    #[error("no version {version} of plugin {plugin}: upload it first, or see the list of versions")]
    Unknown {
        /// The plugin.
        plugin: String,
        /// The version.
        version: String,
    },
    /// A kept component is not what it was when it was uploaded.
    #[error("{path} is damaged: it is not version {version} any more. Remove nothing; upload it again")]
    Damaged {
        /// The file.
        path: std::path::PathBuf,
        /// The version that it should be.
        version: String,
    },
    /// Other octets are kept under the version that an upload would have.
    #[error(
        "version {version} of {plugin} is kept with other octets, whose SHA-256 begins alike: build the component anew, or give \
         the plugin another name"
    )]
    OtherOctets {
        /// The plugin.
        plugin: String,
        /// The version of both.
        version: String,
    },
    /// A name that cannot be a plugin's.
    #[error("{0:?} cannot be a plugin's name: use 1 to 64 letters, digits, '-' or '_'")]
    BadName(String),
    /// The binding names a peer that does not exist.
    #[error("on-fault names peer {0:?}, which is not in the configuration")]
    UnknownPeer(String),
    /// Nothing to go back to.
    #[error("there is no earlier binding to go back to")]
    NothingBefore,
    /// A chain without a plugin.
    #[error("a chain needs at least one plugin")]
    EmptyChain,
    /// The plugin folder failed.
    #[error("plugin storage {path}: {source}")]
    Storage {
        /// The file.
        path: std::path::PathBuf,
        /// Why.
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
