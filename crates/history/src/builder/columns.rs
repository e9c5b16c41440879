//! Columns while a history is built: filling gaps, and bringing them into order.

/// Sets one place of a column that exists only where something was said.
pub(crate) fn set<T: Clone>(column: &mut Vec<T>, index: u32, value: T, missing: T) {
    let index = index as usize;
    if column.len() == index {
        return column.push(value);
    }
    if column.len() < index {
        column.resize(index + 1, missing);
    }
    column[index] = value;
}

pub(super) fn pad<T: Clone>(column: &mut Vec<T>, length: usize, missing: T) {
    if !column.is_empty() {
        column.resize(length, missing);
    }
}

/// Where each group starts when `items` are grouped.
pub(super) fn offsets<T>(groups: usize, items: &[T], group: impl Fn(&T) -> usize) -> Vec<u32> {
    let mut starts = vec![0u32; groups + 1];
    for item in items {
        starts[group(item) + 1] += 1;
    }
    for index in 0..groups {
        starts[index + 1] += starts[index];
    }
    starts
}

/// The indices of `items`, grouped, otherwise in their order.
pub(super) fn counting_sort<T>(
    starts: &[u32],
    items: &[T],
    group: impl Fn(&T) -> usize,
) -> Vec<u32> {
    let mut next = starts.to_vec();
    let mut order = vec![0u32; items.len()];
    for (index, item) in items.iter().enumerate() {
        let slot = &mut next[group(item)];
        order[*slot as usize] = index as u32;
        *slot += 1;
    }
    order
}

pub(super) fn gather<T: Copy>(column: &mut Vec<T>, ranges: &[(u32, u32)]) {
    if column.is_empty() {
        return;
    }
    let mut gathered = Vec::with_capacity(column.len());
    for &(start, end) in ranges {
        gathered.extend_from_slice(&column[start as usize..end as usize]);
    }
    *column = gathered;
}

pub(super) fn permute<T: Copy>(column: &mut Vec<T>, order: &[u32], missing: T) {
    if column.is_empty() {
        return;
    }
    pad(column, order.len(), missing);
    *column = order.iter().map(|&old| column[old as usize]).collect();
}
