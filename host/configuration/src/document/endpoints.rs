//! Endpoints: listeners, accounts, SMPP peers, SGIP gateways and GSM core networks.

use super::values::{
    DurationConfig, ErrorClassConfig, FilePathConfig, HostPortConfig, ListenAddressConfig, NetworkConfig,
    PasswordHashConfig, RateConfig, SecretConfig, SizeConfig,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Adds the keys of a peer's queue.
macro_rules! queue_config {
    ($(#[$meta:meta])* pub struct $name:ident { $($own:tt)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        pub struct $name {
            $($own)*
            /// Maximum messages per second sent to the peer. Default: no limit.
            pub rate: Option<RateConfig>,
            /// Maximum burst. Default: a tenth of `rate`.
            #[schemars(range(min = 1, max = 10_000_000))]
            pub burst: Option<u64>,
            /// Maximum number of queued messages; more are refused.
            #[schemars(range(min = 1))]
            pub queue_limit: Option<u64>,
            /// Whether the peer sends DLRs. Default: true.
            pub dlrs: Option<bool>,
            /// How long a DLR is awaited.
            pub dlr_timeout: Option<DurationConfig>,
            /// The treatment of a message without a response.
            pub uncertain: Option<UncertainConfig>,
            /// How long a message can stay uncertain.
            pub uncertain_timeout: Option<DurationConfig>,
            /// Delays between attempts; the last one repeats.
            #[schemars(length(min = 1))]
            pub retry: Option<Vec<DurationConfig>>,
            /// Maximum number of attempts; 0: unlimited within the validity.
            #[schemars(range(max = 10_000))]
            pub max_attempts: Option<u64>,
            /// The account that receives the peer's messages that no route matches.
            pub default_account: Option<String>,
        }
    };
}

/// Adds the dialect keys of an SGIP node.
macro_rules! sgip_dialect {
    ($then:ident! { $(#[$meta:meta])* pub struct $name:ident { $($own:tt)* } }) => {
        $then! {
            $(#[$meta])*
            pub struct $name {
                $($own)*
                /// The protocol version. Default: 1.2.
                pub version: Option<SgipVersionConfig>,
                /// The value of TP_udhi for texts with a user data header. Default: 1.
                pub udhi: Option<UdhiConfig>,
                /// Adds the prefix 86 to user numbers that are sent.
                pub add_86: Option<bool>,
                /// Removes the prefix 86 from user numbers that are received.
                pub strip_86: Option<bool>,
                /// Carries the LinkID in the Reserve field.
                pub link_id: Option<bool>,
                /// Sends texts beyond ASCII as GBK instead of UCS2.
                pub gbk: Option<bool>,
                /// Matches responses by node and counter only, ignoring the time.
                pub loose_match: Option<bool>,
                /// Maximum length of a received command, in octets.
                #[schemars(range(min = 2048, max = 1_000_000))]
                pub max_command_length: Option<u64>,
            }
        }
    };
}

/// A section without shared keys.
macro_rules! plain_config {
    ($(#[$meta:meta])* pub struct $name:ident { $($own:tt)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        pub struct $name {
            $($own)*
        }
    };
}

plain_config! {
    /// A listener for SMPP or SGIP.
    pub struct ListenerConfig {
        /// The listener's name.
        pub name: String,
        /// The listening address.
        pub listen: ListenAddressConfig,
        /// The protocol. Default: `smpp`.
        pub protocol: Option<ProtocolConfig>,
        /// TLS (SMPP only).
        pub tls: Option<ServerTlsConfig>,
        /// Maximum number of connections. Default: 1000.
        #[schemars(range(min = 1, max = 1_000_000))]
        pub connections: Option<u64>,
        /// Maximum number of connections per IP address. Default: 100.
        #[schemars(range(min = 1, max = 1_000_000))]
        pub connections_per_address: Option<u64>,
        /// Maximum number of unbound connections; a new one replaces the oldest. Default: a quarter of `connections`.
        #[schemars(range(min = 1, max = 1_000_000))]
        pub unbound_connections: Option<u64>,
        /// Maximum time until a connection must be bound.
        pub bind_timeout: Option<DurationConfig>,
        /// Idle time after which a session is unbound (SMPP only).
        pub inactivity: Option<DurationConfig>,
        /// Idle time after which an enquire_link is sent (SMPP only).
        pub enquire_interval: Option<DurationConfig>,
        /// Maximum time for the enquire_link_resp (SMPP only).
        pub enquire_timeout: Option<DurationConfig>,
        /// Maximum time for the rest of a PDU (SMPP only).
        pub partial_timeout: Option<DurationConfig>,
        /// Maximum time for an ESME's response (SMPP only).
        pub response_timeout: Option<DurationConfig>,
        /// Idle time after which a connection is closed; `0s` for never (SGIP only).
        pub idle: Option<DurationConfig>,
        /// Ignores login types (SGIP only).
        pub any_login_type: Option<bool>,
    }
}

/// The protocol of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProtocolConfig {
    /// SMPP 3.3, 3.4 and 5.0.
    Smpp,
    /// SGIP 1.2.
    Sgip,
}

plain_config! {
    /// Certificate files of a TLS listener, PEM.
    pub struct ServerTlsConfig {
        /// The certificate chain, leaf first.
        pub certificate: FilePathConfig,
        /// The private key.
        pub key: FilePathConfig,
        /// Certificate authorities of client certificates, which are then mandatory.
        pub client_ca: Option<FilePathConfig>,
    }
}

plain_config! {
    /// An account that submits messages.
    pub struct AccountConfig {
        /// The account's name.
        pub name: String,
        /// The system_id of its binds. Default: `name`.
        #[schemars(length(max = 15))]
        pub system_id: Option<String>,
        /// The hash of the password.
        pub password_hash: PasswordHashConfig,
        /// Allowed bind modes. Default: all.
        pub bind: Option<Vec<BindModeConfig>>,
        /// Networks that it may connect from. Default: any.
        pub networks: Option<Vec<NetworkConfig>>,
        /// Maximum submissions per second over all sessions. Default: no limit.
        pub rate: Option<RateConfig>,
        /// Maximum burst.
        #[schemars(range(min = 1, max = 10_000_000))]
        pub burst: Option<u64>,
        /// Maximum number of unanswered submissions per session. Default: 100.
        #[schemars(range(min = 1, max = 100_000))]
        pub window: Option<u64>,
        /// Maximum number of unanswered deliveries per session. Default: 100.
        #[schemars(range(min = 1, max = 100_000))]
        pub deliver_window: Option<u64>,
        /// Maximum number of sessions, over all protocols. Default: 10.
        #[schemars(range(min = 1, max = 100_000))]
        pub sessions: Option<u64>,
        /// The validity of messages that specify none. Default: 2d.
        pub validity: Option<DurationConfig>,
        /// The source addresses that the account may use.
        pub source: Option<SourceRulesConfig>,
        /// Maximum number of MO messages and DLRs queued for the account. Default: 1000000.
        #[schemars(range(min = 1))]
        pub queue_limit: Option<u64>,
        /// Whether a concatenated message gets one DLR or one per segment. Default: `merged`.
        pub dlrs: Option<DlrGroupingConfig>,
        /// Memory for idempotency keys. The default of 256MiB holds about two million. If it is full, submissions with
        /// new keys are refused until the oldest key is older than `idempotency-retention` of `[engine]`.
        pub idempotency_memory: Option<SizeConfig>,
        /// Whether subscribers can opt out of its messages. Default: true.
        pub opt_out: Option<bool>,
        /// The SGIP settings of an account that is an SP.
        pub sgip: Option<SpConfig>,
        /// The HTTP settings of an account that is a business system.
        pub business: Option<AccountBusinessConfig>,
    }
}

/// An SMPP bind mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BindModeConfig {
    /// Submits only.
    Transmitter,
    /// Receives only.
    Receiver,
    /// Submits and receives.
    Transceiver,
}

/// How DLRs of concatenated messages are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DlrGroupingConfig {
    /// One DLR per message.
    Merged,
    /// One DLR per segment.
    PerSegment,
}

plain_config! {
    /// The source addresses that an account may use.
    pub struct SourceRulesConfig {
        /// Allowed patterns, with `*` as a wildcard. Default: all addresses.
        pub allow: Option<Vec<String>>,
        /// The source address of messages that have none.
        #[schemars(length(max = 20))]
        pub default: Option<String>,
        /// The type of number of the default.
        #[schemars(range(max = 7))]
        pub ton: Option<u64>,
        /// The numbering plan of the default.
        #[schemars(range(max = 18))]
        pub npi: Option<u64>,
    }
}

plain_config! {
    /// The HTTP settings of a business system.
    pub struct AccountBusinessConfig {
        /// Maximum number of segments of a text.
        #[schemars(range(min = 1, max = 255))]
        pub max_segments: Option<u64>,
        /// Maximum number of messages per request.
        #[schemars(range(min = 1, max = 60_000))]
        pub batch: Option<u64>,
        /// How long fetched items are leased until they must be acknowledged.
        pub lease: Option<DurationConfig>,
        /// URL to which MO messages and DLRs are pushed. Without it they must be fetched.
        pub push: Option<PushConfig>,
    }
}

plain_config! {
    /// The push target of MO messages and DLRs.
    pub struct PushConfig {
        /// An http or https URL.
        #[schemars(regex(pattern = "^https?://"))]
        pub url: String,
        /// The format. Default: `json`.
        pub format: Option<PushFormatConfig>,
        /// The key of the signature; either this or `secret-file` is mandatory.
        pub secret: Option<SecretConfig>,
        /// A file that contains the key, instead of `secret`.
        pub secret_file: Option<FilePathConfig>,
        /// Maximum number of concurrent pushes. 1, the usual value, preserves the order of all items.
        #[schemars(range(min = 1, max = 1000))]
        pub window: Option<u64>,
        /// Maximum duration of a push. Default: 10s.
        pub timeout: Option<DurationConfig>,
    }
}

/// The format of pushes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PushFormatConfig {
    /// JSON.
    Json,
    /// XML-RPC.
    XmlRpc,
}

