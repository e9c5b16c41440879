// Looking for a transaction by its name, or for everything that touched a key.

const RESULTS_MAX = 100;

function searchField() {
  const field = make('input', { type: 'search', id: 'search', placeholder: 'key or transaction', 'aria-label': 'Search by key or transaction', autocomplete: 'off', spellcheck: 'false' });
  let waiting = 0;
  field.addEventListener('input', () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => search(field.value.trim()), 120);
  });
  field.addEventListener('keydown', (event) => {
    if (event.key === 'Enter') {
      clearTimeout(waiting);
      search(field.value.trim());
      const first = byId('results').querySelector('button');
      if (first) first.click();
    }
  });
  return field;
}

/** Transactions of this name, and those with an operation on a key of this name. */
function search(wanted) {
  const list = byId('results');
  list.replaceChildren();
  if (!wanted) {
    view.found = null;
    byId('said').textContent = '';
    draw();
    return;
  }
  const keys = new Set();
  history.keys.forEach((key, place) => { if (key === wanted) keys.add(place); });
  const found = new Set();
  const lower = wanted.toLowerCase();
  for (let t = 0; t < history.count; t++) {
    if (touches(t, keys) || txnName(t).toLowerCase() === lower) found.add(t);
  }
  // Nothing of exactly this name: what begins like it.
  if (!found.size) {
    for (let t = 0; t < history.count; t++) if (txnName(t).toLowerCase().startsWith(lower)) found.add(t);
  }
  view.found = found;
  const all = [...found].sort((a, b) => history.start[a] - history.start[b]);
  const more = all.length > RESULTS_MAX ? `, the first ${RESULTS_MAX} are listed` : '';
  byId('said').textContent = `${all.length.toLocaleString('en')} transaction${all.length === 1 ? '' : 's'} found${more}`;
  for (const t of all.slice(0, RESULTS_MAX)) list.append(make('li', {}, result(t, keys)));
  draw();
}

function touches(t, keys) {
  if (!keys.size) return false;
  for (let o = history.ops[t]; o < history.ops[t + 1]; o++) if (keys.has(history.op_keys[o])) return true;
  return false;
}

function result(t, keys) {
  const ops = [];
  for (let o = history.ops[t]; o < history.ops[t + 1] && ops.length < 6; o++) {
    if (!keys.size || keys.has(history.op_keys[o])) ops.push(opText(o));
  }
  const when = history.timed ? ` · ${timeText(history.start[t])}` : '';
  const button = make('button', { type: 'button' }, make('b', {}, txnName(t)), `${when} `, make('span', { class: 'op' }, ops.join(', ')));
  button.addEventListener('click', () => goTo(t));
  return button;
}
