//! The flame graph: one SVG without scripts, fonts or other files. The width of a frame is its share of the samples; a
//! function is drawn above its caller. Browsers show the title of a frame, with the figures, under the pointer.

use super::call_tree::{CallTree, FunctionName};
use super::shorten;
use cli::format::{number, plural};
use std::fmt::Write as _;

/// Measures in pixels.
const WIDTH: f64 = 1200.0;
const ROW: f64 = 18.0;
const MARGIN: f64 = 10.0;
/// Space above the frames, for the title.
const HEAD: f64 = 44.0;
/// Width of a character, about.
const CHARACTER: f64 = 6.7;
/// A narrower frame cannot be seen.
const MIN_FRAME_WIDTH: f64 = 0.2;

/// Draws the tree under a title.
pub(super) fn draw(tree: &CallTree, title: &str) -> String {
    let rows = tree.depth() as f64 + 1.0;
    let height = HEAD + rows * ROW + MARGIN;
    let mut drawing = Drawing { svg: String::new(), all: tree.total.max(1), floor: height - MARGIN };
    let title = escape(title);
    let _ = write!(
        drawing.svg,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\n\
         <title>{title}</title>\n\
         <style>text {{ font: 11px monospace; fill: #111 }} rect {{ stroke: #fff; stroke-width: .5 }} \
         g:hover rect {{ stroke: #111 }}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"{MARGIN}\" y=\"17\">{title}</text>\n\
         <text x=\"{MARGIN}\" y=\"33\">Width: share of the samples. Blue: functions of the host. The title of a frame has its figures.</text>\n"
    );
    let root = FunctionName { name: "all calls".to_owned(), is_host: false };
    drawing.frame(&root, tree, MARGIN, 0);
    drawing.svg.push_str("</svg>\n");
    drawing.svg
}

struct Drawing {
    svg: String,
    /// All samples.
    all: u64,
    /// The lower edge of the lowest frame.
    floor: f64,
}

impl Drawing {
    /// Draws a function and the functions that it called.
    fn frame(&mut self, name: &FunctionName, node: &CallTree, x: f64, level: usize) {
        let all = self.all as f64;
        let share = |samples: u64| samples as f64 / all;
        let width = share(node.total) * (WIDTH - 2.0 * MARGIN);
        if width < MIN_FRAME_WIDTH {
            return;
        }
        let y = self.floor - (level as f64 + 1.0) * ROW;
        let text = name.text();
        let place = node.place().map(|place| format!(" ({place})")).unwrap_or_default();
        let title = format!(
            "{text}{place}: {}, {:.1} %; {} in itself, {:.1} %",
            plural(node.total, "sample", "samples"),
            share(node.total) * 100.0,
            number(node.own),
            share(node.own) * 100.0
        );
        let _ = write!(
            self.svg,
            "<g><title>{}</title><rect x=\"{x:.2}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{ROW}\" fill=\"{}\"/>",
            escape(&title),
            colour(name, level)
        );
        let characters = ((width - 6.0) / CHARACTER).max(0.0) as usize;
        if characters >= 3 {
            let _ = write!(
                self.svg,
                "<text x=\"{:.2}\" y=\"{:.1}\">{}</text>",
                x + 3.0,
                y + 13.0,
                escape(&shorten(&text, characters))
            );
        }
        self.svg.push_str("</g>\n");
        let mut left = x;
        for (name, callee) in &node.callees {
            self.frame(name, callee, left, level + 1);
            left += share(callee.total) * (WIDTH - 2.0 * MARGIN);
        }
    }
}

/// Blue for the host's functions, grey for the root, and for others a warm colour that depends on the name.
fn colour(name: &FunctionName, level: usize) -> String {
    if level == 0 {
        return "#ddd".to_owned();
    }
    let hash = name.name.bytes().fold(7_u32, |hash, octet| hash.wrapping_mul(31) ^ u32::from(octet));
    let hue = if name.is_host { 205 } else { 18 + hash % 35 };
    format!("hsl({hue},85%,{}%)", 66 + hash / 64 % 12)
}

/// A text for XML, without characters that XML does not have.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' | '\r' => escaped.push(' '),
            other if other.is_control() || matches!(other, '\u{fffe}' | '\u{ffff}') => {
                escaped.push('\u{fffd}');
            }
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::super::call_tree::tests::sample;
    use super::*;

    /// The x and the width of the frame with this title.
    fn place(svg: &str, title: &str) -> (f64, f64) {
        let (_, rest) =
            svg.split_once(&format!("<title>{title}")).unwrap_or_else(|| panic!("{title}: {svg}"));
        let number = |name: &str| {
            let (_, rest) = rest.split_once(&format!(" {name}=\"")).unwrap();
            rest.split_once('"').unwrap().0.parse().unwrap()
        };
        (number("x"), number("width"))
    }

    #[test]
    fn frames_are_as_wide_as_their_share_and_stand_on_their_callers() {
        let svg = draw(&CallTree::of(&sample()), "first: 12 samples");
        let all = place(&svg, "all calls: 12 samples, 100.0 %; 0 in itself, 0.0 %");
        assert_eq!(all, (MARGIN, WIDTH - 2.0 * MARGIN));
        assert_eq!(place(&svg, "route (lib.rs:1): 12 samples, 100.0 %; 3 in itself, 25.0 %"), all);
        let (left, width) = place(&svg, "find (lib.rs:7): 8 samples, 66.7 %; 6 in itself, 50.0 %");
        assert!((width - all.1 * 8.0 / 12.0).abs() < 0.01, "{width}");
        let (host_left, host_width) = place(&svg, "host: peers.state: 2 samples");
        assert!(host_left >= left && host_left + host_width <= left + width + 0.01, "{svg}");
    }

    #[test]
    fn names_are_escaped_and_nothing_runs() {
        let svg = draw(&CallTree::of(&sample()), "a < b");
        assert!(
            svg.contains("a;b&lt;c&gt;&amp;&quot;d&quot;") && svg.contains("<title>a &lt; b</title>"),
            "{svg}"
        );
        assert!(!svg.contains("<script") && !svg.contains("href"), "{svg}");
        assert_eq!(escape("a\u{0}b\nc\u{ffff}"), "a\u{fffd}b c\u{fffd}");
        assert_eq!((shorten("route", 5), shorten("router", 5)), ("route".to_owned(), "rout…".to_owned()));
    }
}
