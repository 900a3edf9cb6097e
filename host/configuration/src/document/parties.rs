//! Whom the appliance speaks with: listeners, accounts, peers, gateways, core networks.

use super::words::{ErrorClass, File, HostPort, Listen, Network, PasswordHash, Rate, Secret, Size, Time};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Adds the keys of a queue.
macro_rules! queue {
    ($(#[$meta:meta])* pub struct $name:ident { $($own:tt)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        pub struct $name {
            $($own)*
            /// Messages a second that are sent to it; no limit unless it is said.
            pub rate: Option<Rate>,
            /// How many may go at once; a tenth of a second's unless said otherwise.
            #[schemars(range(min = 1, max = 10_000_000))]
            pub burst: Option<u64>,
            /// Messages that may wait for it; more are refused.
            #[schemars(range(min = 1))]
            pub queue_limit: Option<u64>,
            /// Whether it sends delivery receipts; yes unless said otherwise.
            pub receipts: Option<bool>,
            /// How long a receipt is waited for.
            pub receipt_limit: Option<Time>,
            /// What is done about a message that was sent and never answered.
            pub uncertain: Option<Uncertain>,
            /// How long a message may be uncertain.
            pub uncertain_limit: Option<Time>,
            /// Times between attempts; the last one counts for all that follow.
            #[schemars(length(min = 1))]
            pub retry: Option<Vec<Time>>,
            /// Attempts in all; 0: as many as its validity allows.
            #[schemars(range(max = 10_000))]
            pub max_attempts: Option<u64>,
            /// The account that gets its messages that no route takes.
            pub default_account: Option<String>,
        }
    };
}