queue_config! {
    /// An SMSC that the appliance connects to by SMPP.
    pub struct PeerConfig {
        /// The peer's name.
        pub name: String,
        /// The peer's address.
        pub address: HostPortConfig,
        /// The system_id that the appliance binds with.
        #[schemars(length(max = 15))]
        pub system_id: Option<String>,
        /// The password that the appliance binds with.
        pub password: Option<SecretConfig>,
        /// A file that contains the password, instead of `password`.
        pub password_file: Option<FilePathConfig>,
        /// The system_type that the appliance binds with.
        pub system_type: Option<String>,
        /// The bind mode. Default: `transceiver`.
        pub bind: Option<BindModeConfig>,
        /// The number of links. Default: 1.
        #[schemars(range(min = 1, max = 256))]
        pub links: Option<u64>,
        /// Maximum number of unanswered messages per link. Default: 10.
        #[schemars(range(min = 1, max = 100_000))]
        pub window: Option<u64>,
        /// The interface_version that the appliance binds with. Default: 3.4.
        pub interface_version: Option<InterfaceVersionConfig>,
        /// Whether the peer accepts TLVs. Default: by its version.
        pub tlvs: Option<bool>,
        /// Whether validity_period is passed on.
        pub pass_validity: Option<bool>,
        /// Idle time after which an enquire_link is sent.
        pub enquire_interval: Option<DurationConfig>,
        /// Maximum time for the enquire_link_resp.
        pub enquire_timeout: Option<DurationConfig>,
        /// Maximum time for the response to a message.
        pub response_timeout: Option<DurationConfig>,
        /// Maximum back-off between connection attempts. Default: 30s.
        pub redial_interval: Option<DurationConfig>,
        /// How the message ids in DLRs differ from those in submit_sm_resp.
        pub message_id: Option<MessageIdFormConfig>,
        /// How long texts are sent. Default: `payload`.
        pub long_text: Option<LongTextConfig>,
        /// Classes of the peer's own error codes, for example `"0x45" = "temporary"`.
        pub error_classes: Option<BTreeMap<String, ErrorClassConfig>>,
        /// The validity of MO messages. Default: 3d.
        pub mo_validity: Option<DurationConfig>,
        /// TLS.
        pub tls: Option<ClientTlsConfig>,
        /// The group; the peers of a group share their DLRs.
        pub group: Option<String>,
    }
}

