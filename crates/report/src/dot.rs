//! Counterexamples in DOT, for Graphviz and for what else reads it.

use crate::counterexample::Counterexample;
use crate::drawing::{drawn, not_drawn, operation, shown};
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
        if let Some(note) = not_drawn(counterexample.scenario) {
            writeln!(out, "  note_{clusters} [label={}, shape=plaintext];", dot(&note))
                .expect("a string grows");
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
    let all: Vec<usize> = match edges {
        [] => (0..scenario.transactions.len()).collect(),
        edges => drawn(scenario, edges),
    };
    for place in all {
        let txn = &scenario.transactions[place];
        let mut label = txn.name.clone();
        for op in txn.operations.iter().filter(|op| op.involved) {
            label.push('\n');
            label.push_str(&operation(op));
        }
        let style = if txn.role == Role::Cycle { "rounded" } else { "\"rounded,dashed\"" };
        writeln!(out, "    c{number}_t{place} [label={}, style={style}];", dot(&label))
            .expect("a string grows");
    }
    let mut said: Vec<String> = Vec::new();
    for shown in shown(edges) {
        let edge = shown.edge;
        let key = edge.key.as_deref().unwrap_or("");
        let label = format!("{} {key}", edge.kind.name());
        let arrow = format!(
            "    c{number}_t{} -> c{number}_t{} [label={}, tooltip={}",
            edge.from,
            edge.to,
            dot(label.trim_end()),
            dot(&edge.explanation)
        );
        if said.contains(&arrow) {
            continue;
        }
        let style = match (shown.depth, edge.assumed) {
            (0, false) => "",
            (0, true) => ", style=dotted",
            _ => ", style=dashed, color=gray",
        };
        writeln!(out, "{arrow}{style}];").expect("a string grows");
        said.push(arrow);
    }
    out.push_str("  }\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{EdgeKind, OpRef, ScenarioOp, ScenarioTxn};
    use crate::svg::to_svg;

    /// A cycle of two, of which one edge follows twice from one read and from what is told
    /// apart, where two more transactions are named.
    fn scenario() -> Scenario {
        let txn = |name: &str| ScenarioTxn {
            name: name.into(),
            operations: vec![ScenarioOp { involved: true, ..ScenarioOp::default() }],
            ..ScenarioTxn::default()
        };
        let edge = |from, to| ScenarioEdge {
            from,
            to,
            kind: EdgeKind::Rw,
            explanation: format!("{from} missed {to}"),
            ..ScenarioEdge::default()
        };
        let apart = ScenarioEdge {
            fact: Some(1),
            operations: vec![OpRef { transaction: 3, operation: 0 }],
            ..edge(2, 1)
        };
        let because = vec![edge(0, 2), edge(0, 2), apart];
        Scenario {
            transactions: ["A", "B", "C", "D", "E"].map(txn).into(),
            edges: vec![ScenarioEdge { because, ..edge(0, 1) }, edge(1, 0)],
            ..Scenario::default()
        }
    }

    /// There were boxes without arrows, arrows drawn twice, and no word about what is not there.
    #[test]
    fn pictures_have_what_their_arrows_need_and_say_what_they_leave_out() {
        let scenario = scenario();
        let title = "not serializable".to_owned();
        let (levels, explanation) = (Vec::new(), "");
        let all = [Counterexample { title, levels, explanation, scenario: &scenario }];
        let dot = to_dot(&all);
        let arrows: Vec<&str> =
            dot.lines().filter(|line| line.contains("->")).map(|line| &line[4..19]).collect();
        let expected = ["c0_t0 -> c0_t1 ", "c0_t0 -> c0_t2 ", "c0_t2 -> c0_t1 ", "c0_t1 -> c0_t0 "];
        assert_eq!(arrows, expected);
        assert_eq!(dot.lines().filter(|line| line.contains("style=rounded]")).count(), 3);
        assert!(dot.contains("2 more transactions: in the text"), "{dot}");
        let svg = to_svg(&all);
        assert_eq!(svg.matches("class=\"card").count(), 3);
        assert_eq!(svg.matches("class=\"arrow").count(), 4);
        assert!(svg.contains("2 more transactions: in the text"), "{svg}");
    }
}
