/// Whose shared state it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedScope {
    /// That of the node's own partition. Its leader writes it.
    Partition,
    /// What all partitions share. It is that of partition 0.
    Cluster,
}
