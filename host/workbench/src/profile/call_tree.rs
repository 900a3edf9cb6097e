//! The sampled stacks as a call tree, with the samples of each function.

use hooks::{Profile, ProfiledFrame};
use std::collections::BTreeMap;

/// A function in the context of its callers.
#[derive(Debug, Default)]
pub(super) struct CallTree {
    /// Samples in the function, or in functions that it called.
    pub(super) total: u64,
    /// Samples in the function itself.
    pub(super) own: u64,
    /// The functions that it called. The order of the names makes drawings comparable.
    pub(super) callees: BTreeMap<FunctionName, CallTree>,
    /// The samples by source line.
    source_lines: BTreeMap<String, u64>,
}

/// A function in a profile.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FunctionName {
    pub(super) name: String,
    pub(super) is_host: bool,
}

impl FunctionName {
    pub(super) fn of(frame: &ProfiledFrame) -> Self {
        Self { name: frame.function.clone(), is_host: frame.is_host }
    }

    /// The name for people. A host function is marked, because a function of the plugin may have the same name.
    pub(super) fn text(&self) -> String {
        if self.is_host { format!("host: {}", self.name) } else { self.name.clone() }
    }
}

impl CallTree {
    /// The tree of a profile; its root represents all calls.
    pub(super) fn of(profile: &Profile) -> Self {
        let mut root = Self::default();
        for stack in &profile.stacks {
            let mut node = &mut root;
            node.total += stack.samples;
            for frame in &stack.frames {
                node = node.callees.entry(FunctionName::of(frame)).or_default();
                node.total += stack.samples;
                if let Some(source) = &frame.source {
                    *node.source_lines.entry(source.clone()).or_default() += stack.samples;
                }
            }
            node.own += stack.samples;
        }
        root
    }

    /// The source line with the most samples.
    pub(super) fn place(&self) -> Option<&str> {
        self.source_lines.iter().max_by_key(|(_, samples)| **samples).map(|(place, _)| place.as_str())
    }

    /// The depth of the tree in functions, without the root.
    pub(super) fn depth(&self) -> usize {
        self.callees.values().map(|callee| callee.depth() + 1).max().unwrap_or(0)
    }

    /// The stacks as text, in the format that `flamegraph.pl`, `inferno` and `speedscope` read: a line for each stack, its
    /// functions, outermost first, with semicolons between them, and its samples.
    pub(super) fn folded(&self) -> String {
        fn add(node: &CallTree, stack: &mut Vec<String>, text: &mut String) {
            if node.own > 0 {
                text.push_str(&format!("{} {}\n", stack.join(";"), node.own));
            }
            for (name, callee) in &node.callees {
                // The separators of the format.
                stack.push(name.text().replace(';', ",").replace(['\n', '\r'], " "));
                add(callee, stack, text);
                stack.pop();
            }
        }
        let mut text = String::new();
        add(self, &mut Vec::new(), &mut text);
        text
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use hooks::ProfiledStack;

    /// A stack of functions with their source lines; a function whose name starts with `host.` belongs to the host.
    pub(crate) fn profiled(stack: &[(&str, &str)], samples: u64) -> ProfiledStack {
        let frame = |(function, source): &(&str, &str)| ProfiledFrame {
            function: function.trim_start_matches("host.").to_owned(),
            source: Some((*source).to_owned()).filter(|source| !source.is_empty()),
            is_host: function.starts_with("host."),
        };
        ProfiledStack { frames: stack.iter().map(frame).collect(), samples }
    }

    pub(crate) fn sample() -> Profile {
        let stacks = vec![
            profiled(&[("route", "lib.rs:1"), ("find", "lib.rs:7")], 6),
            profiled(&[("route", "lib.rs:2")], 3),
            profiled(&[("route", "lib.rs:1"), ("find", "lib.rs:8"), ("host.peers.state", "")], 2),
            profiled(&[("route", "lib.rs:1"), ("a;b<c>&\"d\"", "")], 1),
        ];
        Profile { stacks, samples: 12, ..Profile::default() }
    }

    #[test]
    fn stacks_with_the_same_functions_are_one() {
        let tree = CallTree::of(&sample());
        assert_eq!((tree.total, tree.depth()), (12, 3));
        let route = tree.callees.values().next().unwrap();
        assert_eq!((route.total, route.own, route.place()), (12, 3, Some("lib.rs:1")));
        assert_eq!(
            tree.folded(),
            "route 3\nroute;a,b<c>&\"d\" 1\nroute;find 6\nroute;find;host: peers.state 2\n"
        );
    }
}
