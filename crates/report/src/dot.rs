//! Counterexamples in DOT, for Graphviz and for what else reads it.

use crate::counterexample::Counterexample;
use crate::drawing::operation;
use crate::escape::dot;
use crate::scenario::{Role, Scenario, ScenarioEdge};
use crate::svg::cycles;
use std::fmt::Write;

/// One graph, with a cluster for each cycle.
pub(crate) fn to_dot(counterexamples: &[Counterexample<'_>]) -> String {
    let mut out = String::from(
        "digraph isolde {\n  node [shape=box, style=rounded, fontname=\"monospace\"];\n  \
         edge [fontname=\"monospace\"];\n",
    );
    let mut clusters = 0;
    for counterexample in counterexamples {
        for (assumption, edges) in cycles(counterexample.scenario) {
            let title = match assumption {
                "" => counterexample.title.clone(),
                assumption => format!("{}: {assumption}", counterexample.title),
            };
            cluster(&mut out, clusters, &title, (counterexample.scenario, edges));
            clusters += 1;
        }
    }
    out.push_str("}\n");
    out
}

fn cluster(
    out: &mut String,
    number: usize,
    title: &str,
    (scenario, edges): (&Scenario, &[ScenarioEdge]),
) {
    writeln!(out, "  subgraph cluster_{number} {{\n    label={};", dot(title))
        .expect("a string grows");
    for (place, txn) in scenario.transactions.iter().enumerate() {
        let mut label = txn.name.clone();
        for op in txn.operations.iter().filter(|op| op.involved) {
            label.push('\n');
            label.push_str(&operation(op));
        }
        let style = if txn.role == Role::Cycle { "rounded" } else { "\"rounded,dashed\"" };
        writeln!(out, "    c{number}_t{place} [label={}, style={style}];", dot(&label))
            .expect("a string grows");
    }
    for edge in edges {
        let key = edge.key.as_deref().unwrap_or("");
        let label = format!("{} {key}", edge.kind.name());
        writeln!(
            out,
            "    c{number}_t{} -> c{number}_t{} [label={}, tooltip={}{}];",
            edge.from,
            edge.to,
            dot(label.trim_end()),
            dot(&edge.explanation),
            if edge.assumed { ", style=dotted" } else { "" }
        )
        .expect("a string grows");
        for step in &edge.because {
            writeln!(
                out,
                "    c{number}_t{} -> c{number}_t{} [label={}, style=dashed, color=gray];",
                step.from,
                step.to,
                dot(step.kind.name())
            )
            .expect("a string grows");
        }
    }
    out.push_str("  }\n");
}
