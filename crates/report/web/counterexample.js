// One violation: its argument step by step, and the picture beside it. Steps can be opened down to
// the operations they rest on; picture, steps and timeline point at each other.

let chosen = -1;
let chosenCase = 0;
/** Steps of an argument that is shown whole. */
const SHORT = 8;

/** The steps of a violation: its cycle, or that of one of its cases. */
function edgesOf(scenario, place) {
  return scenario.cases.length ? scenario.cases[place].edges : scenario.edges;
}

function showTabs() {
  const tabs = byId('tabs');
  data.counterexamples.forEach((it, place) => {
    const tab = make('button', { type: 'button', role: 'tab', 'aria-selected': 'false', 'aria-controls': 'violation' },
      it.scenario.names.everyday || it.title,
      make('small', {}, it.levels.length > 1 ? `not ${it.levels[0]} and ${it.levels.length - 1} more` : `not ${it.levels[0]}`));
    tab.addEventListener('click', () => tell('choose', place));
    tabs.append(tab);
  });
  tabs.addEventListener('keydown', (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const all = [...tabs.children];
    const at = all.indexOf(document.activeElement);
    if (!step || at < 0) return;
    event.preventDefault();
    const next = all[(at + step + all.length) % all.length];
    next.focus();
    next.click();
  });
  if (!data.counterexamples.length) {
    byId('violation').append(make('p', {}, data.without_counterexample));
  }
}

on('choose', (place) => {
  if (place === chosen) return;
  chosen = place;
  chosenCase = 0;
  [...byId('tabs').children].forEach((tab, other) => {
    tab.setAttribute('aria-selected', String(other === place));
    tab.tabIndex = other === place ? 0 : -1;
  });
  showViolation();
  tell('chosen', place);
});

function showViolation() {
  const it = data.counterexamples[chosen];
  const scenario = it.scenario;
  const box = byId('violation');
  // The pictures go back where they wait.
  for (const picture of box.querySelectorAll('.picture')) {
    picture.hidden = true;
    byId('pictures').append(picture);
  }
  const names = scenario.names;
  const pills = [names.everyday || it.title, names.adya && `Adya: ${names.adya}`, names.elle && `Elle: ${names.elle}`].filter(Boolean);
  const violated = it.levels.slice(0, 4).map((level) => make('li', { class: 'bad' }, `not ${level}`));
  if (it.levels.length > 4) violated.push(make('li', { class: 'bad' }, `and ${it.levels.length - 4} more`));
  const steps = make('div', {});
  const left = make('div', {});
  const parts = [
    make('p', { class: 'summary-line' }, scenario.summary || names.everyday || it.title),
    make('ul', { class: 'pills' }, ...pills.map((text) => make('li', {}, text)), ...violated),
    caseTabs(scenario),
    make('div', { class: 'argument' }, left, steps),
    more(it),
  ];
  box.replaceChildren(...parts.filter((part) => part != null));
  showPicture(left);
  showSteps(steps, scenario);
  openShort(scenario);
}

/** An argument that is short anyway is shown down to its grounds at once. */
function openShort(scenario) {
  const count = (edges) => edges.reduce((sum, edge) => sum + 1 + count(edge.because), 0);
  if (!scenario.facts && count(edgesOf(scenario, chosenCase)) <= SHORT) {
    for (;;) {
      const closed = [...byId('violation').querySelectorAll('.step.grounded > .head[aria-expanded=false]')];
      if (!closed.length) break;
      closed.forEach((head) => head.click());
    }
  }
  fitPicture();
}

function caseTabs(scenario) {
  if (!scenario.cases.length) return null;
  const row = make('div', { class: 'case-tabs', role: 'group', 'aria-label': 'Cases' });
  scenario.cases.forEach((it, place) => {
    const button = make('button', { type: 'button', 'aria-pressed': String(place === chosenCase), title: it.assumption }, `Case ${place + 1}`);
    button.addEventListener('click', () => {
      chosenCase = place;
      showViolation();
      byId('violation').querySelectorAll('.case-tabs button')[place].focus();
      tell('chosen', chosen);
    });
    row.append(button);
  });
  if (scenario.cases_left_out) row.append(make('span', { class: 'hint' }, `and ${scenario.cases_left_out} more in the certificate`));
  return row;
}

