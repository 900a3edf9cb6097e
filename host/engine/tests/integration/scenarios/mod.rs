//! Scenarios of waiting messages: resolver, delivery policy, serial delivery, alerts, queue actions, pool numbers.

mod day_quotas;
mod decision_limits;
mod delivery_policy;
mod fixture;
mod flush;
mod lookups;
mod lost_content;
mod pace;
mod pace_limits;
mod peer_groups;
mod quarantine;
mod queue_actions;
mod receipts;
mod remote_peers;
mod replace_if_present;
mod requery;
mod resolver;
mod restarts;
mod sender_numbers;
mod serial_delivery;
mod submissions;
mod subscriber_reachability;
mod subscriber_survey;