/// The SMPP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum InterfaceVersionConfig {
    /// SMPP 3.3.
    #[serde(rename = "3.3")]
    V33,
    /// SMPP 3.4.
    #[serde(rename = "3.4")]
    V34,
    /// SMPP 5.0.
    #[serde(rename = "5.0")]
    V50,
}

/// How a message id in a DLR is converted to the one in the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MessageIdFormConfig {
    /// Unchanged.
    AsIs,
    /// Responses use hexadecimal, DLRs decimal.
    HexToDecimal,
    /// Responses use decimal, DLRs hexadecimal.
    DecimalToHex,
    /// Leading zeros are ignored.
    StripZeros,
    /// Case is ignored.
    FoldCase,
}

/// How long texts are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LongTextConfig {
    /// In one PDU, with message_payload.
    Payload,
    /// In segments with a user data header.
    Udh,
    /// In segments with SAR TLVs.
    Sar,
}

/// The treatment of a message without a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UncertainConfig {
    /// The message is sent again; the subscriber may get it twice.
    SendAgain,
    /// The peer is asked with query_sm (SMPP only).
    Query,
    /// The message waits for a DLR.
    AwaitDlr,
}

plain_config! {
    /// The TLS settings of a connection to a peer.
    pub struct ClientTlsConfig {
        /// Certificate authorities of the peer. Default: those of the system.
        pub ca: Option<FilePathConfig>,
        /// The name in the peer's certificate. Default: the host of `address`.
        pub server_name: Option<String>,
        /// The client certificate chain; needs `key`.
        pub certificate: Option<FilePathConfig>,
        /// The private key of the client certificate.
        pub key: Option<FilePathConfig>,
    }
}

