// The head of the page, the list of levels and the lattice.

function showHead() {
  byId('file').textContent = data.file;
  const size = data.size;
  const figures = [
    counted(size.transactions, 'transaction'),
    counted(size.sessions, 'session'),
    `${counted(size.operations, 'operation')} on ${counted(size.keys, 'key')}`,
  ];
  byId('facts').textContent = `${figures.join(' · ')} · ${data.format}`;
  byId('footer').textContent = `Made by isolde ${data.version}`
    + (data.made_by === data.version ? '.' : ` from a report by isolde ${data.made_by}.`);
}

function tile(kind, title, big, small) {
  const parts = [make('h2', {}, title), make('p', { class: 'big' }, big)];
  if (small) parts.push(make('p', {}, small));
  return make('div', { class: `tile ${kind}` }, ...parts);
}

function titles(names) {
  const found = names.map((name) => (data.levels.find((level) => level.name === name) || { title: name }).title);
  return found.join(', ');
}

function showSummary() {
  const box = byId('summary');
  const unknown = data.levels.filter((level) => level.verdict === 'unknown');
  const first = data.counterexamples[0];
  if (data.weakest_violated.length) {
    box.append(tile('bad', 'Violated', titles(data.weakest_violated),
      first ? first.scenario.names.everyday || first.title : 'and everything that implies it'));
  } else {
    box.append(tile(unknown.length ? 'open' : 'good', 'Violated', 'nothing', 'of the levels that were decided'));
  }
  box.append(tile('good', 'Holds', data.strongest.length ? titles(data.strongest) : 'nothing', data.strongest.length ? 'and everything that it implies' : 'of what was decided'));
  if (unknown.length) {
    box.append(tile('open', 'Not decided', unknown.map((level) => level.title).join(', '), unknown[0].reason));
  }
  const size = data.size;
  const other = [size.aborted && `${size.aborted.toLocaleString('en')} aborted`, size.unknown && `${size.unknown.toLocaleString('en')} unknown`];
  const outcome = other.filter(Boolean).join(', ') || 'none aborted, none unknown';
  box.append(tile('', 'Recorded', `${size.committed.toLocaleString('en')} committed`, outcome));
}

const levelParts = new Map();

function chooseLevel(name) {
  for (const [other, parts] of levelParts) {
    parts.button.setAttribute('aria-pressed', String(other === name));
    if (parts.node) parts.node.classList.toggle('chosen', other === name);
  }
  const level = data.levels.find((it) => it.name === name);
  if (!level) return;
  const about = byId('level-about');
  about.replaceChildren(make('b', {}, `${level.title}: ${level.verdict}. `), `It promises: ${level.summary}.`);
  if (level.reason) about.append(` (${level.reason})`);
  if (level.without_given) about.append(` Without the orders that came with the history: ${level.without_given}.`);
  if (level.counterexamples.length) tell('choose', level.counterexamples[0]);
}

function showLevels() {
  const list = byId('level-list');
  for (const level of [...data.levels].reverse()) {
    const button = make('button', { type: 'button', class: level.verdict, 'aria-pressed': 'false', title: level.summary },
      make('span', { class: 'mark', 'aria-hidden': 'true' }, MARKS[level.verdict] || '?'),
      make('span', {}, level.title),
      make('span', { class: 'why' }, level.verdict));
    const node = document.querySelector(`.lattice [data-level="${CSS.escape(level.name)}"]`);
    levelParts.set(level.name, { button, node });
    button.addEventListener('click', () => chooseLevel(level.name));
    if (node) node.addEventListener('click', () => chooseLevel(level.name));
    list.append(make('li', {}, button));
  }
}

/** A narrow screen shows a part of the lattice: that with the weakest level that is violated. */
function scrollLattice() {
  const box = document.querySelector('.lattice-box');
  const name = data.weakest_violated[0] || data.strongest[0];
  const parts = levelParts.get(name);
  if (!parts || !parts.node) return;
  const [outer, inner] = [box.getBoundingClientRect(), parts.node.getBoundingClientRect()];
  box.scrollLeft += inner.left + inner.width / 2 - (outer.left + outer.width / 2);
}