/// Adds the habits of an SGIP node, in front of what comes.
macro_rules! habits {
    ($then:ident! { $(#[$meta:meta])* pub struct $name:ident { $($own:tt)* } }) => {
        $then! {
            $(#[$meta])*
            pub struct $name {
                $($own)*
                /// The version of the protocol; 1.2 unless said otherwise.
                pub version: Option<SgipVersion>,
                /// How it marks texts with a header; 1 unless said otherwise.
                pub udhi: Option<Udhi>,
                /// Users' numbers are sent with 86 in front.
                pub add_86: Option<bool>,
                /// 86 is taken off users' numbers that come.
                pub strip_86: Option<bool>,
                /// The LinkID travels in the Reserve octets.
                pub link_id: Option<bool>,
                /// Texts beyond ASCII go as GBK instead of UCS2.
                pub gbk: Option<bool>,
                /// Answers are matched by node and counter alone.
                pub loose_match: Option<bool>,
                /// Octets of the longest command that is taken.
                #[schemars(range(min = 2048, max = 1_000_000))]
                pub longest_command: Option<u64>,
            }
        }
    };
}

/// A section as it is.
macro_rules! section {
    ($(#[$meta:meta])* pub struct $name:ident { $($own:tt)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        pub struct $name {
            $($own)*
        }
    };
}

section! {
    /// Where others connect to us.
    pub struct Listener {
        /// Its name.
        pub name: String,
        /// Where it listens.
        pub listen: Listen,
        /// What it speaks; `smpp` unless said otherwise.
        pub protocol: Option<Protocol>,
        /// TLS; SMPP only.
        pub tls: Option<ServerTls>,
        /// Connections at a time; 1000 unless said otherwise.
        #[schemars(range(min = 1, max = 1_000_000))]
        pub connections: Option<u64>,
        /// Connections from one address; 100 unless said otherwise.
        #[schemars(range(min = 1, max = 1_000_000))]
        pub connections_per_address: Option<u64>,
        /// Connections that are not bound: one more displaces the oldest of them; a quarter of all unless said otherwise.
        #[schemars(range(min = 1, max = 1_000_000))]
        pub unbound_connections: Option<u64>,
        /// How long a connection may take to bind.
        pub bind_timeout: Option<Time>,
        /// Silence after which a connection is unbound; SMPP only.
        pub inactivity: Option<Time>,
        /// Silence after which an enquire_link is sent; SMPP only.
        pub enquire_interval: Option<Time>,
        /// How long its answer may take; SMPP only.
        pub enquire_timeout: Option<Time>,
        /// How long the rest of a PDU may take; SMPP only.
        pub partial_timeout: Option<Time>,
        /// How long an ESME may take to answer; SMPP only.
        pub response_timeout: Option<Time>,
        /// Silence after which a connection is closed, `0s` for never; SGIP only.
        pub idle: Option<Time>,
        /// Login types count for nothing; SGIP only.
        pub any_login_type: Option<bool>,
    }
}

/// What a listener speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// SMPP 3.3, 3.4 and 5.0.
    Smpp,
    /// SGIP 1.2.
    Sgip,
}

section! {
    /// The files of a TLS listener, PEM.
    pub struct ServerTls {
        /// The certificate chain, ours first.
        pub certificate: File,
        /// Its private key.
        pub key: File,
        /// Authorities whose client certificates are demanded.
        pub client_ca: Option<File>,
    }
}

section! {
    /// One who may submit messages.
    pub struct Account {
        /// Its name.
        pub name: String,
        /// The system_id of its binds; its name unless said otherwise.
        #[schemars(length(max = 15))]
        pub system_id: Option<String>,
        /// Its password's hash.
        pub password_hash: PasswordHash,
        /// How it may bind; in any way unless said otherwise.
        pub bind: Option<Vec<BindMode>>,
        /// Where it may connect from; from anywhere unless said otherwise.
        pub networks: Option<Vec<Network>>,
        /// Submissions a second over all its sessions; no limit unless it is said.
        pub rate: Option<Rate>,
        /// How many may come at once.
        #[schemars(range(min = 1, max = 10_000_000))]
        pub burst: Option<u64>,
        /// Submissions of a session that may be unanswered; 100 unless said otherwise.
        #[schemars(range(min = 1, max = 100_000))]
        pub window: Option<u64>,
        /// Deliveries to a session that may be unanswered; 100 unless said otherwise.
        #[schemars(range(min = 1, max = 100_000))]
        pub deliver_window: Option<u64>,
        /// Sessions at a time; 10 unless said otherwise.
        #[schemars(range(min = 1, max = 100_000))]
        pub sessions: Option<u64>,
        /// The validity of messages that come without one; 2d unless said otherwise.
        pub validity: Option<Time>,
        /// The addresses that its messages may come from.
        pub source: Option<SourceRules>,
        /// Replies and reports that may wait for it; 1000000 unless said otherwise.
        #[schemars(range(min = 1))]
        pub queue_limit: Option<u64>,
        /// Whether a long text has one report or one for each part; `merged` unless said otherwise.
        pub reports: Option<Reports>,
        /// Memory for the idempotency keys of its calls; 256MiB unless said otherwise, which is some two million. With more,
        /// calls with new keys are refused until `key-retention` of `[engine]` has passed for the oldest.
        pub idempotency_memory: Option<Size>,
        /// Whether subscribers may stop it; yes unless said otherwise.
        pub opt_out: Option<bool>,
        /// Its SGIP side, where it is an SP.
        pub sgip: Option<Sp>,
        /// Its calls and pushes, where it is a business system.
        pub business: Option<AccountBusiness>,
    }
}

/// How an ESME binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BindMode {
    /// It submits.
    Transmitter,
    /// It receives.
    Receiver,
    /// Both.
    Transceiver,
}

/// How long texts are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reports {
    /// One report.
    Merged,
    /// One for each part.
    PerPart,
}

section! {
    /// The addresses that an account's messages may come from.
    pub struct SourceRules {
        /// Patterns, `*` standing for any characters; all addresses unless it is said.
        pub allow: Option<Vec<String>>,
        /// What messages without an address come from.
        #[schemars(length(max = 20))]
        pub default: Option<String>,
        /// Its type of number.
        #[schemars(range(max = 7))]
        pub ton: Option<u64>,
        /// Its numbering plan.
        #[schemars(range(max = 18))]
        pub npi: Option<u64>,
    }
}

section! {
    /// The calls and pushes of a business system.
    pub struct AccountBusiness {
        /// Short messages that a text may take.
        #[schemars(range(min = 1, max = 255))]
        pub parts: Option<u64>,
        /// Messages of one call.
        #[schemars(range(min = 1, max = 60_000))]
        pub batch: Option<u64>,
        /// How long what was fetched waits to be acknowledged.
        pub lease: Option<Time>,
        /// Where replies and reports are pushed; left out, they are fetched.
        pub push: Option<Push>,
    }
}