function more(it) {
  const copy = make('button', { type: 'button' }, 'Copy');
  const script = make('pre', {}, it.replay);
  copy.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(it.replay);
      copy.textContent = 'Copied';
    } catch {
      getSelection().selectAllChildren(script);
      copy.textContent = 'Selected';
    }
  });
  const parts = make('div', {},
    make('details', {}, make('summary', {}, 'The whole argument as text'), make('pre', {}, it.argument)),
    make('details', {}, make('summary', {}, 'Statements that repeat it'), copy, script));
  if (it.scenario.also.length) {
    parts.append(make('details', {}, make('summary', {}, 'Also ruled out by it'), make('p', {}, it.scenario.also.join(', '))));
  }
  return parts;
}

// ---- the picture ----

function showPicture(parent) {
  const picture = byId(`g${chosen}-${chosenCase}`);
  if (!picture) return;
  picture.hidden = false;
  parent.append(picture, make('p', { class: 'hint' }, 'wr: read from · ww: wrote before · rw: missed the write of. Choose an arrow to see what it follows from.'));
  const svg = picture.querySelector('svg');
  picture.classList.toggle('wide', svg.viewBox.baseVal.width > 1100);
  if (picture.dataset.ready) return;
  picture.dataset.ready = 'yes';
  const choosable = (element, label, act) => {
    element.setAttribute('tabindex', '0');
    element.setAttribute('role', 'button');
    element.setAttribute('aria-label', label);
    element.addEventListener('click', act);
    element.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' || event.key === ' ') {
        event.preventDefault();
        act();
      }
    });
  };
  for (const arrow of svg.querySelectorAll('.arrow')) {
    const path = arrow.dataset.edge;
    choosable(arrow, arrow.getAttribute('aria-label'), () => tell('toggle', path));
    arrow.addEventListener('pointerenter', () => tell('point', path));
    arrow.addEventListener('pointerleave', () => tell('point', null));
    arrow.addEventListener('focus', () => tell('point', path));
    arrow.addEventListener('blur', () => tell('point', null));
  }
  // The keyboard has the arrow; its label, drawn above all arrows, is for the pointer.
  for (const label of svg.querySelectorAll('.label')) {
    const path = label.dataset.label;
    label.addEventListener('click', () => tell('toggle', path));
    label.addEventListener('pointerenter', () => tell('point', path));
    label.addEventListener('pointerleave', () => tell('point', null));
  }
  for (const card of svg.querySelectorAll('.card')) {
    const place = Number(card.dataset.txn);
    const txn = data.counterexamples[chosen].scenario.transactions[place];
    choosable(card, `transaction ${txn.name}: show it in the timeline`, () => tell('visit', place));
    card.addEventListener('pointerenter', () => tell('point-txn', place));
    card.addEventListener('pointerleave', () => tell('point-txn', null));
  }
}

function currentGraph() {
  const picture = byId(`g${chosen}-${chosenCase}`);
  return picture && picture.querySelector('svg');
}

/** Shows in the picture what an opened step follows from. */
function openInPicture(path, isOpen) {
  const svg = currentGraph();
  if (!svg) return;
  for (const arrow of svg.querySelectorAll('.arrow.derived,.label.derived')) {
    const edge = arrow.dataset.edge || arrow.dataset.label;
    const isChild = edge.startsWith(`${path}.`) && !edge.slice(path.length + 1).includes('.');
    if (isChild || (!isOpen && edge.startsWith(`${path}.`))) arrow.classList.toggle('open', isOpen);
  }
  const shown = new Set();
  for (const arrow of svg.querySelectorAll('.arrow.derived.open')) {
    const edge = edgeAt(arrow.dataset.edge);
    if (edge) [edge.from, edge.to].forEach((txn) => shown.add(String(txn)));
  }
  for (const card of svg.querySelectorAll('.card')) card.classList.toggle('open', shown.has(card.dataset.txn));
  fitPicture();
}

