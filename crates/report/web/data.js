// What the page is about: the report, and the history in columns.
// Everything that comes from a history becomes text nodes, never markup.

const data = JSON.parse(document.getElementById('data').textContent);

const byId = (id) => document.getElementById(id);

/** An element with attributes and children; strings become text. */
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === true) element.setAttribute(name, '');
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

/** So many of something. */
function counted(count, what) {
  return `${count.toLocaleString('en')} ${what}${count === 1 ? '' : 's'}`;
}

const MARKS = { satisfied: '✓', violated: '✗', unknown: '?' };

const OUTCOMES = { c: 'committed', a: 'aborted', u: 'unknown' };

/** Running sums of lengths: where each part starts, and where the last ends. */
function offsets(lengths) {
  const starts = new Uint32Array(lengths.length + 1);
  for (let i = 0; i < lengths.length; i++) starts[i + 1] = starts[i] + lengths[i];
  return starts;
}

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%()*+,-./:;=?@[]^_`{|}~ \'';

/** What each character code counts in a packed number; the first half of the digits end one. */
const WORTH = new Uint8Array(128);
for (let d = 0; d < DIGITS.length; d++) WORTH[DIGITS.charCodeAt(d)] = d;

/** Calls with each number of a packed column. */
function eachNumber(packed, take) {
  let number = 0;
  for (let i = 0; i < packed.length; i++) {
    const worth = WORTH[packed.charCodeAt(i)];
    if (worth >= 45) {
      number = number * 45 + worth - 45;
    } else {
      take(number * 45 + worth);
      number = 0;
    }
  }
}

/** Where the sign is in the last bit; numbers may be too long for shifts. */
const signed = (number) => (number % 2 ? -(number + 1) / 2 : number / 2);

function unpacked(packed) {
  const numbers = [];
  eachNumber(packed, (number) => numbers.push(number));
  return numbers;
}

/** A column that was packed as differences. Times that are not all recorded come as they are. */
function summed(packed) {
  if (typeof packed !== 'string') return packed;
  const numbers = [];
  let last = 0;
  eachNumber(packed, (number) => numbers.push(last += signed(number)));
  return numbers;
}

/** The values of all operations: each a text, or near the last number that was written. */
function readValues(raw, kinds) {
  const values = [];
  let last = 0;
  let isText = false;
  eachNumber(raw.values, (number) => {
    if (isText) {
      isText = false;
      values.push(raw.texts[number]);
    } else if (number === 0) {
      isText = true;
    } else {
      const value = last + signed(number - 1);
      if ('waid'.includes(kinds[values.length])) last = value;
      values.push(value);
    }
  });
  return values;
}

/** The history's columns with the sums that make them quick to enter. */
function readHistory(packed) {
  if (!packed) return null;
  const patterns = unpacked(packed.txn_patterns).map((place) => packed.patterns[place]);
  const kinds = patterns.join('');
  const raw = {
    ...packed,
    kinds,
    invoked: summed(packed.invoked),
    completed: summed(packed.completed),
    layers: summed(packed.layers),
    places: summed(packed.places),
    op_keys: unpacked(packed.op_keys).map((number) => number - 1),
    values: readValues(packed, kinds),
  };
  const count = patterns.length;
  const history = {
    ...raw,
    count,
    ops: offsets(patterns.map((pattern) => pattern.length)),
    bySession: offsets(raw.session_txns),
    sessionOf: new Uint32Array(count),
    timed: Boolean(raw.invoked),
    start: new Float64Array(count),
    end: new Float64Array(count),
  };
  for (let s = 0; s < raw.sessions.length; s++) {
    history.sessionOf.fill(s, history.bySession[s], history.bySession[s + 1]);
  }
  placeInTime(history, raw);
  return history;
}

/** Gives every transaction a start and an end on the horizontal axis. */
function placeInTime(history, raw) {
  let last = 1;
  for (let t = 0; t < history.count; t++) {
    if (!history.timed) {
      history.start[t] = raw.layers[t] + 0.06;
      history.end[t] = raw.layers[t] + 0.94;
    } else {
      const from = raw.invoked[t];
      const to = raw.completed[t];
      // Ends that nobody recorded are drawn as an instant at the end that is known.
      history.start[t] = from ?? to ?? 0;
      history.end[t] = to ?? from ?? 0;
    }
    if (history.end[t] > last) last = history.end[t];
  }
  history.last = last;
}

const history = readHistory(data.history);

function txnName(t) {
  if (history.names) return history.names[t];
  const session = history.sessionOf[t];
  const first = history.bySession[session];
  const several = history.bySession[session + 1] - first > 1;
  const name = history.sessions[session].name;
  return several ? `${name}.${t - first + 1}` : name;
}

/** One operation on one line. */
function opText(o) {
  const value = String(history.values[o]);
  const key = history.op_keys[o] < 0 ? '' : history.keys[history.op_keys[o]];
  switch (history.kinds[o]) {
    case 'r': case 'l': return `read ${key} = ${value}`;
    case 'w': return `write ${key} = ${value}`;
    case 'a': return `append ${value} to ${key}`;
    case 'i': return `insert ${key} = ${value}`;
    case 'd': return `delete ${key}`;
    case 'o': return `read ${key} ≠ ${value}`;
    case 'p': return `select ${value}`;
    case 'u': return `update ${value}`;
    default: return `${key} ${value}`;
  }
}

/** The same in as few characters as a bar has room for. */
function opShort(o) {
  const key = history.op_keys[o] < 0 ? '' : history.keys[history.op_keys[o]];
  const letter = { r: 'r', l: 'r', w: 'w', a: '+', i: 'i', d: 'del', o: 'r≠', p: 'sel', u: 'upd', c: '' };
  return `${letter[history.kinds[o]]} ${key} ${history.values[o]}`;
}

/** Nanoseconds for people. */
function timeText(nanoseconds) {
  const size = Math.abs(nanoseconds);
  if (size < 1e3) return `${Math.round(nanoseconds)} ns`;
  if (size < 1e6) return `${(nanoseconds / 1e3).toFixed(1)} µs`;
  if (size < 1e9) return `${(nanoseconds / 1e6).toFixed(2)} ms`;
  return `${(nanoseconds / 1e9).toFixed(3)} s`;
}

/** Things that listen to each other: what is chosen, and what is pointed at. */
const listeners = {};
function on(event, listener) {
  (listeners[event] ||= []).push(listener);
}
function tell(event, ...details) {
  for (const listener of listeners[event] || []) listener(...details);
}
