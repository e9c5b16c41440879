//! How a run went: throughput, outcomes and latencies over time, as plots.

#![expect(
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "pictures are not exact, and shares are not negative"
)]

use crate::escape::xml;
use isolde_history::{ALWAYS, History, NEVER, Outcome};
use std::fmt::Write;

const BUCKETS: usize = 60;
const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 30.0;
const EVENTS_MAX: usize = 200;

/// What happened in one stretch of time.
#[derive(Clone, Default)]
struct Bucket {
    committed: usize,
    aborted: usize,
    unknown: usize,
    /// Of committed transactions, in milliseconds.
    latencies: Vec<f64>,
}

/// The plots of a history with times; nothing for one without.
pub(super) fn draw(history: &History) -> String {
    let Some((start, span, buckets)) = buckets(history) else { return String::new() };
    let seconds = span / 1e9;
    let width = seconds / BUCKETS as f64;
    let per_second = |count: usize| count as f64 / width;
    let line = |of: fn(&Bucket) -> usize| -> Vec<f64> {
        buckets.iter().map(|bucket| per_second(of(bucket))).collect()
    };
    let mut throughput = vec![("committed", line(|bucket| bucket.committed))];
    for (name, values) in
        [("aborted", line(|bucket| bucket.aborted)), ("unknown", line(|bucket| bucket.unknown))]
    {
        if values.iter().any(|&value| value > 0.0) {
            throughput.push((name, values));
        }
    }
    let quantile = |part: f64| -> Vec<f64> {
        buckets.iter().map(|bucket| quantile(&bucket.latencies, part)).collect()
    };
    let latency = [("median", quantile(0.5)), ("p95", quantile(0.95)), ("p99", quantile(0.99))];
    let events = events(history, start, span);
    let mut out = String::new();
    plot(&mut out, "Transactions per second", &throughput, (seconds, &events));
    plot(&mut out, "Latency of commits in milliseconds", &latency, (seconds, &events));
    out
}

fn buckets(history: &History) -> Option<(i64, f64, Vec<Bucket>)> {
    let known = |time: i64| time != ALWAYS && time != NEVER;
    let intervals = || history.txns().map(|txn| (txn, history.txn_interval(txn)));
    let start = intervals().map(|(_, it)| it.invoked).filter(|&time| known(time)).min()?;
    let end = intervals().map(|(_, it)| it.completed).filter(|&time| known(time)).max()?;
    let span = (i128::from(end) - i128::from(start)) as f64;
    if span <= 0.0 {
        return None;
    }
    let mut buckets = vec![Bucket::default(); BUCKETS];
    for (txn, times) in intervals() {
        let at = if known(times.completed) { times.completed } else { times.invoked };
        if !known(at) {
            continue;
        }
        let part = (i128::from(at) - i128::from(start)) as f64 / span;
        let place = ((part * BUCKETS as f64) as usize).min(BUCKETS - 1);
        let bucket = &mut buckets[place];
        match history.outcome(txn) {
            Outcome::Committed => {
                bucket.committed += 1;
                if known(times.invoked) && known(times.completed) {
                    let spent = i128::from(times.completed) - i128::from(times.invoked);
                    bucket.latencies.push(spent as f64 / 1e6);
                }
            }
            Outcome::Aborted => bucket.aborted += 1,
            Outcome::Unknown => bucket.unknown += 1,
        }
    }
    for bucket in &mut buckets {
        bucket.latencies.sort_unstable_by(f64::total_cmp);
    }
    Some((start, span, buckets))
}

fn quantile(sorted: &[f64], part: f64) -> f64 {
    match sorted.len() {
        0 => f64::NAN,
        count => sorted[((count - 1) as f64 * part) as usize],
    }
}

/// Where events lie, from 0 to 1, and what they were.
fn events(history: &History, start: i64, span: f64) -> Vec<(f64, String)> {
    let place = |time: i64| (i128::from(time) - i128::from(start)) as f64 / span;
    let timed = history.events().iter().filter_map(|event| {
        let at = place(event.time?);
        (0.0..=1.0).contains(&at).then(|| (at, event.text.clone()))
    });
    timed.take(EVENTS_MAX).collect()
}