/** Leaves out of the picture the room of what is not shown. */
function fitPicture() {
  const svg = currentGraph();
  if (!svg) return;
  const box = svg.getBBox();
  if (!box.width) return;
  const margin = 16;
  const [width, height] = [box.width + 2 * margin, box.height + 2 * margin];
  svg.setAttribute('viewBox', [box.x - margin, box.y - margin, width, height].join(' '));
  svg.setAttribute('width', width);
  svg.setAttribute('height', height);
}

function edgeAt(path) {
  const scenario = data.counterexamples[chosen].scenario;
  let edges = edgesOf(scenario, chosenCase);
  let edge = null;
  for (const place of path.split('.')) {
    edge = edges[Number(place)];
    if (!edge) return null;
    edges = grounds(scenario, edge);
  }
  return edge;
}

/** What an edge follows from, told here or where the same was told before. */
function grounds(scenario, edge) {
  if (edge.because.length || edge.fact == null) return edge.because;
  const open = [...scenario.edges, ...scenario.cases.flatMap((it) => it.edges), ...(scenario.facts || [])];
  while (open.length) {
    const other = open.pop();
    if (other.fact === edge.fact && other.because.length) return other.because;
    open.push(...other.because);
  }
  return [];
}

on('point', (path) => {
  const svg = currentGraph();
  const edge = path == null ? null : edgeAt(path);
  if (svg) {
    svg.classList.toggle('focused', Boolean(edge));
    for (const arrow of svg.querySelectorAll('.arrow,.label')) arrow.classList.toggle('lit', (arrow.dataset.edge || arrow.dataset.label) === path);
    for (const card of svg.querySelectorAll('.card')) {
      const txn = Number(card.dataset.txn);
      card.classList.toggle('lit', Boolean(edge) && (edge.from === txn || edge.to === txn));
    }
  }
  for (const step of byId('violation').querySelectorAll('.step')) step.classList.toggle('lit', step.dataset.path === path);
  tell('light', edge ? [edge.from, edge.to] : []);
});

on('point-txn', (place) => {
  const svg = currentGraph();
  if (svg) for (const card of svg.querySelectorAll('.card')) card.classList.toggle('lit', Number(card.dataset.txn) === place);
  tell('light', place == null ? [] : [place]);
});

on('toggle', (path) => {
  const step = byId('violation').querySelector(`.step[data-path="${CSS.escape(path)}"] > .head`);
  if (step) step.click();
});

// ---- the argument ----

function showSteps(parent, scenario) {
  const edges = edgesOf(scenario, chosenCase);
  const theCase = scenario.cases[chosenCase];
  if (theCase) parent.append(make('p', { class: 'meaning' }, `Suppose that ${theCase.assumption.replace(/^suppose that /, '')}.`));
  if (edges.length) {
    parent.append(stepList(scenario, edges, ''));
  } else {
    const told = data.counterexamples[chosen].explanation.split('\n');
    parent.append(make('ol', { class: 'steps' }, ...told.map((line) => make('li', { class: 'step' }, make('div', { class: 'head' }, line)))));
    const involved = scenario.transactions.flatMap((txn, place) => txn.operations.flatMap((op, o) => (op.involved ? [{ transaction: place, operation: o }] : [])));
    parent.append(make('div', { class: 'detail' }, operations(scenario, involved)));
  }
  const conclusion = theCase ? theCase.conclusion : scenario.conclusion;
  if (conclusion) parent.append(make('p', { class: 'conclusion' }, `⇒ ${conclusion}`));
  if (scenario.documented) parent.append(make('p', { class: 'note' }, make('b', {}, 'Documented: '), scenario.documented));
  if (scenario.meaning) parent.append(make('p', { class: 'meaning' }, make('b', {}, 'What it means: '), scenario.meaning));
}