section! {
    /// Where replies and reports are pushed.
    pub struct Push {
        /// An http or https URL.
        #[schemars(regex(pattern = "^https?://"))]
        pub url: String,
        /// In which form; `json` unless said otherwise.
        pub format: Option<PushFormat>,
        /// The key of the signature; it or `secret-file` must be there.
        pub secret: Option<Secret>,
        /// A file with the key in it, instead.
        pub secret_file: Option<File>,
        /// Pushes at a time; 1 keeps the order of all of them, and is usual.
        #[schemars(range(min = 1, max = 1000))]
        pub window: Option<u64>,
        /// How long one may take; 10s unless said otherwise.
        pub timeout: Option<Time>,
    }
}

/// In which form pushes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PushFormat {
    /// JSON.
    Json,
    /// XML-RPC.
    XmlRpc,
}

queue! {
    /// An SMSC that we connect to.
    pub struct Peer {
        /// Its name.
        pub name: String,
        /// Where it is.
        pub address: HostPort,
        /// Our system_id there.
        #[schemars(length(max = 15))]
        pub system_id: Option<String>,
        /// Our password there.
        pub password: Option<Secret>,
        /// A file with the password in it, instead.
        pub password_file: Option<File>,
        /// The system_type that it wants to see.
        pub system_type: Option<String>,
        /// How we bind; `transceiver` unless said otherwise.
        pub bind: Option<BindMode>,
        /// Connections; 1 unless said otherwise.
        #[schemars(range(min = 1, max = 256))]
        pub links: Option<u64>,
        /// Messages on a connection that may be unanswered; 10 unless said otherwise.
        #[schemars(range(min = 1, max = 100_000))]
        pub window: Option<u64>,
        /// The version that we show; 3.4 unless said otherwise.
        pub interface_version: Option<InterfaceVersion>,
        /// Whether it takes TLVs; by its version unless it is said.
        pub tlvs: Option<bool>,
        /// Whether validity_period is passed on.
        pub pass_validity: Option<bool>,
        /// Silence after which an enquire_link is sent.
        pub enquire_interval: Option<Time>,
        /// How long its answer may take.
        pub enquire_timeout: Option<Time>,
        /// How long it may take to answer a message.
        pub response_timeout: Option<Time>,
        /// The longest wait before it is dialled again; 30s unless said otherwise.
        pub redial_interval: Option<Time>,
        /// How the ids that it gives differ from those in its receipts.
        pub message_id: Option<MessageIdForm>,
        /// How texts go that are too long for one message; `payload` unless said otherwise.
        pub long_text: Option<LongText>,
        /// What its own error codes mean: `0x45`, say, to a class.
        pub error_classes: Option<BTreeMap<String, ErrorClass>>,
        /// The validity of messages that come from it; 3d unless said otherwise.
        pub mo_validity: Option<Time>,
        /// TLS, where it wants it.
        pub tls: Option<ClientTls>,
        /// Peers of one group share their receipts.
        pub group: Option<String>,
    }
}

/// The version of SMPP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum InterfaceVersion {
    /// 3.3
    #[serde(rename = "3.3")]
    V33,
    /// 3.4
    #[serde(rename = "3.4")]
    V34,
    /// 5.0
    #[serde(rename = "5.0")]
    V50,
}

/// How ids in receipts are turned into those in answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MessageIdForm {
    /// They are the same.
    AsIs,
    /// Answers hexadecimal, receipts decimal.
    HexToDecimal,
    /// Answers decimal, receipts hexadecimal.
    DecimalToHex,
    /// Zeros in front count for nothing.
    StripZeros,
    /// Capital letters count for nothing.
    FoldCase,
}

/// How long texts go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LongText {
    /// Whole, in message_payload.
    Payload,
    /// In parts with a user data header.
    Udh,
    /// In parts with the SAR TLVs.
    Sar,
}

/// What is done about a message that was sent and never answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Uncertain {
    /// It is sent again, at the risk of a double.
    SendAgain,
    /// The peer is asked by query_sm; SMPP only.
    Ask,
    /// A receipt settles it.
    AwaitReceipt,
}

section! {
    /// How a peer is spoken to over TLS.
    pub struct ClientTls {
        /// Authorities that may have signed its certificate; the system's unless said otherwise.
        pub ca: Option<File>,
        /// The name that its certificate must carry; the host of its address unless said otherwise.
        pub server_name: Option<String>,
        /// Our certificate chain, where it wants one; with `key`.
        pub certificate: Option<File>,
        /// Its private key.
        pub key: Option<File>,
    }
}

