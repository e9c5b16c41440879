//! Strongly connected parts of a graph, by the algorithm of Tarjan.

use super::model::Node;

/// Hands every strongly connected part among `nodes` to `part`, each after all parts that
/// lead to it. `before` has the nodes from which edges lead to a node; what is not among
/// `nodes` is passed over.
pub(super) fn each_part<Before: Iterator<Item = Node>>(
    node_count: usize,
    nodes: &[Node],
    before: impl Fn(Node) -> Before,
    mut part: impl FnMut(&[Node]),
) {
    const OUTSIDE: u32 = u32::MAX;
    // The number by which a node was met, and the lowest one it leads back to.
    let mut met = vec![OUTSIDE; node_count];
    for &node in nodes {
        met[node as usize] = 0;
    }
    let mut lowest = vec![0u32; node_count];
    let mut path: Vec<Node> = Vec::new();
    let mut count = 0;
    for &start in nodes {
        if met[start as usize] != 0 {
            continue;
        }
        let mut open = vec![(start, before(start))];
        count += 1;
        (met[start as usize], lowest[start as usize]) = (count, count);
        path.push(start);
        while let Some((node, remaining)) = open.last_mut() {
            let node = *node as usize;
            if let Some(from) = remaining.next() {
                match met[from as usize] {
                    OUTSIDE => {}
                    0 => {
                        count += 1;
                        (met[from as usize], lowest[from as usize]) = (count, count);
                        path.push(from);
                        open.push((from, before(from)));
                    }
                    number => lowest[node] = lowest[node].min(number),
                }
                continue;
            }
            open.pop();
            if let Some(&(after, _)) = open.last() {
                lowest[after as usize] = lowest[after as usize].min(lowest[node]);
            }
            if lowest[node] != met[node] {
                continue;
            }
            let first = path.iter().rposition(|&it| it as usize == node).expect("on the path");
            // Nothing that is met later belongs to it.
            for &node in &path[first..] {
                met[node as usize] = OUTSIDE;
            }
            part(&path[first..]);
            path.truncate(first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts of a graph with these edges, nodes of each in order.
    fn parts(count: usize, nodes: &[Node], edges: &[(Node, Node)]) -> Vec<Vec<Node>> {
        let before = |node| edges.iter().filter(move |edge| edge.1 == node).map(|edge| edge.0);
        let mut parts = Vec::new();
        each_part(count, nodes, before, |part| {
            let mut part = part.to_vec();
            part.sort_unstable();
            parts.push(part);
        });
        parts
    }

    #[test]
    fn a_part_comes_after_what_leads_to_it() {
        let edges = [(0, 1), (1, 0), (1, 2), (2, 3), (3, 4), (4, 2)];
        assert_eq!(parts(5, &[4, 3, 2, 1, 0], &edges), [vec![0, 1], vec![2, 3, 4]]);
    }

    #[test]
    fn a_node_on_no_cycle_is_a_part_of_its_own() {
        assert_eq!(parts(3, &[2, 1, 0], &[(0, 1), (1, 2)]), [vec![0], vec![1], vec![2]]);
    }

    #[test]
    fn nodes_outside_join_nothing() {
        let edges = [(0, 1), (1, 2), (2, 0)];
        assert_eq!(parts(3, &[0, 1], &edges), [vec![0], vec![1]]);
    }
}
