// How the timeline is moved: buttons, keys, mouse and fingers; and what it tells when pointed at.

/** Pixels for one unit at the closest look: a nanosecond, or a place in the order. */
const CLOSEST = { time: 4, order: 400 };

function keepInside() {
  const room = view.width - GUTTER;
  const whole = history.last * 1.02 || 1;
  const scaleMin = room / whole;
  const scaleMax = Math.max(scaleMin * 20, history.timed ? CLOSEST.time : CLOSEST.order);
  view.scale = Math.min(Math.max(view.scale, scaleMin), scaleMax);
  view.left = Math.min(Math.max(view.left, -whole * 0.01), Math.max(0, whole - room / view.scale));
  const below = view.rows.length * ROW - (view.height - AXIS - 6);
  view.top = Math.min(Math.max(view.top, 0), Math.max(0, below));
}

function zoom(factor, x) {
  const at = x ?? GUTTER + (view.width - GUTTER) / 2;
  const value = toValue(at);
  view.scale *= factor;
  keepInside();
  view.left = value - (at - GUTTER) / view.scale;
  keepInside();
  draw();
}

function pan(dx, dy) {
  view.left -= dx / view.scale;
  view.top -= dy;
  keepInside();
  draw();
}

/** Shows this stretch, with some room around it. */
function showRange(from, to) {
  const room = view.width - GUTTER;
  const span = Math.max(to - from, history.timed ? 1 : 2);
  view.scale = room / (span * 1.5);
  view.left = from - span * 0.2;
  keepInside();
  draw();
}

function showAll() {
  view.scale = 0;
  view.left = 0;
  keepInside();
  draw();
}

function showInvolved() {
  const all = [...view.involved.keys()];
  if (!all.length) return showAll();
  showRange(Math.min(...all.map((t) => history.start[t])), Math.max(...all.map((t) => history.end[t])));
  const rows = all.map((t) => view.rowOf.get(history.sessionOf[t])).filter((row) => row != null);
  view.top = Math.min(...rows) * ROW;
  keepInside();
  draw();
  return undefined;
}

/** Goes to one transaction, and tells about it. */
function goTo(t) {
  view.current = t;
  if (!view.rowOf.has(history.sessionOf[t])) {
    view.onlyInvolved = false;
    byId('only-involved').checked = false;
    chooseRows();
  }
  const span = Math.max(history.end[t] - history.start[t], history.timed ? 1000 : 1);
  const from = toX(history.start[t]);
  const isSeen = from > GUTTER && from < view.width - 40 && span * view.scale > 8;
  if (!isSeen) showRange(history.start[t] - span * 2, history.end[t] + span * 2);
  const y = view.rowOf.get(history.sessionOf[t]) * ROW;
  if (y < view.top || y > view.top + view.height - AXIS - ROW) view.top = y - ROW;
  keepInside();
  draw();
  showTip(t, toX(history.start[t]) + 12, rowTop(view.rowOf.get(history.sessionOf[t])) + ROW);
  byId('said').textContent = `${txnName(t)}, ${OUTCOMES[history.outcomes[t]]}`;
}

function showTip(t, x, y) {
  const tip = byId('tip');
  if (t < 0) {
    tip.hidden = true;
    return;
  }
  const session = history.sessions[history.sessionOf[t]];
  const facts = [`session ${session.name}`, OUTCOMES[history.outcomes[t]]];
  if (session.endpoint) facts.push(session.endpoint);
  if (history.timed) facts.push(`${timeText(history.start[t])} to ${timeText(history.end[t])} (${timeText(history.end[t] - history.start[t])})`);
  if (history.places[t]) facts.push(`${history.unit} ${history.places[t]}`);
  const rests = view.involved.has(t) ? view.involved.get(t).ops : new Set();
  const ops = [];
  const count = history.ops[t + 1] - history.ops[t];
  for (let i = 0; i < Math.min(count, 14); i++) {
    ops.push(make('div', { class: rests.has(i) ? 'op involved' : 'op' }, opText(history.ops[t] + i)));
  }
  if (count > 14) ops.push(make('div', { class: 'op' }, `… ${count - 14} more`));
  tip.replaceChildren(make('b', {}, txnName(t)), make('div', {}, facts.join(', ')), ...ops);
  tip.hidden = false;
  const stage = tip.parentElement;
  tip.style.left = `${Math.max(4, Math.min(x, stage.clientWidth - tip.offsetWidth - 6))}px`;
  tip.style.top = `${y + tip.offsetHeight > stage.clientHeight ? Math.max(4, y - tip.offsetHeight - ROW - 6) : y}px`;
}

/** The involved transactions of the chosen violation, with the operations it rests on. */
function takeInvolved() {
  view.involved = new Map();
  const it = data.counterexamples[chosen];
  if (!it || !history) return;
  it.places.forEach((t, place) => {
    if (t == null) return;
    const txn = it.scenario.transactions[place];
    const ops = new Set();
    // Operations of long transactions may be left out: those that are not are found by their text.
    txn.operations.forEach((op, i) => { if (op.involved && !txn.operations_left_out) ops.add(i); });
    const times = txn.operations.map((op) => op.time || {});
    const isTimed = history.timed && !txn.operations_left_out && times.every((time) => time.invoked != null && time.completed != null);
    const spans = isTimed ? times.map((time) => [time.invoked - data.origin, time.completed - data.origin]) : null;
    view.involved.set(t, { role: txn.role, ops, spans });
  });
}

on('chosen', () => {
  if (!history) return;
  takeInvolved();
  chooseRows();
  showInvolved();
  showTip(-1);
});