function stepList(scenario, edges, prefix) {
  return make('ol', { class: 'steps' }, ...edges.map((edge, place) => step(scenario, edge, prefix + place)));
}

function step(scenario, edge, path) {
  const name = (txn) => scenario.transactions[txn].name;
  const kind = edge.assumed ? 'assumed' : edge.kind;
  const head = make('button', { type: 'button', class: 'head', 'aria-expanded': 'false' },
    make('span', { class: 'caret', 'aria-hidden': 'true' }, '▸'),
    make('span', { class: `kind ${kind}` }, edge.key == null ? edge.kind : `${edge.kind} ${edge.key}`),
    make('span', { class: 'text' }, make('b', {}, `${name(edge.from)} before ${name(edge.to)}: `), edge.explanation,
      edge.fact == null ? null : make('span', { class: 'fact' }, ` F${edge.fact}`)));
  const isGrounded = grounds(scenario, edge).length || edge.left_out != null;
  const item = make('li', { class: isGrounded ? 'step grounded' : 'step', 'data-path': path }, head);
  head.addEventListener('click', () => {
    const isOpen = head.getAttribute('aria-expanded') !== 'true';
    head.setAttribute('aria-expanded', String(isOpen));
    const old = item.querySelector(':scope > .detail');
    if (old) old.remove();
    if (isOpen) item.append(derivation(scenario, edge, path));
    openInPicture(path, isOpen);
  });
  head.addEventListener('pointerenter', () => tell('point', path));
  head.addEventListener('pointerleave', () => tell('point', null));
  head.addEventListener('focus', () => tell('point', path));
  head.addEventListener('blur', () => tell('point', null));
  return item;
}

function derivation(scenario, edge, path) {
  const detail = make('div', { class: 'detail' });
  if (edge.operations.length) detail.append(make('p', {}, 'It rests on'), operations(scenario, edge.operations));
  const steps = grounds(scenario, edge);
  if (steps.length) {
    detail.append(make('p', {}, 'and follows from'), stepList(scenario, steps, `${path}.`));
  }
  if (edge.left_out != null) {
    const count = edge.left_out ? `${edge.left_out} more steps, which` : 'what';
    detail.append(make('p', {}, `and follows from ${count} the certificate has`));
  }
  if (!detail.children.length) detail.append(make('p', {}, 'Nothing else is needed for it.'));
  return detail;
}

function operations(scenario, refs) {
  return make('ul', { class: 'ops' }, ...refs.map((ref) => {
    const txn = scenario.transactions[ref.transaction];
    const op = txn.operations[ref.operation];
    const button = make('button', { type: 'button', title: 'Show it in the timeline' }, txn.name);
    button.addEventListener('click', () => tell('visit', ref.transaction));
    const when = op.time && op.time.invoked != null ? `, ${timeText(op.time.invoked - data.origin)}` : '';
    return make('li', {}, button, ' ', make('code', {}, scenarioOp(op)), ' ', make('span', { class: 'where' }, `${op.place}${when}`));
  }));
}

function scenarioOp(op) {
  if (op.words) return op.words;
  const rows = (op.rows || []).filter((row) => row.matched).map((row) => row.value === '?' ? row.key : `${row.key} = ${row.value}`).join(', ');
  switch (op.kind) {
    case 'read': case 'read-list': return `read ${op.key} = ${op.value}`;
    case 'read-other': return `read ${op.key} ≠ ${op.value}`;
    case 'append': return `append ${op.value} to ${op.key}`;
    case 'delete': return `delete ${op.key}`;
    case 'predicate-read': return `select ${op.value}: ${rows || 'nothing'}`;
    case 'predicate-update': return `update ${op.value}: ${rows || 'nothing'}`;
    default: return `${op.kind} ${op.key ?? ''} = ${op.value}`;
  }
}
