/// Scope of shared state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedScope {
    /// State of the node's own partition; written by its leader.
    Partition,
    /// State of all partitions; written by the leader of partition 0.
    Cluster,
}