on('light', (places) => {
  if (!history) return;
  const it = data.counterexamples[chosen];
  view.lit = new Set(places.map((place) => it.places[place]).filter((t) => t != null));
  draw();
});

on('visit', (place) => {
  const it = data.counterexamples[chosen];
  const t = it && it.places[place];
  if (t == null || !history) return;
  byId('timeline').scrollIntoView({ block: 'nearest' });
  goTo(t);
});

on('theme', () => {
  readColors();
  draw();
});

function setUpTimeline() {
  const box = byId('timeline-box');
  if (!history || !history.count) {
    box.append(make('p', { class: 'hint' }, 'The history is not at hand: make the page from the run or the history to see its timeline.'));
    return;
  }
  const button = (text, label, act) => {
    const it = make('button', { type: 'button', 'aria-label': label, title: label }, text);
    it.addEventListener('click', act);
    return it;
  };
  const many = history.sessions.length > ROWS_SHOWN_MAX;
  view.onlyInvolved = many && data.counterexamples.length > 0;
  const only = make('input', { type: 'checkbox', id: 'only-involved' });
  only.checked = view.onlyInvolved;
  only.addEventListener('change', () => {
    view.onlyInvolved = only.checked;
    chooseRows();
    keepInside();
    draw();
  });
  canvas = make('canvas', { tabindex: '0', role: 'img', 'aria-label': 'Timeline of sessions. Arrow keys move, plus and minus zoom, 0 shows all, c the counterexample, n and p the next and previous transaction of it.' });
  box.append(
    make('div', { class: 'bar' }, searchField(),
      make('span', { class: 'grow' }),
      data.counterexamples.length ? make('label', {}, only, 'only sessions involved') : null,
      button('−', 'Zoom out', () => zoom(1 / 1.6)), button('+', 'Zoom in', () => zoom(1.6)),
      button('All', 'Show the whole history', showAll),
      data.counterexamples.length ? button('Counterexample', 'Show the transactions of the counterexample', showInvolved) : null),
    make('div', { class: 'stage' }, canvas, make('div', { class: 'tip', id: 'tip', hidden: true })),
    make('p', { class: 'hint' }, `Drag to move, Ctrl and wheel or + and − to zoom; with the keyboard: arrows, +, −, 0, c, n, p.${history.whole ? '' : ` Of ${history.total.toLocaleString('en')} transactions, the ${history.count.toLocaleString('en')} around the counterexample are here.`}`),
    make('p', { class: 'hint', id: 'said', 'aria-live': 'polite' }),
    make('ul', { id: 'results' }));
  pen = canvas.getContext('2d');
  readColors();
  view.width = canvas.parentElement.clientWidth;
  chooseRows();
  showAll();
  listenToPointers();
  listenToKeys();
  new ResizeObserver(() => {
    view.width = canvas.parentElement.clientWidth;
    keepInside();
    draw();
  }).observe(canvas.parentElement);
}

function listenToPointers() {
  const held = new Map();
  let apart = 0;
  const at = (event) => {
    const area = canvas.getBoundingClientRect();
    return { x: event.clientX - area.left, y: event.clientY - area.top };
  };
  const distance = () => {
    const [a, b] = [...held.values()];
    return Math.hypot(a.x - b.x, a.y - b.y);
  };
  canvas.addEventListener('pointerdown', (event) => {
    held.set(event.pointerId, at(event));
    canvas.setPointerCapture(event.pointerId);
    canvas.classList.add('held');
    if (held.size === 2) apart = distance();
  });
  canvas.addEventListener('pointermove', (event) => {
    const now = at(event);
    const before = held.get(event.pointerId);
    if (!before) {
      const t = txnAt(now.x, now.y);
      showTip(t, now.x + 14, now.y + 14);
      return;
    }
    held.set(event.pointerId, now);
    if (held.size === 2) {
      const next = distance();
      const [a, b] = [...held.values()];
      if (apart > 0) zoom(next / apart, (a.x + b.x) / 2);
      apart = next;
    } else {
      showTip(-1);
      pan(now.x - before.x, event.pointerType === 'mouse' ? now.y - before.y : 0);
    }
  });
  const release = (event) => {
    const now = at(event);
    held.delete(event.pointerId);
    if (!held.size) canvas.classList.remove('held');
    if (event.type === 'pointerup' && event.pointerType !== 'mouse') showTip(txnAt(now.x, now.y), now.x + 10, now.y + 10);
  };
  for (const name of ['pointerup', 'pointercancel']) canvas.addEventListener(name, release);
  canvas.addEventListener('pointerleave', () => showTip(-1));
  canvas.addEventListener('wheel', (event) => {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      zoom(Math.exp(-event.deltaY / 300), at(event).x);
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      pan(-(event.deltaX || event.deltaY), 0);
    }
  }, { passive: false });
  canvas.addEventListener('dblclick', (event) => zoom(2.5, at(event).x));
}

function listenToKeys() {
  const step = (direction) => {
    const all = [...view.involved.keys()].sort((a, b) => history.start[a] - history.start[b]);
    if (!all.length) return;
    const next = (all.indexOf(view.current) + direction + all.length) % all.length;
    goTo(all[view.current < 0 ? 0 : next]);
  };
  const acts = {
    ArrowLeft: () => pan(80, 0), ArrowRight: () => pan(-80, 0), ArrowUp: () => pan(0, ROW), ArrowDown: () => pan(0, -ROW),
    '+': () => zoom(1.6), '=': () => zoom(1.6), '-': () => zoom(1 / 1.6), 0: showAll, c: showInvolved,
    n: () => step(1), p: () => step(-1), Escape: () => showTip(-1),
  };
  canvas.addEventListener('keydown', (event) => {
    const act = acts[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
}
