// The timeline: a row for each session, a bar for each transaction, drawn on a canvas. However long
// the history, only what is in sight is looked at, and bars that share a pixel are drawn once.

const ROW = 34;
const GUTTER = 112;
const AXIS = 24;
const ROWS_SHOWN_MAX = 14;

const view = {
  /** What is at the left edge, and how many pixels one unit takes. */
  left: 0, scale: 1, top: 0,
  width: 800, height: 300,
  rows: [],
  involved: new Map(),
  lit: new Set(),
  found: null,
  onlyInvolved: false,
  current: -1,
};

let canvas = null;
let pen = null;
let colors = {};

function readColors() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ['paper', 'ink', 'soft', 'line', 'card', 'accent', 'good', 'bad', 'open', 'bar', 'bar-text', 'wr', 'ww', 'rw', 'order', 'guess', 'bad-ground']) {
    colors[name] = style.getPropertyValue(`--${name}`).trim();
  }
}

const toX = (value) => GUTTER + (value - view.left) * view.scale;
const toValue = (x) => view.left + (x - GUTTER) / view.scale;

/** The sessions that have a row, in their order. */
function chooseRows() {
  const sessions = [];
  const wanted = new Set();
  for (const t of view.involved.keys()) wanted.add(history.sessionOf[t]);
  for (let s = 0; s < history.sessions.length; s++) {
    if (!view.onlyInvolved || !wanted.size || wanted.has(s)) sessions.push(s);
  }
  view.rows = sessions;
  view.rowOf = new Map(sessions.map((session, row) => [session, row]));
  view.height = AXIS + Math.min(sessions.length, ROWS_SHOWN_MAX) * ROW + 6;
  view.top = Math.min(view.top, Math.max(0, sessions.length * ROW - (view.height - AXIS)));
}

let isDrawing = false;
function draw() {
  if (isDrawing || !canvas) return;
  isDrawing = true;
  requestAnimationFrame(() => {
    isDrawing = false;
    paint();
  });
}

function paint() {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.parentElement.clientWidth;
  view.width = width;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(view.height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(view.height * ratio);
    canvas.style.height = `${view.height}px`;
  }
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.fillStyle = colors.paper;
  pen.fillRect(0, 0, width, view.height);
  const firstRow = Math.floor(view.top / ROW);
  const lastRow = Math.min(view.rows.length - 1, Math.floor((view.top + view.height - AXIS) / ROW));
  pen.save();
  pen.beginPath();
  pen.rect(GUTTER, AXIS, width - GUTTER, view.height - AXIS);
  pen.clip();
  paintEvents();
  for (let row = firstRow; row <= lastRow; row++) paintRow(row);
  paintInvolved(firstRow, lastRow);
  paintArrows();
  pen.restore();
  paintGutter(firstRow, lastRow);
  paintAxis();
}

const rowTop = (row) => AXIS + row * ROW - view.top;