fn plot(
    out: &mut String,
    title: &str,
    series: &[(&str, Vec<f64>)],
    (seconds, events): (f64, &[(f64, String)]),
) {
    let all = series.iter().flat_map(|(_, values)| values).copied();
    let top = rounded_up(all.filter(|value| value.is_finite()).fold(0.0, f64::max));
    let x = |part: f64| LEFT + part * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM);
    write!(
        out,
        "<figure class=\"plot\"><figcaption>{title}</figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title} over time\">"
    )
    .expect("a string grows");
    for step in 0..=4u8 {
        let value = top * f64::from(step) / 4.0;
        let (at, label) = (y(value), figure(value));
        write!(
            out,
            "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{:.0}\"/>\
             <text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0
        )
        .expect("a string grows");
        let time = time(seconds * f64::from(step) / 4.0, seconds);
        let anchor = if step == 4 { "end" } else { "middle" };
        write!(
            out,
            "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"{anchor}\">{time}</text>",
            x(f64::from(step) / 4.0),
            HEIGHT - 10.0
        )
        .expect("a string grows");
    }
    for (at, text) in events {
        let (at, text) = (x(*at), xml(text));
        write!(
            out,
            "<g class=\"event\"><title>{text}</title><path d=\"M{at:.1} {TOP}V{:.0}\"/></g>",
            HEIGHT - BOTTOM
        )
        .expect("a string grows");
    }
    for (name, values) in series {
        write!(out, "<path class=\"series {name}\" d=\"{}\"/>", path(values, x, y))
            .expect("a string grows");
    }
    out.push_str("</svg><ul class=\"legend\">");
    for (name, _) in series {
        write!(out, "<li class=\"{name}\">{name}</li>").expect("a string grows");
    }
    out.push_str("</ul></figure>\n");
}

/// A line through the values, interrupted where there are none.
fn path(values: &[f64], x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) -> String {
    let mut out = String::new();
    let mut is_down = false;
    for (place, &value) in values.iter().enumerate() {
        if !value.is_finite() {
            is_down = false;
            continue;
        }
        let at = x((place as f64 + 0.5) / values.len() as f64);
        let letter = if is_down { 'L' } else { 'M' };
        write!(out, "{letter}{at:.1} {:.1}", y(value)).expect("a string grows");
        is_down = true;
    }
    out
}

/// The next of 1, 2, 5, 10, 20, … that is not smaller.
fn rounded_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 4.0, 5.0, 8.0, 10.0];
    steps.iter().map(|step| step * power).find(|&step| step >= value * 0.999_999).unwrap_or(value)
}

/// A number with as many digits as matter.
fn figure(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{:.0}M", value / 1e6),
        value if value >= 10_000.0 => format!("{:.0}k", value / 1000.0),
        value if value >= 10.0 || value == 0.0 => format!("{value:.0}"),
        value if value >= 1.0 => format!("{value:.1}"),
        value if value >= 0.01 => format!("{value:.2}"),
        value => format!("{value:.0e}"),
    }
}

/// A time on an axis that is so many seconds long.
fn time(seconds: f64, of: f64) -> String {
    let (factor, unit) = match of {
        of if of >= 2.0 => (1.0, "s"),
        of if of >= 2e-3 => (1e3, "ms"),
        of if of >= 2e-6 => (1e6, "µs"),
        _ => (1e9, "ns"),
    };
    format!("{} {unit}", figure(seconds * factor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_history::format::parse_text;

    #[test]
    fn a_history_without_times_has_no_plots() {
        let history = parse_text("A: w(x,1)").expect("a well-formed history");
        assert_eq!(draw(&history), "");
        let timed = parse_text("A @5..9: w(x,1)\nB @6..30: r(x,1)").expect("a well-formed history");
        assert_eq!(draw(&timed).matches("<figure").count(), 2);
    }

    #[test]
    fn axes_end_at_round_numbers() {
        assert_eq!(time(0.04, 0.16), "40 ms");
        let ends = [0.0, 0.3, 1.0, 3.0, 77.0, 81.0].map(|value| figure(rounded_up(value)));
        assert_eq!(ends, ["1.0", "0.40", "1.0", "4.0", "80", "100"]);
    }
}