habits! { queue! {
    /// An operator's SGIP gateway, where we are the SP.
    pub struct Gateway {
        /// Its name.
        pub name: String,
        /// Where it is.
        pub address: HostPort,
        /// Our node number.
        #[schemars(range(max = 4_294_967_295_u64))]
        pub node: u64,
        /// Our login there.
        #[schemars(length(max = 16))]
        pub login_name: Option<String>,
        /// Our password there.
        pub login_password: Option<Secret>,
        /// A file with the password in it, instead.
        pub login_password_file: Option<File>,
        /// Its login at our listener.
        #[schemars(length(max = 16))]
        pub its_name: Option<String>,
        /// Its password at our listener.
        pub its_password: Option<Secret>,
        /// A file with the password in it, instead.
        pub its_password_file: Option<File>,
        /// Where it may log in from; from anywhere unless said otherwise.
        pub networks: Option<Vec<Network>>,
        /// Connections to it; 1 unless said otherwise.
        #[schemars(range(min = 1, max = 60))]
        pub connections: Option<u64>,
        /// Connections from it; 10 unless said otherwise.
        #[schemars(range(min = 1, max = 10_000))]
        pub connections_in: Option<u64>,
        /// Messages on a connection that may be unanswered; 32 unless said otherwise.
        #[schemars(range(min = 1, max = 100_000))]
        pub window: Option<u64>,
        /// How long it may take to answer, until the same is sent again.
        pub response_timeout: Option<Time>,
        /// How often it is sent in all; 3 unless said otherwise.
        #[schemars(range(min = 1, max = 100))]
        pub tries: Option<u64>,
        /// How long it may take to answer a login.
        pub bind_timeout: Option<Time>,
        /// The validity of messages that come from it.
        pub mo_validity: Option<Time>,
        /// What its own result codes mean.
        pub error_classes: Option<BTreeMap<String, ErrorClass>>,
        /// What stands in fields that no message says anything about.
        pub fields: Option<Fields>,
    }
} }

section! {
    /// Fields of a Submit.
    pub struct Fields {
        /// ChargeNumber.
        #[schemars(length(max = 21))]
        pub charge_number: Option<String>,
        /// CorpId.
        #[schemars(length(max = 5))]
        pub corp_id: Option<String>,
        /// ServiceType.
        #[schemars(length(max = 10))]
        pub service_type: Option<String>,
        /// FeeType.
        #[schemars(range(max = 4))]
        pub fee_type: Option<u64>,
        /// FeeValue.
        #[schemars(length(max = 6))]
        pub fee_value: Option<String>,
        /// GivenValue.
        #[schemars(length(max = 6))]
        pub given_value: Option<String>,
        /// AgentFlag.
        #[schemars(range(max = 1))]
        pub agent_flag: Option<u64>,
        /// MorelatetoMTFlag.
        #[schemars(range(max = 3))]
        pub mo_related: Option<u64>,
    }
}

habits! { section! {
    /// The SGIP side of an account, where we are the gateway.
    pub struct Sp {
        /// Its login, with the account's password; the account's name unless said otherwise.
        #[schemars(length(max = 16))]
        pub its_name: Option<String>,
        /// Our node number.
        #[schemars(range(max = 4_294_967_295_u64))]
        pub node: u64,
        /// Where it takes Deliver and Report.
        pub address: Option<HostPort>,
        /// Our login there.
        #[schemars(length(max = 16))]
        pub login_name: Option<String>,
        /// Our password there.
        pub login_password: Option<Secret>,
        /// A file with the password in it, instead.
        pub login_password_file: Option<File>,
        /// Connections from it; 10 unless said otherwise.
        #[schemars(range(min = 1, max = 10_000))]
        pub connections_in: Option<u64>,
        /// Connections to it; 1 unless said otherwise.
        #[schemars(range(min = 1, max = 60))]
        pub connections: Option<u64>,
        /// Its submissions on a connection that may be unanswered; 100 unless said otherwise.
        #[schemars(range(min = 1, max = 100_000))]
        pub window_in: Option<u64>,
        /// Our commands on a connection that may be unanswered; 32 unless said otherwise.
        #[schemars(range(min = 1, max = 100_000))]
        pub window: Option<u64>,
        /// How long it may take to answer, until the same is sent again.
        pub response_timeout: Option<Time>,
        /// How often it is sent in all; 3 unless said otherwise.
        #[schemars(range(min = 1, max = 100))]
        pub tries: Option<u64>,
    }
} }

