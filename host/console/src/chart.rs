//! Charts over a range of time as SVG.

use crate::format::figure;
use maud::{Markup, html};

/// A line of a chart: name, CSS class and points; `None` is a gap.
pub(crate) struct Line<'a> {
    pub(crate) name: &'a str,
    pub(crate) class: &'a str,
    pub(crate) points: Vec<Option<f64>>,
}

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 120.0;

/// The next round number, so that the scale does not change at every update.
fn scale_top(most: f64) -> f64 {
    if most <= 0.0 || !most.is_finite() {
        return 1.0;
    }
    let power = 10_f64.powf(most.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0];
    steps.iter().map(|step| step * power).find(|top| *top >= most).unwrap_or(most)
}

/// The segments of a line between its gaps.
fn pieces(points: &[Option<f64>], top: f64) -> Vec<String> {
    let step = WIDTH / (points.len().max(2) - 1) as f64;
    let mut pieces = Vec::new();
    let mut piece = String::new();
    for (index, point) in points.iter().enumerate() {
        match point {
            Some(value) => {
                let (x, y) =
                    (index as f64 * step, HEIGHT - value.clamp(0.0, top) / top * (HEIGHT - 2.0) - 1.0);
                piece.push_str(&format!("{x:.1},{y:.1} "));
            }
            None if piece.is_empty() => {}
            None => pieces.push(std::mem::take(&mut piece)),
        }
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
    pieces
}

/// The time axis of charts.
pub(crate) struct TimeAxis {
    /// The range in words, for example `10 minutes`.
    pub(crate) range: String,
    /// The labels below the chart, evenly apart.
    pub(crate) labels: Vec<Markup>,
    pub(crate) marks: Vec<Mark>,
}

/// An event, drawn as a vertical line.
pub(crate) struct Mark {
    /// The position, from 0 to 1.
    pub(crate) at: f64,
    pub(crate) class: &'static str,
    pub(crate) title: String,
}

/// A chart; `unit` follows each number.
pub(crate) fn chart(title: &str, unit: &str, axis: &TimeAxis, lines: &[Line<'_>]) -> Markup {
    let known = lines.iter().flat_map(|line| line.points.iter().flatten());
    let most = known.clone().copied().fold(0.0, f64::max);
    let top = scale_top(most);
    let last = |line: &Line<'_>| line.points.iter().rev().find_map(|point| *point);
    let values: Vec<String> = lines
        .iter()
        .filter_map(|line| Some(format!("{} {} {unit}", line.name, figure(last(line)?))))
        .collect();
    let label = match known.count() {
        0 => format!("{title}: nothing yet"),
        _ => format!(
            "{title}, now: {}; at most {} {unit} in the last {}",
            values.join(", "),
            figure(most),
            axis.range
        ),
    };
    html! {
        figure.chart {
            figcaption {
                strong { (title) }
                span.legend {
                    @for line in lines {
                        span.(line.class) {
                            span.swatch aria-hidden="true" {}
                            (line.name) " "
                            b { (last(line).map_or_else(|| "—".to_owned(), figure)) }
                            " " (unit)
                        }
                    }
                }
            }
            div.plot {
                div.scale aria-hidden="true" { span { (figure(top)) } span { (figure(top / 2.0)) } span { "0" } }
                svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" role="img" aria-label=(label) {
                    line.grid x1="0" x2=(WIDTH) y1="1" y2="1" {}
                    line.grid x1="0" x2=(WIDTH) y1=(HEIGHT / 2.0) y2=(HEIGHT / 2.0) {}
                    line.grid x1="0" x2=(WIDTH) y1=(HEIGHT - 1.0) y2=(HEIGHT - 1.0) {}
                    @for mark in &axis.marks {
                        @let x = format!("{:.1}", mark.at * WIDTH);
                        line.mark.(mark.class) x1=(x) x2=(x) y1="0" y2=(HEIGHT) { title { (mark.title) } }
                    }
                    @for line in lines {
                        @for piece in pieces(&line.points, top) { polyline.(line.class) points=(piece.trim_end()) {} }
                    }
                }
            }
            div.time-axis aria-hidden="true" { @for label in &axis.labels { span { (label) } } }
        }
    }
}

/// A bar of shares.
pub(crate) fn bar(label: &str, parts: &[(&str, u64)]) -> Markup {
    let whole = parts.iter().map(|(_, part)| part).sum::<u64>().max(1) as f64;
    let mut x = 0.0;
    let mut rects = Vec::new();
    for (class, part) in parts {
        let width = *part as f64 / whole * 100.0;
        rects.push((*class, x, width));
        x += width;
    }
    html! {
        svg.bar viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label=(label) {
            @for (class, x, width) in rects { rect.(class) x=(format!("{x:.2}")) y="0" width=(format!("{width:.2}")) height="6" {} }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_is_round_and_above_all_points() {
        for (most, top) in
            [(0.0, 1.0), (0.7, 1.0), (3.0, 5.0), (101.0, 200.0), (210.0, 250.0), (1000.0, 1000.0)]
        {
            assert_eq!(scale_top(most), top, "{most}");
        }
        assert_eq!(scale_top(f64::NAN), 1.0);
    }

    #[test]
    fn a_line_has_gaps_for_missing_points() {
        let points = [Some(1.0), Some(2.0), None, None, Some(1.0)];
        assert_eq!(pieces(&points, 2.0), ["0.0,60.0 150.0,1.0 ", "600.0,60.0 "]);
        assert!(pieces(&[], 1.0).is_empty() && pieces(&[None], 1.0).is_empty());
    }

    fn ten_minutes() -> TimeAxis {
        let marks = vec![Mark { at: 0.5, class: "bad", title: "<fault>".to_owned() }];
        TimeAxis {
            range: "10 minutes".to_owned(),
            labels: vec![html! { "10 min ago" }, html! { "now" }],
            marks,
        }
    }

    #[test]
    fn a_chart_has_a_text_label_and_marks() {
        let line = Line { name: "accepted", class: "s1", points: vec![Some(3.0), Some(4.0)] };
        let html_text = chart("Throughput", "msg/s", &ten_minutes(), &[line]).into_string();
        assert!(
            html_text.contains("Throughput, now: accepted 4 msg/s; at most 4 msg/s in the last 10 minutes"),
            "{html_text}"
        );
        assert!(html_text.contains("x1=\"300.0\"") && html_text.contains("&lt;fault&gt;"), "{html_text}");
        let nothing = Line { name: "accepted", class: "s1", points: vec![] };
        assert!(
            chart("Throughput", "msg/s", &ten_minutes(), &[nothing]).into_string().contains("nothing yet")
        );
    }
}