sgip_dialect! { queue_config! {
    /// An SGIP gateway (SMG) for which the appliance is the SP.
    pub struct GatewayConfig {
        /// The gateway's name.
        pub name: String,
        /// The gateway's address.
        pub address: HostPortConfig,
        /// The node number of the appliance.
        #[schemars(range(max = 4_294_967_295_u64))]
        pub node: u64,
        /// The login name that the appliance uses.
        #[schemars(length(max = 16))]
        pub login_name: Option<String>,
        /// The password that the appliance uses.
        pub login_password: Option<SecretConfig>,
        /// A file that contains the password, instead of `login-password`.
        pub login_password_file: Option<FilePathConfig>,
        /// The login name that the gateway uses at the appliance's listener.
        #[schemars(length(max = 16))]
        pub inbound_login_name: Option<String>,
        /// The password that the gateway uses at the appliance's listener.
        pub inbound_login_password: Option<SecretConfig>,
        /// A file that contains the password, instead of `inbound-login-password`.
        pub inbound_login_password_file: Option<FilePathConfig>,
        /// Networks that the gateway may connect from. Default: any.
        pub networks: Option<Vec<NetworkConfig>>,
        /// Number of connections to the gateway. Default: 1.
        #[schemars(range(min = 1, max = 60))]
        pub connections: Option<u64>,
        /// Maximum number of connections from the gateway. Default: 10.
        #[schemars(range(min = 1, max = 10_000))]
        pub inbound_connections: Option<u64>,
        /// Maximum number of unanswered messages per connection. Default: 32.
        #[schemars(range(min = 1, max = 100_000))]
        pub window: Option<u64>,
        /// Maximum time for a response, after which the command is sent again.
        pub response_timeout: Option<DurationConfig>,
        /// Maximum number of times that a command is sent. Default: 3.
        #[schemars(range(min = 1, max = 100))]
        pub tries: Option<u64>,
        /// Maximum time for the response to a Bind.
        pub bind_timeout: Option<DurationConfig>,
        /// The validity of MO messages.
        pub mo_validity: Option<DurationConfig>,
        /// Classes of the gateway's own result codes.
        pub error_classes: Option<BTreeMap<String, ErrorClassConfig>>,
        /// Values of Submit fields that the message does not set.
        pub fields: Option<SgipFieldsConfig>,
    }
} }

plain_config! {
    /// Fields of a Submit.
    pub struct SgipFieldsConfig {
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

sgip_dialect! { plain_config! {
    /// The SGIP settings of an account (SP) for which the appliance is the gateway.
    pub struct SpConfig {
        /// The login name of the SP, used with the account's password. Default: the account's name.
        #[schemars(length(max = 16))]
        pub inbound_login_name: Option<String>,
        /// The node number of the appliance.
        #[schemars(range(max = 4_294_967_295_u64))]
        pub node: u64,
        /// The address to which Deliver and Report are sent.
        pub address: Option<HostPortConfig>,
        /// The login name that the appliance uses.
        #[schemars(length(max = 16))]
        pub login_name: Option<String>,
        /// The password that the appliance uses.
        pub login_password: Option<SecretConfig>,
        /// A file that contains the password, instead of `login-password`.
        pub login_password_file: Option<FilePathConfig>,
        /// Maximum number of connections from the SP. Default: 10.
        #[schemars(range(min = 1, max = 10_000))]
        pub inbound_connections: Option<u64>,
        /// Number of connections to the SP. Default: 1.
        #[schemars(range(min = 1, max = 60))]
        pub connections: Option<u64>,
        /// Maximum number of unanswered submissions per connection. Default: 100.
        #[schemars(range(min = 1, max = 100_000))]
        pub inbound_window: Option<u64>,
        /// Maximum number of unanswered commands to the SP per connection. Default: 32.
        #[schemars(range(min = 1, max = 100_000))]
        pub window: Option<u64>,
        /// Maximum time for a response, after which the command is sent again.
        pub response_timeout: Option<DurationConfig>,
        /// Maximum number of times that a command is sent. Default: 3.
        #[schemars(range(min = 1, max = 100))]
        pub tries: Option<u64>,
    }
} }

/// The SGIP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum SgipVersionConfig {
    /// SGIP 1.2.
    #[serde(rename = "1.2")]
    V12,
    /// SGIP 1.3.
    #[serde(rename = "1.3")]
    V13,
}

/// The value of TP_udhi for texts with a user data header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum UdhiConfig {
    /// The value 1.
    #[serde(rename = "1")]
    One,
    /// The value 0x40.
    #[serde(rename = "0x40")]
    Bit,
}

