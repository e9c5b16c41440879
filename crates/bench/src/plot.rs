//! Grouped bars as SVG, on a logarithmic scale.

use std::fmt::Write;

/// Bars of one colour.
pub(crate) struct Series {
    pub(crate) name: &'static str,
    pub(crate) figures: Vec<f64>,
}

/// A plot of some series over the same groups.
pub(crate) struct Plot {
    unit: &'static str,
    scale: Scale,
    groups: Vec<String>,
    pub(crate) series: Vec<Series>,
}

const COLOURS: [&str; 3] = ["#3b6ea5", "#c9792b", "#5a8f4e"];
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
/// Where bars stand.
const LEFT: f64 = 60.0;
const BOTTOM: f64 = 250.0;
const TOP: f64 = 30.0;

/// Which figures can be told apart.
#[derive(Clone, Copy)]
pub(crate) struct Scale {
    /// The smallest figure that is shown.
    pub(crate) least: f64,
    /// How many times ten it is to the largest.
    pub(crate) decades: i32,
}

impl Plot {
    pub(crate) fn new(unit: &'static str, scale: Scale, groups: &[&str]) -> Plot {
        let groups = groups.iter().map(|&group| group.to_owned()).collect();
        Plot { unit, scale, groups, series: Vec::new() }
    }

    pub(crate) fn svg(&self) -> String {
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
        );
        self.lines(&mut out);
        #[expect(clippy::cast_precision_loss, reason = "a few groups")]
        let group_width = (WIDTH - LEFT - 20.0) / self.groups.len().max(1) as f64;
        #[expect(clippy::cast_precision_loss, reason = "a few series")]
        let bar_width = group_width * 0.8 / self.series.len().max(1) as f64;
        let mut left = LEFT + group_width * 0.1;
        for (place, group) in self.groups.iter().enumerate() {
            let mut at = left;
            for (series, colour) in self.series.iter().zip(COLOURS) {
                let figure = series.figures.get(place).copied().unwrap_or(0.0);
                let top = self.scale.height(figure);
                let (width, tall) = (bar_width - 2.0, BOTTOM - top);
                add(
                    &mut out,
                    format_args!(
                        "<rect x=\"{at:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{tall:.1}\" fill=\"{colour}\"><title>{}, {group}: {figure}</title></rect>",
                        series.name
                    ),
                );
                at += bar_width;
            }
            let middle = left + group_width * 0.4;
            add(
                &mut out,
                format_args!(
                    "<text x=\"{middle:.1}\" y=\"{}\" text-anchor=\"middle\">{group}</text>",
                    BOTTOM + 16.0
                ),
            );
            left += group_width;
        }
        let mut at = LEFT;
        for (series, colour) in self.series.iter().zip(COLOURS) {
            add(
                &mut out,
                format_args!(
                    "<rect x=\"{at}\" y=\"{}\" width=\"10\" height=\"10\" fill=\"{colour}\"/>",
                    HEIGHT - 22.0
                ),
            );
            add(
                &mut out,
                format_args!(
                    "<text x=\"{}\" y=\"{}\">{}</text>",
                    at + 14.0,
                    HEIGHT - 13.0,
                    series.name
                ),
            );
            at += 150.0;
        }
        out.push_str("</svg>\n");
        out
    }

    fn lines(&self, out: &mut String) {
        for decade in 0..=self.scale.decades {
            let label = self.scale.least * 10f64.powi(decade);
            let label = format!("{label:.5}");
            let label = label.trim_end_matches('0').trim_end_matches('.');
            let y = self.scale.height(self.scale.least * 10f64.powi(decade));
            let right = WIDTH - 20.0;
            add(
                out,
                format_args!(
                    "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>"
                ),
            );
            add(
                out,
                format_args!(
                    "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                    LEFT - 6.0,
                    y + 4.0
                ),
            );
        }
        add(out, format_args!("<text x=\"10\" y=\"18\">{}</text>", self.unit));
    }
}

impl Scale {
    /// How far down a figure's bar begins.
    fn height(self, figure: f64) -> f64 {
        let decades = (figure.max(self.least) / self.least).log10();
        BOTTOM - (BOTTOM - TOP) * (decades / f64::from(self.decades)).min(1.0)
    }
}

fn add(out: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(out, "{line}").expect("writing to a string cannot fail");
}
