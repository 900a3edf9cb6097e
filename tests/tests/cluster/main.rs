//! Two appliances and three members of etcd: one appliance dies, the other continues, and nothing that was answered is
//! lost.

mod addresses;
mod all_partitions;
mod backup;
mod core_networks;
mod gateways;
mod homes;
mod nodes;
mod partitions;
mod passed_on;
mod pulled_plugins;
mod shared_state;
mod sinks;
mod supervision;
mod take_over;
mod three_machines;
mod versions;