queue_config! {
    /// A GSM core network: an HLR and its MSCs.
    pub struct GsmConfig {
        /// The core network's name.
        pub name: String,
        /// The role: `proxy` between MSCs and HLR, or `client` of an HLR that routes short messages. Default: `proxy`.
        pub role: Option<GsmRoleConfig>,
        /// The listening address for MSCs (proxy only). Default: 0.0.0.0:4222.
        pub listen: Option<ListenAddressConfig>,
        /// The HLR's address.
        pub hlr: HostPortConfig,
        /// The address of the HLR's CTRL interface.
        pub ctrl: Option<HostPortConfig>,
        /// Maximum time for a response of the CTRL interface.
        pub ctrl_timeout: Option<DurationConfig>,
        /// How long MSCs stay connected while the HLR is unreachable (proxy only). Default: 1h.
        pub hlr_outage: Option<DurationConfig>,
        /// The IPA name of the appliance.
        #[schemars(length(min = 1, max = 31))]
        pub ipa_name: Option<String>,
        /// The number of the appliance's service centre, as configured on SIMs.
        #[schemars(regex(pattern = "^[0-9]{1,20}$"))]
        pub service_centre: String,
        /// Refuses MO messages that are addressed to another service centre.
        pub only_our_service_centre: Option<bool>,
        /// Refuses MO messages whose sender is not registered at the MSC that forwards them. Default: on for a proxy
        /// with `ctrl`.
        pub check_sender: Option<bool>,
        /// The name of the number plan. Default: the document's default plan.
        pub number_plan: Option<String>,
        /// Maximum number of subscribers with a message in flight.
        #[schemars(range(min = 1, max = 100_000))]
        pub window: Option<u64>,
        /// Maximum time for an MSC's response to an MT message.
        pub response_timeout: Option<DurationConfig>,
        /// The validity of MO messages.
        pub mo_validity: Option<DurationConfig>,
        /// How long a repeated MO message is recognised.
        pub repetition_window: Option<DurationConfig>,
        /// The UTC offset of timestamps shown by handsets, for example `-08:00`.
        #[schemars(regex(pattern = "^[+-][0-9]{2}:[0-9]{2}$"))]
        pub utc_offset: Option<String>,
        /// Languages whose national tables (3GPP TS 23.038) the handsets support. A UCS-2 text is sent with such a
        /// table if that saves segments. Default: none.
        pub languages: Option<Vec<LanguageConfig>>,
        /// The interval of keep-alives to the HLR.
        pub keep_alive: Option<DurationConfig>,
        /// Maximum time to connect to the HLR, and for an MSC to identify itself.
        pub connect_timeout: Option<DurationConfig>,
        /// Maximum number of MSC connections (proxy only). Default: 256.
        #[schemars(range(min = 1, max = 10_000))]
        pub connections: Option<u64>,
        /// Maximum number of MSC connections per IP address. Default: 64.
        #[schemars(range(min = 1, max = 10_000))]
        pub connections_per_address: Option<u64>,
        /// Maximum number of unidentified MSC connections; a new one replaces the oldest. Default: a quarter of
        /// `connections`.
        #[schemars(range(min = 1, max = 10_000))]
        pub unidentified_connections: Option<u64>,
    }
}

/// A language with a national table (3GPP TS 23.038 annex A).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "each is a language's English name")]
pub enum LanguageConfig {
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

/// The role of the appliance towards an HLR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GsmRoleConfig {
    /// A proxy between the MSCs and the HLR.
    Proxy,
    /// A client of the HLR.
    Client,
}

plain_config! {
    /// The number plans.
    pub struct NumberingConfig {
        /// The number plan document.
        pub document: FilePathConfig,
    }
}