/// The version of SGIP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum SgipVersion {
    /// 1.2
    #[serde(rename = "1.2")]
    V12,
    /// 1.3
    #[serde(rename = "1.3")]
    V13,
}

/// How texts with a header are marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum Udhi {
    /// 1
    #[serde(rename = "1")]
    One,
    /// 0x40
    #[serde(rename = "0x40")]
    Bit,
}

queue! {
    /// A GSM core network: an HLR and the MSCs behind it.
    pub struct Gsm {
        /// Its name.
        pub name: String,
        /// `proxy` between MSCs and HLR, or `client` of an HLR that routes short messages; `proxy` unless said otherwise.
        pub role: Option<Role>,
        /// Where MSCs have their HLR; of a proxy, 0.0.0.0:4222 unless said otherwise.
        pub listen: Option<Listen>,
        /// Where the HLR is.
        pub hlr: HostPort,
        /// Its CTRL interface.
        pub ctrl: Option<HostPort>,
        /// How long an answer of its may take.
        pub ctrl_timeout: Option<Time>,
        /// How long MSCs stay connected while the HLR cannot be reached (proxy); 1h unless said otherwise.
        pub hlr_outage: Option<Time>,
        /// Our name.
        #[schemars(length(min = 1, max = 31))]
        pub ipa_name: Option<String>,
        /// The number of our service centre, as the SIMs have it.
        #[schemars(regex(pattern = "^[0-9]{1,20}$"))]
        pub service_centre: String,
        /// Messages that were addressed to another service centre are refused.
        pub only_our_service_centre: Option<bool>,
        /// Refuse what a handset sends unless it is located at the MSC that brings it (proxy with `ctrl`, and on there).
        pub check_sender: Option<bool>,
        /// The number plan's name; the document's default one unless said otherwise.
        pub number_plan: Option<String>,
        /// Subscribers with a message on its way.
        #[schemars(range(min = 1, max = 100_000))]
        pub window: Option<u64>,
        /// How long an MSC may take to say what became of a message.
        pub guard: Option<Time>,
        /// The validity of handsets' messages.
        pub mo_validity: Option<Time>,
        /// How long a handset's repetition is known as one.
        pub repetition: Option<Time>,
        /// Of the times that handsets are shown: `-08:00`, say.
        #[schemars(regex(pattern = "^[+-][0-9]{2}:[0-9]{2}$"))]
        pub utc_offset: Option<String>,
        /// Languages whose national tables (3GPP TS 23.038) the network's handsets support; none unless said otherwise. A UCS-2 text is
        /// sent with them where it takes fewer segments.
        pub languages: Option<Vec<Language>>,
        /// How often the HLR is shown that we live.
        pub keep_alive: Option<Time>,
        /// How long a connection to the HLR may take, and an MSC to say who it is.
        pub connect_timeout: Option<Time>,
        /// Connections of MSCs, in the role of a proxy; 256 unless said otherwise.
        #[schemars(range(min = 1, max = 10_000))]
        pub connections: Option<u64>,
        /// Connections of MSCs from one address; 64 unless said otherwise.
        #[schemars(range(min = 1, max = 10_000))]
        pub connections_per_address: Option<u64>,
        /// Connections that have not said which MSC they are: one more displaces the oldest of them; a quarter of all unless said
        /// otherwise.
        #[schemars(range(min = 1, max = 10_000))]
        pub unidentified_connections: Option<u64>,
    }
}

/// A language with a national table (3GPP TS 23.038 annex A).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "each is a language's English name")]
pub enum Language {
    Turkish,
    Spanish,
    Portuguese,
    Bengali,
    Gujarati,
    Hindi,
    Kannada,
    Malayalam,
    Oriya,
    Punjabi,
    Tamil,
    Telugu,
    Urdu,
}

/// What we are to an HLR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Between it and the MSCs.
    Proxy,
    /// One of its clients.
    Client,
}

section! {
    /// What subscribers dial, and whose numbers are whose.
    pub struct Numbering {
        /// The document of number plans.
        pub document: File,
    }
}