/** The first transaction of a session that ends at or after a value. */
function firstInSight(session, value) {
  let low = history.bySession[session];
  let high = history.bySession[session + 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (history.end[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}

function paintRow(row) {
  const session = view.rows[row];
  const y = rowTop(row);
  if (row % 2 === 1) {
    pen.fillStyle = colors.card;
    pen.fillRect(GUTTER, y, view.width - GUTTER, ROW);
  }
  const end = history.bySession[session + 1];
  const right = toValue(view.width);
  let painted = -1;
  for (let t = firstInSight(session, view.left); t < end && history.start[t] <= right; t++) {
    if (view.involved.has(t)) continue;
    const x = toX(history.start[t]);
    const x2 = Math.max(x + 1, toX(history.end[t]));
    const isFound = view.found && view.found.has(t);
    if (x2 <= painted + 1 && !isFound) continue;
    painted = x2;
    pen.globalAlpha = view.found && !isFound ? 0.25 : 1;
    pen.fillStyle = isFound ? colors.accent : colors.bar;
    const outcome = history.outcomes[t];
    const barHeight = outcome === 'c' ? ROW - 14 : ROW - 22;
    const width = Math.max(1, x2 - x - 0.5);
    pen.fillRect(x, y + (ROW - barHeight) / 2, width, barHeight);
    if (width > 60) paintOps(t, x, width, y, false);
  }
  pen.globalAlpha = 1;
}

/** The operations inside a bar, as far as there is room for them. */
function paintOps(t, x, width, y, isInvolved) {
  const first = history.ops[t];
  const count = history.ops[t + 1] - first;
  if (!count) return;
  const share = width / count;
  const spans = isInvolved ? view.involved.get(t).spans : null;
  pen.font = '11px ui-monospace, Menlo, Consolas, monospace';
  pen.textBaseline = 'middle';
  if (share < 38) {
    paintCut(txnName(t), x + 5, y + ROW / 2, width - 8, isInvolved ? colors.paper : colors['bar-text']);
    return;
  }
  const rests = isInvolved ? view.involved.get(t).ops : null;
  for (let i = 0; i < count; i++) {
    const from = spans ? toX(spans[i][0]) : x + share * i;
    const room = spans ? Math.max(3, toX(spans[i][1]) - from) : share;
    if (from > view.width || from + room < GUTTER) continue;
    const isProof = rests && rests.has(i);
    if (isInvolved) {
      pen.fillStyle = colors.paper;
      pen.globalAlpha = isProof ? 0.95 : 0.28;
      pen.fillRect(from + 1, y + 8, Math.max(2, room - 2), ROW - 16);
      pen.globalAlpha = 1;
    }
    const color = isProof ? colors.ink : isInvolved ? colors.paper : colors['bar-text'];
    paintCut(opShort(first + i), from + 5, y + ROW / 2, room - 9, color);
  }
}

function paintCut(text, x, y, width, color) {
  const room = Math.floor(width / 6.7);
  if (room < 2) return;
  pen.fillStyle = color;
  pen.fillText(text.length > room ? `${text.slice(0, room - 1)}…` : text, x, y);
}

function paintInvolved(firstRow, lastRow) {
  for (const [t, it] of view.involved) {
    const row = view.rowOf.get(history.sessionOf[t]);
    if (row == null || row < firstRow || row > lastRow) continue;
    const y = rowTop(row);
    const x = toX(history.start[t]);
    const width = Math.max(5, toX(history.end[t]) - x);
    if (x > view.width || x + width < GUTTER) continue;
    pen.fillStyle = it.role === 'cycle' ? colors.bad : colors.order;
    pen.fillRect(x, y + 4, width, ROW - 8);
    if (view.lit.has(t) || view.current === t) {
      pen.strokeStyle = colors.ink;
      pen.lineWidth = 2.5;
      pen.strokeRect(x - 1.5, y + 2.5, width + 3, ROW - 5);
    }
    if (width > 34) {
      paintOps(t, x, width, y, true);
    } else {
      pen.font = '600 11px system-ui, sans-serif';
      pen.textBaseline = 'middle';
      const text = txnName(t);
      const beside = x + width + 4;
      pen.fillStyle = colors.paper;
      pen.globalAlpha = 0.8;
      pen.fillRect(beside - 2, y + 8, text.length * 6.6 + 4, ROW - 16);
      pen.globalAlpha = 1;
      pen.fillStyle = colors.bad;
      pen.fillText(text, beside, y + ROW / 2);
    }
  }
}

/** Where an edge leaves or enters a transaction: at the operation it rests on, if there is one. */
function anchor(it, edge, place) {
  const t = it.places[place];
  const known = view.involved.get(t);
  const ref = edge.operations.find((op) => op.transaction === place);
  const count = history.ops[t + 1] - history.ops[t];
  if (ref && known && known.spans) return (known.spans[ref.operation][0] + known.spans[ref.operation][1]) / 2;
  if (ref && count && !it.scenario.transactions[place].operations_left_out) {
    return history.start[t] + ((history.end[t] - history.start[t]) * (ref.operation + 0.5)) / count;
  }
  return (history.start[t] + history.end[t]) / 2;
}

/** The dependencies of the cycle, from bar to bar. */
function paintArrows() {
  const it = data.counterexamples[chosen];
  if (!it) return;
  edgesOf(it.scenario, chosenCase).forEach((edge, place) => {
    const ends = [it.places[edge.from], it.places[edge.to]];
    if (ends.some((t) => t == null)) return;
    const rows = ends.map((t) => view.rowOf.get(history.sessionOf[t]));
    if (rows.some((row) => row == null)) return;
    const [x, x2] = [toX(anchor(it, edge, edge.from)), toX(anchor(it, edge, edge.to))];
    const down = Math.sign(rows[1] - rows[0]);
    const y = rowTop(rows[0]) + ROW / 2 + down * 5;
    const y2 = rowTop(rows[1]) + ROW / 2 - down * 5;
    const isLit = view.lit.has(ends[0]) && view.lit.has(ends[1]);
    pen.strokeStyle = colors[edge.kind] || colors.order;
    pen.fillStyle = pen.strokeStyle;
    pen.lineWidth = isLit ? 3.5 : 1.8;
    pen.setLineDash(edge.assumed ? [3, 4] : []);
    pen.beginPath();
    pen.moveTo(x, y);
    const bend = down ? (y2 - y) / 2 : -ROW;
    const aside = (place % 2 ? 1 : -1) * 14;
    pen.bezierCurveTo(x + aside, y + bend, x2 + aside, down ? y2 - bend : y2 + bend, x2, y2);
    pen.stroke();
    pen.setLineDash([]);
    const tip = down || 1;
    pen.beginPath();
    pen.moveTo(x2, y2);
    pen.lineTo(x2 - 5, y2 - tip * 9);
    pen.lineTo(x2 + 5, y2 - tip * 9);
    pen.fill();
  });
}

function paintEvents() {
  if (!history.timed) return;
  pen.strokeStyle = colors.open;
  pen.lineWidth = 1;
  pen.setLineDash([4, 4]);
  for (const event of history.events) {
    const x = toX(event.time);
    if (x < GUTTER || x > view.width) continue;
    pen.beginPath();
    pen.moveTo(x, AXIS);
    pen.lineTo(x, view.height);
    pen.stroke();
  }
  pen.setLineDash([]);
}

function paintGutter(firstRow, lastRow) {
  pen.fillStyle = colors.paper;
  pen.fillRect(0, 0, GUTTER, view.height);
  pen.fillStyle = colors.line;
  pen.fillRect(GUTTER - 1, 0, 1, view.height);
  pen.font = '12px system-ui, sans-serif';
  pen.textBaseline = 'middle';
  const involved = new Set([...view.involved.keys()].map((t) => history.sessionOf[t]));
  for (let row = firstRow; row <= lastRow; row++) {
    const session = view.rows[row];
    const y = rowTop(row) + ROW / 2;
    if (y < AXIS) continue;
    const it = history.sessions[session];
    pen.fillStyle = involved.has(session) ? colors.bad : colors.soft;
    const text = it.endpoint ? `${it.name} · ${it.endpoint}` : it.name;
    pen.fillText(text.length > 16 ? `${text.slice(0, 15)}…` : text, 8, y);
  }
}

function paintAxis() {
  pen.fillStyle = colors.paper;
  pen.fillRect(0, 0, view.width, AXIS);
  pen.fillStyle = colors.line;
  pen.fillRect(0, AXIS - 1, view.width, 1);
  pen.font = '11px system-ui, sans-serif';
  pen.textBaseline = 'middle';
  pen.fillStyle = colors.soft;
  pen.fillText(history.timed ? 'time' : 'order of reading', 8, AXIS / 2);
  const wanted = 110 / view.scale;
  const power = 10 ** Math.floor(Math.log10(wanted));
  const step = Math.max(history.timed ? 1 : 1, [1, 2, 5, 10].map((it) => it * power).find((it) => it >= wanted) || wanted);
  const first = Math.ceil(view.left / step) * step;
  for (let value = first; toX(value) < view.width - 20; value += step) {
    const x = toX(value);
    if (x < GUTTER) continue;
    pen.fillStyle = colors.line;
    pen.fillRect(x, AXIS - 6, 1, 6);
    pen.fillStyle = colors.soft;
    pen.fillText(history.timed ? timeText(value) : String(Math.round(value)), x + 3, AXIS / 2);
  }
}

/** What lies at a point of the canvas, involved transactions first. */
function txnAt(x, y) {
  const row = Math.floor((y - AXIS + view.top) / ROW);
  const session = view.rows[row];
  if (session == null || x < GUTTER || y < AXIS) return -1;
  for (const t of view.involved.keys()) {
    const from = toX(history.start[t]);
    const to = Math.max(from + 5, toX(history.end[t]));
    if (history.sessionOf[t] === session && x >= from - 3 && x <= to + 3) return t;
  }
  const t = firstInSight(session, toValue(x - 2));
  return t < history.bySession[session + 1] && toX(history.start[t]) <= x + 2 ? t : -1;
}
