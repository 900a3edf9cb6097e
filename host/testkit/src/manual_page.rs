//! Parser for pages of the manual.
//!
//! Commands are in blocks marked `sh`; a second word selects how they are run. A `text` block that follows is the
//! expected output: these lines in this order, possibly with others in between; `…` matches any text.

use anyhow::{Context, Result, bail, ensure};

/// A block of commands and their expected output.
#[derive(Debug)]
pub struct CommandBlock {
    /// The mark of the block: `sh`, `sh build` …
    pub mark: String,
    /// The commands.
    pub script: String,
    /// Expected output.
    pub printed: String,
}

/// The parts of a page that are not prose.
#[derive(Debug, Default)]
pub struct ManualPage {
    /// Command blocks in order.
    pub blocks: Vec<CommandBlock>,
    /// All configuration blocks, concatenated.
    pub configuration: String,
    /// Code spans in the prose.
    pub spans: Vec<String>,
}

impl ManualPage {
    /// Reads a page of the source tree; `marks` are the allowed marks of command blocks.
    ///
    /// # Errors
    /// If a block has another mark.
    pub fn read(path: &str, marks: &[&str]) -> Result<Self> {
        let text = std::fs::read_to_string(workspace::root().join(path)).with_context(|| path.to_owned())?;
        Self::parse(&text, marks).with_context(|| path.to_owned())
    }

    fn parse(text: &str, marks: &[&str]) -> Result<Self> {
        let (mut page, mut prose) = (Self::default(), String::new());
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            ensure!(!line.starts_with("    "), "indented code block; use a marked block: {line}");
            let Some(mark) = line.strip_prefix("```") else {
                prose.push_str(line);
                prose.push(' ');
                continue;
            };
            let inside: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            let inside = inside.join("\n") + "\n";
            match mark {
                _ if marks.contains(&mark) => {
                    page.blocks.push(CommandBlock {
                        mark: mark.to_owned(),
                        script: inside,
                        printed: String::new(),
                    });
                }
                "text" => {
                    let block = page.blocks.last_mut().context("output block before any command block")?;
                    block.printed.push_str(&inside);
                }
                "toml" => {
                    page.configuration.push('\n');
                    page.configuration.push_str(&inside);
                }
                "ini" | "rust" | "json" | "csv" => {}
                other => bail!("unknown block mark {other:?}"),
            }
        }
        page.spans = prose.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        Ok(page)
    }

    /// The commands in `sh elsewhere` blocks, without their comments.
    pub fn commands_not_run(&self) -> impl Iterator<Item = &str> {
        let blocks = self.blocks.iter().filter(|block| block.mark == "sh elsewhere");
        blocks
            .flat_map(|block| block.script.lines())
            .map(|line| line.split(" #").next().unwrap_or(line).trim())
    }

    /// Commands of ours that the page mentions but does not run, including commands for another machine. Each
    /// alternative of `one|other` is a separate command. `COMMAND` stands for any command.
    pub fn named_commands(&self) -> Vec<String> {
        let mut named: Vec<String> = self.commands_not_run().map(str::to_owned).collect();
        let machine = self.blocks.iter().filter(|block| matches!(&*block.mark, "sh machine" | "sh cluster"));
        let lines = machine.flat_map(|block| block.script.lines());
        let commands = lines.filter(|line| line.starts_with("switchyard "));
        named.extend(commands.map(|line| line.split(" | ").next().unwrap_or(line).to_owned()));
        for span in &self.spans {
            if !span.starts_with("switchyard ") && !span.starts_with("cargo xtask ") {
                continue;
            }
            let mut ways = vec![String::new()];
            for word in span.split_whitespace().filter(|word| *word != "COMMAND") {
                let joined = |way: &String| word.split('|').map(move |one| format!("{way} {one}")).collect();
                ways = ways.iter().flat_map(|way| -> Vec<String> { joined(way) }).collect();
            }
            named.extend(ways.iter().map(|way| way.trim().to_owned()));
        }
        named.sort();
        named.dedup();
        named
    }
}

/// Whether a line of output matches a line of the page.
fn line_matches(line: &str, pattern: &str) -> bool {
    let mut pieces = pattern.split('…');
    let Some(mut rest) = pieces.next().and_then(|first| line.strip_prefix(first)) else { return false };
    let pieces: Vec<&str> = pieces.collect();
    let Some((last, between)) = pieces.split_last() else { return rest.is_empty() };
    for piece in between {
        match rest.split_once(piece) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// The first line of the page that is missing in the output.
pub fn missing_line<'a>(printed: &str, wanted: &'a str) -> Option<&'a str> {
    let mut lines = printed.lines();
    wanted.lines().find(|pattern| !lines.any(|line| line_matches(line, pattern)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_output_is_detected() {
        assert!(line_matches("a b c", "a…c") && line_matches("a", "a") && line_matches("abc", "…"));
        assert!(!line_matches("a b c", "a…d") && !line_matches("ab", "a") && !line_matches("b", "a…"));
        assert_eq!(missing_line("one\ntwo\nthree\n", "one\nthree\n"), None);
        assert_eq!(missing_line("one\ntwo\n", "two\none\n"), Some("one"));
    }

    #[test]
    fn a_page_is_parsed() {
        let text = "Say `switchyard man\nDIR` or `x`.\n```sh\na\n```\n```text\nb\n```\n```sh elsewhere\ncargo xtask test  # slow\n```\n\
                    `switchyard sms send|log`\n```toml\nk = 1\n```\n";
        let page = ManualPage::parse(text, &["sh", "sh elsewhere"]).unwrap();
        assert_eq!((page.blocks.len(), page.blocks[0].script.as_str()), (2, "a\n"));
        assert_eq!((page.blocks[0].printed.as_str(), page.blocks[1].mark.as_str()), ("b\n", "sh elsewhere"));
        assert_eq!(page.configuration, "\nk = 1\n");
        let named = ["cargo xtask test", "switchyard man DIR", "switchyard sms log", "switchyard sms send"];
        assert_eq!(page.named_commands(), named);
        assert!(ManualPage::parse("so:\n\n    rm -r x\n", &["sh"]).is_err(), "indented block");
        assert!(ManualPage::parse("```bash\nx\n```\n", &["sh"]).is_err(), "unknown mark");
        assert!(ManualPage::parse("```text\nx\n```\n", &["sh"]).is_err(), "output without a command");
    }
}
