//! A page of the manual, taken apart.
//!
//! Commands stand in blocks marked `sh`, with a second word for how they are run; a block marked `text` after one is what it
//! prints: those lines, in that order, others between them, `…` for anything.

use crate::house;
use anyhow::{Context, Result, bail, ensure};

/// Commands, and what they print.
#[derive(Debug)]
pub struct Block {
    /// What becomes of them, as the page is marked: `sh`, `sh build` ...
    pub mark: String,
    /// The commands.
    pub script: String,
    /// What of their output the page shows.
    pub printed: String,
}

/// What a page consists of, as far as it is no prose.
#[derive(Debug, Default)]
pub struct Page {
    /// The commands, in their order.
    pub blocks: Vec<Block>,
    /// The pieces of configuration, one after the other.
    pub configuration: String,
    /// What is set as code within the prose.
    pub spans: Vec<String>,
}

impl Page {
    /// Reads a page of the source tree, which marks commands in these ways.
    ///
    /// # Errors
    /// If a part of it is marked otherwise.
    pub fn read(path: &str, marks: &[&str]) -> Result<Self> {
        let text = std::fs::read_to_string(house::root().join(path)).with_context(|| path.to_owned())?;
        Self::parse(&text, marks).with_context(|| path.to_owned())
    }

    fn parse(text: &str, marks: &[&str]) -> Result<Self> {
        let (mut page, mut prose) = (Self::default(), String::new());
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            ensure!(!line.starts_with("    "), "commands are in a block that says what they are: {line}");
            let Some(mark) = line.strip_prefix("```") else {
                prose.push_str(line);
                prose.push(' ');
                continue;
            };
            let inside: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            let inside = inside.join("\n") + "\n";
            match mark {
                _ if marks.contains(&mark) => {
                    page.blocks.push(Block { mark: mark.to_owned(), script: inside, printed: String::new() });
                }
                "text" => {
                    let block =
                        page.blocks.last_mut().context("what is printed stands before any command")?;
                    block.printed.push_str(&inside);
                }
                "toml" => {
                    page.configuration.push('\n');
                    page.configuration.push_str(&inside);
                }
                "ini" | "rust" => {}
                other => bail!("there is a block marked {other:?}, and nobody knows what to do with it"),
            }
        }
        page.spans = prose.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        Ok(page)
    }

    /// The commands that are run by nobody here, without their remarks.
    pub fn elsewhere(&self) -> impl Iterator<Item = &str> {
        let blocks = self.blocks.iter().filter(|block| block.mark == "sh elsewhere");
        blocks
            .flat_map(|block| block.script.lines())
            .map(|line| line.split(" #").next().unwrap_or(line).trim())
    }

    /// The commands of ours that are named in passing, each of `one|other` as a command of its own, and those for another
    /// machine. `COMMAND` stands for any of them.
    pub fn named(&self) -> Vec<String> {
        let mut named: Vec<String> = self.elsewhere().map(str::to_owned).collect();
        let machine = self.blocks.iter().filter(|block| block.mark == "sh machine");
        let lines = machine.flat_map(|block| block.script.lines());
        named.extend(lines.filter(|line| line.starts_with("switchyard ")).map(str::to_owned));
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

/// Whether a line is as the page has it.
fn is_like(line: &str, pattern: &str) -> bool {
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

/// The first line of the page's that was not printed where it should have been.
pub fn missing<'a>(printed: &str, wanted: &'a str) -> Option<&'a str> {
    let mut lines = printed.lines();
    wanted.lines().find(|pattern| !lines.any(|line| is_like(line, pattern)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_printed_is_noticed() {
        assert!(is_like("a b c", "a…c") && is_like("a", "a") && is_like("abc", "…"));
        assert!(!is_like("a b c", "a…d") && !is_like("ab", "a") && !is_like("b", "a…"));
        assert_eq!(missing("one\ntwo\nthree\n", "one\nthree\n"), None);
        assert_eq!(missing("one\ntwo\n", "two\none\n"), Some("one"));
    }

    #[test]
    fn a_page_is_taken_apart() {
        let text = "Say `switchyard man\nDIR` or `x`.\n```sh\na\n```\n```text\nb\n```\n```sh elsewhere\ncargo xtask test  # slow\n```\n\
                    `switchyard sms send|log`\n```toml\nk = 1\n```\n";
        let page = Page::parse(text, &["sh", "sh elsewhere"]).unwrap();
        assert_eq!((page.blocks.len(), page.blocks[0].script.as_str()), (2, "a\n"));
        assert_eq!((page.blocks[0].printed.as_str(), page.blocks[1].mark.as_str()), ("b\n", "sh elsewhere"));
        assert_eq!(page.configuration, "\nk = 1\n");
        let named = ["cargo xtask test", "switchyard man DIR", "switchyard sms log", "switchyard sms send"];
        assert_eq!(page.named(), named);
        assert!(Page::parse("so:\n\n    rm -r x\n", &["sh"]).is_err(), "nobody runs this");
        assert!(Page::parse("```bash\nx\n```\n", &["sh"]).is_err(), "nobody knows what this is");
        assert!(Page::parse("```text\nx\n```\n", &["sh"]).is_err(), "nobody has printed this");
    }
}