function showRemarks() {
  const box = byId('remarks');
  const order = data.serialization_order;
  if (order) {
    box.append(make('h3', {}, order.explains
      ? 'The serialization order that came with the history explains every read'
      : 'The serialization order that came with the history does not explain it'));
    if (!order.explains) box.append(make('pre', {}, order.explanation));
  }
  for (const conflict of data.conflicts || []) {
    const [one, other] = conflict.between;
    box.append(make('h3', {}, `Told by the database, and contradictory: ${one} and ${other}`), make('pre', {}, conflict.explanation));
  }
  if (data.unlogged) {
    const names = data.unlogged.transactions.join(', ');
    const more = data.unlogged.count - data.unlogged.transactions.length;
    box.append(make('p', { class: 'note' }, make('b', {}, `${data.unlogged.meaning}: `), names, more > 0 ? ` and ${more} more` : ''));
  }
  for (const note of data.notes || []) {
    const example = note.example ? `Such as: ${note.example}. ` : '';
    box.append(make('p', { class: 'note' }, make('b', {}, `${note.meaning}. `), example, note.advice));
  }
  for (const remark of data.remarks) {
    box.append(make('h3', {}, remark.title), make('pre', {}, remark.explanation));
  }
  box.hidden = box.children.length < 2;
}

/** What ended a run before its time, and how much of what was asked for was done. */
function endedEarly(run) {
  const { transactions, seconds, until_violation: rounds } = run.asked || {};
  if (!run.ended_by) return null;
  // The check alone was cut short.
  if (!rounds && (transactions ? run.committed >= transactions : run.seconds >= seconds)) return run.ended_by;
  if (transactions) return `after ${run.committed} of ${transactions} transactions${rounds ? ` of round ${run.rounds}` : ''}: ${run.ended_by}`;
  return seconds ? `after ${run.seconds.toFixed(1)} of ${seconds.toFixed(1)} s: ${run.ended_by}` : run.ended_by;
}

function showRun() {
  const list = byId('run');
  const row = (name, value) => {
    if (value != null && value !== '') list.append(make('dt', {}, name), make('dd', {}, value));
  };
  const run = data.run;
  if (run) {
    row('database', [run.database, run.database_version].filter(Boolean).join(' '));
    row('isolation', run.isolation);
    row('promises', (run.promises || []).join(', '));
    row('workload', [run.preset, run.sessions && `${run.sessions} sessions`, run.seed != null && `seed ${run.seed}`].filter(Boolean).join(', '));
    row('ended early', endedEarly(run));
    if (run.command) list.append(make('dt', {}, 'again'), make('dd', {}, make('code', {}, run.command)));
  }
  row('file', data.file);
  const spent = data.levels.reduce((sum, level) => sum + level.seconds, 0);
  row('checked in', `${spent.toFixed(3)} s`);
  if (!byId('plots').children.length) {
    byId('plots').append(make('p', { class: 'hint' }, history
      ? 'The history has no times, so there is nothing to plot.'
      : 'The page was made from a report alone: with the history beside it, there are plots and a timeline.'));
  }
}

function setUpTheme() {
  const root = document.documentElement;
  let saved = null;
  try { saved = localStorage.getItem('isolde-theme'); } catch { /* files may have no storage */ }
  if (saved === 'light' || saved === 'dark') root.dataset.theme = saved;
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const isDark = () => (root.dataset.theme ? root.dataset.theme === 'dark' : dark.matches);
  byId('theme').addEventListener('click', () => {
    root.dataset.theme = isDark() ? 'light' : 'dark';
    try { localStorage.setItem('isolde-theme', root.dataset.theme); } catch { /* see above */ }
    tell('theme');
  });
  dark.addEventListener('change', () => tell('theme'));
}
