//! Types of the HTTP API: shared by the daemon, its clients (the command line and the console) and the OpenAPI document.
#![forbid(unsafe_code)]

mod appliance_image;
mod attention;
mod bindings;
mod business;
mod cluster;
mod configuration;
mod core_networks;
mod erasures;
mod event_sinks;
mod hook_calls;
mod hooks;
mod ledger;
mod messages;
mod metrics_history;
pub mod name_schemas;
mod names;
pub mod openapi;
mod operation;
mod overview;
mod pace_buckets;
mod partitions;
mod peer_test;
mod plugin_peers;
mod plugin_sources;
mod plugins;
mod policy_try;
mod pools;
mod problem;
mod quality;
mod quarantine;
mod queue_actions;
mod readiness;
mod recent_metrics;
mod records;
mod refusals;
mod replay_report;
mod replays;
mod subscribers;
mod tables;
mod tenants;
mod trace;
mod traffic;
mod traffic_map;
mod users;

pub use appliance_image::{
    FactoryResetRequest, ImageStatusView, OperateResult, StateRetention, SystemSlotView,
};
pub use attention::{AttentionSeverity, AttentionSubject, AttentionSubjectKind, AttentionView};
pub use bindings::{
    ActivationRequest, Binding, BindingChange, BindingRecord, BindingRequest, CandidateRecordView,
    CounterGrant, CounterWindow, DnsGrant, Grants, HookRollbackRequest, InstanceUse, OnFault,
    PromotionRequest, QualityGrant, Tolerance, TrialModeView, TrialRequest,
};
pub use business::{BusinessPushView, BusinessRequestsView, BusinessView};
pub use cluster::{ClusterNodeView, ClusterRole, ClusterView, EtcdMemberView, PartitionView, RecordFormats};
pub use configuration::{
    ConfigChangeKindView, ConfigChangeView, ConfigConfirmRequest, ConfigDifferenceView,
    ConfigRollbackRequest, ConfigVersionPageView, ConfigVersionSummaryView, ConfigVersionView,
    ConfigurationChangeResult, ConfigurationCheck, ConfigurationDiff, CurrentConfiguration, ManagedBy,
    UnconfirmedVersionView,
};
pub use core_networks::{
    CoreConnectionView, CoreNetworkFaultView, CoreNetworkMo, CoreNetworkMt, CoreNetworkView, HlrQuestions,
};
pub use erasures::{ContentErasureView, NumberErasureRequest, NumberErasureView};
pub use event_sinks::EventSinkView;
pub use hook_calls::{CallSumView, HookCallsIntervalView, HookCallsView};
pub use hooks::{
    AnswerDifference, CandidateStateView, Comparison, FaultCase, FaultExample, FaultyVersion, HookEvent,
    HookStateView, PluginCountsView, PluginFaultCounts, PolicyReferenceKind, StackFrame, UnknownReference,
};
pub use ledger::{BalanceChangeView, BalanceView, BalancesView, LedgerChangeRequest, LedgerOperationView};
pub use messages::{AcceptedMessage, MessageFilter, MessagePageView, MessageRowView, TestMessageRequest};
pub use metrics_history::{
    HistoryEventKind, HistoryEventView, HistoryRange, HistorySampleView, MetricsHistoryView,
};
pub use names::{
    BindMode, CoreNetworkFaultKind, CoreNetworkRole, LinkBlocker, LinkPhase, LinkRole, LookupResultView,
    MessageStateView, PresenceSign, PumpState, ReadinessStatus, SubscriberStateView, TestStepKind,
};
pub use operation::{
    DrainOptions, DrainStateView, Health, LogLevelRequest, LogLevelView, RemainingMessagesView,
};
pub use overview::{BlockCause, LinkView, LinksSummaryView, QueueView, StatusTotals, StatusView};
pub use pace_buckets::PaceBucketView;
pub use partitions::{
    AllLinksView, AllQueuesView, AllStatusesView, LinksAnswer, MissingPartitionView, PartitionRow,
    QueuesAnswer, StatusAnswer,
};
pub use peer_test::{PeerTestView, TestStepView};
pub use plugin_peers::{PeerCallbacksView, PluginPeerView};
pub use plugin_sources::{
    OutdatedPluginView, PluginOrigin, PluginPullRequest, PluginSourceView, PluginTagsView,
};
pub use plugins::PluginVersionView;
pub use policy_try::{
    MessageCase, PolicyTryRequest, PolicyTryView, TriedDecisionView, TriedHostCallView, TriedLegView,
    TriedMessageView,
};
pub use pools::{
    NO_STATE, PoolCountsView, PoolEntryNumberView, PoolEntryView, PoolEventOutcome, PoolEventRequest,
    PoolEventResult, PoolEventResults, PoolEventsRequest, PoolGapView, PoolHistoryPage, PoolImportErrorView,
    PoolImportResult, PoolNumberView, PoolNumbersPage, PoolRemovedNumberView, PoolRowView,
    PoolSettingsRequest, PoolSettingsView, PoolView, PoolsView,
};
pub use problem::{FieldProblem, Problem, ProblemReason};
pub use quality::{ConversionsRequest, ConversionsResult, PeerFiguresView, RefusedAttempts};
pub use quarantine::{QuarantinePageView, QuarantineResult, QuarantineSelection, QuarantinedView};
pub use queue_actions::{
    QueueActionKindView, QueueActionPreview, QueueActionRequest, QueueActionSample, QueueActionScopeView,
    QueueActionStateView, QueueActionView, SettleUncertainRequest, SettleUncertainResult, UncertainPageView,
    UncertainRemedy, UncertainView,
};
pub use readiness::{NotReady, Readiness};
pub use recent_metrics::{MetricsSampleView, RecentMetricsView};
pub use records::{
    ArchivePumpView, FinishedMessageView, FinishedPriceView, HistoryPageView, LatencyView, OptOutChange,
    OptOutView, OptOutsView, OrphanDlrView, OrphanDlrsView, ResendDlrsRequest, ResendDlrsResult, SpanView,
    StatisticsCountsView, StatisticsView,
};
pub use refusals::{RefusalCountView, RefusalsView, RefusedSubmissionView};
pub use replay_report::{
    AccountPrice, DifferenceExample, DifferenceGroup, InexactReason, PriceReport, PriceSums, RemainingGroups,
    ReplayOutcome, ReplayReport, RequestDifference, Throughput,
};
pub use replays::{
    PluginVersionName, ReplayHook, ReplayPhase, ReplayProgress, ReplayRequest, ReplayStart, ReplayStateView,
    TimeValue,
};
pub use subscribers::{SubscriberQueueView, SubscriberView, SubscriberWakeResult};
pub use tables::{LongestKeyView, TableFillResult, TableKind, TableLookUpView, TableView};
pub use tenants::{AccountInfo, DayQuotaView, TenantView};
pub use trace::{
    AttemptOutcome, AttemptView, ExplainRequest, ExplanationView, LookupView, PriceView, RoutingView,
    ScreeningView, SettleMessageRequest, StepView, TraceView,
};
pub use traffic::{HookTrafficView, SubmitterTrafficView, TrafficCounts, TrafficFlowView, TrafficView};
pub use traffic_map::{TrafficLineView, TrafficMapView, TrafficNodeView};
pub use users::{
    AuditEntry, AuditOutcome, AuditPage, AuditRecord, CreatedTokenView, LoginRequest, PasswordRequest,
    Permission, Role, TokenInfo, TokenRequest, User, UserChangeRequest, UserRequest, WhoamiView,
};
