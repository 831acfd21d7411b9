// Scores against thresholds: draws the data of crag_core/view/score_line.py. A mark moves under the hand at once; Python follows.

const SEND_EVERY = 60; // milliseconds
const SETTLE = 3000; // milliseconds in which the answer to an older move may still come in
const ROW = 26; // pixels, where there is room
const ROOM = { beside: 252, stacked: 170 }; // pixels for all rows of a line together
const NARROW = 640; // as in the style sheet
const OVER = 14; // pixels that names and flags may stand over the ends of the line
const SIGNS = { CORRECT: "✓", AMBIGUOUS: "?", INCORRECT: "✗" };
const ENDS = { zero: 0, one: 1 };
const pictures = new WeakMap();

export default function (component) {
  const { parentElement, data, setTriggerValue } = component;
  const root = parentElement.querySelector(".scores");
  let picture = pictures.get(parentElement);
  if (!picture || picture.root !== root) {
    picture?.stop();
    pictures.set(parentElement, (picture = new Picture(root)));
  }
  picture.send = setTriggerValue;
  picture.update(data);
  return () => {
    picture.stop();
    pictures.delete(parentElement);
  };
}

class Picture {
  constructor(root) {
    this.root = root;
    this.at = {}; // the thresholds as drawn
    this.held = null; // the name of the mark in a hand, or on the keys
    this.pending = []; // thresholds that were sent and not answered yet
    this.sentAt = -Infinity;
    this.watch = new ResizeObserver(() => this.resize());
    this.watch.observe(root);
    document.fonts.ready.then(() => this.resize());
    this.dismiss = (event) => event.key === "Escape" && this.tip?.classList.remove("shown");
    document.addEventListener("keydown", this.dismiss);
  }

  stop() {
    this.watch.disconnect();
    document.removeEventListener("keydown", this.dismiss);
    clearTimeout(this.timer);
    clearTimeout(this.settling);
  }

  update(data) {
    const before = this.data;
    this.data = data;
    this.pending.splice(0, this.pending.findIndex((sent) => this.isAnswer(sent)) + 1);
    this.takeThresholds();
    const shape = JSON.stringify([data.lines.map((line) => [line.part, line.marks, line.bands]), data.can_move]);
    if (shape !== this.shape) this.build();
    this.shape = shape;
    this.root.classList.toggle("idle", data.is_idle);
    this.fill();
    if (before && before.action !== data.action) this.status.textContent = data.words.join(" ");
  }

  // What Python says of the thresholds, unless a hand is on them or the answer to a later move is still to come.
  takeThresholds() {
    clearTimeout(this.settling);
    if (this.held) return;
    const left = this.sentAt + SETTLE - performance.now();
    if ((this.pending.length || this.timer) && left > 0) {
      this.settling = setTimeout(() => {
        this.takeThresholds();
        this.paint();
      }, left);
      return;
    }
    this.pending = [];
    this.at = Object.fromEntries(this.data.marks.map((mark) => [mark.name, mark.value]));
  }

  isAnswer(sent) {
    return this.data.marks.every((mark) => mark.value === sent[mark.name]);
  }

  // --- the parts that stay ------------------------------------------------------------------------------------------

  build() {
    const { data, root } = this;
    root.replaceChildren();
    root.setAttribute("role", "group");
    root.setAttribute("aria-label", "Scores of the chunks against the thresholds");
    const lines = make("div", "lines", root);
    lines.classList.toggle("two", data.lines.length > 1);
    this.flags = {};
    this.lines = data.lines.map((line) => this.buildLine(line, lines));
    this.tip = make("div", "tip", root);
    this.tip.setAttribute("aria-hidden", "true"); // the point's own label says the same
    this.tip.onpointerleave = () => this.hideTip();
    this.legend = make("ul", "legend", root);
    this.words = make("p", "unseen", root); // what the verdict says, for who cannot see the picture
    this.table = make("table", "", make("div", "unseen", root)); // a table alone is as wide as its words
    this.status = make("div", "unseen", root);
    this.status.setAttribute("role", "status");
  }

  buildLine(line, parent) {
    const box = make("section", "line", parent);
    const parts = { box };
    if (line.part) {
      const title = make("div", "title", box);
      make("b", "", title, line.title);
      parts.question = make("span", "", title);
    }
    parts.names = make("div", "names", box);
    parts.flags = make("div", "flags", box);
    parts.field = make("div", "field", box);
    parts.gutter = make("ol", "gutter", parts.field);
    parts.gutter.setAttribute("aria-hidden", "true"); // each point says its name
    const plot = make("div", "plot", parts.field);
    parts.scale = make("div", "scale", plot);
    parts.bands = line.bands.map((band) => {
      const drawn = make("div", `band ${band.action ?? "open"}`, parts.scale);
      span(drawn, edge(band.low), edge(band.high));
      const named = make("span", `name ${band.action ?? "open"}`, parts.names);
      if (band.action) make("span", "sign", named, SIGNS[band.action]).setAttribute("aria-hidden", "true");
      make("span", "", named, band.label);
      return named;
    });
    for (const name of line.marks) make("div", "stem", parts.scale).style.left = percent(edge(name));
    parts.compared = make("div", "compared", parts.scale);
    parts.points = make("div", "points", parts.scale);
    parts.points.setAttribute("role", "group");
    parts.points.onkeydown = (event) => this.step(event, parts.points);
    parts.comparedText = make("div", "told", box);
    buildAxis(make("div", "axis", box));
    parts.stays = line.marks.map((name) => this.buildStay(name, make("div", "stay", box)));
    for (const name of line.marks) this.buildFlag(name, parts);
    return parts;
  }

  buildStay(name, box) {
    const bar = make("div", "bar", make("div", "lane", box));
    const dot = make("div", "dot", bar.parentElement);
    dot.style.left = percent(edge(name));
    const note = make("div", "unseen", box); // the verdict says it
    note.id = `stays-${name}`;
    return { name, bar, note };
  }

  buildFlag(name, parts) {
    const flag = make("div", `flag ${name}`, parts.flags);
    this.flags[name] = { flag, parts, text: make("span", "", flag) };
    if (!this.data.can_move) return;
    flag.classList.add("movable");
    flag.tabIndex = 0;
    flag.setAttribute("role", "slider");
    flag.setAttribute("aria-describedby", `stays-${name}`);
    flag.onpointerdown = (event) => this.take(event, name);
    flag.onpointermove = (event) => this.drag(event, name);
    flag.onpointerup = flag.onpointercancel = flag.onlostpointercapture = () => this.release();
    flag.onkeydown = (event) => this.press(event, name);
    flag.onkeyup = flag.onblur = () => this.release();
  }

  // --- what changes with the data -----------------------------------------------------------------------------------

  fill() {
    const { data } = this;
    this.root.classList.toggle("with-web", data.rows.some((row) => row.is_web));
    data.lines.forEach((line, at) => this.fillLine(line, this.lines[at]));
    fillLegend(this.legend, data);
    this.words.textContent = data.words.join(" ");
    fillTable(this.table, data.table);
    this.paint();
    this.clear();
  }

  resize() {
    this.place();
    this.clear();
  }

  // Where names stand in the rows: no name over a number or a mark.
  clear() {
    for (const name of this.root.querySelectorAll(".inline")) {
      name.hidden = false;
      const box = name.getBoundingClientRect();
      const others = [...name.parentElement.children].filter((other) => other !== name);
      name.hidden = others.some((other) => touches(box, other.getBoundingClientRect()));
    }
  }

  fillLine(line, parts) {
    const { data } = this;
    parts.box.classList.toggle("unasked", !line.is_asked);
    parts.points.setAttribute("aria-label", `Chunks by ${line.title.toLowerCase() || "score"}; arrow keys go from one to the next`);
    const key = JSON.stringify([line.points, data.rows]);
    if (key !== parts.key) this.fillPoints(line, parts);
    parts.key = key;
    if (parts.question) parts.question.textContent = `: ${line.question}`;
    parts.compared.hidden = line.compared === null;
    parts.compared.style.left = percent(line.compared ?? 0);
    parts.comparedText.textContent = line.compared_text || "\u00a0"; // its room stays
    for (const { name, bar, note } of parts.stays) {
      const mark = data.marks.find((one) => one.name === name);
      span(bar, mark.low, mark.high);
      bar.className = `bar ${data.action}`;
      bar.replaceChildren();
      if (mark.below) make("i", `end low ${mark.below}`, bar, SIGNS[mark.below]);
      if (mark.above) make("i", `end high ${mark.above}`, bar, SIGNS[mark.above]);
      note.textContent = mark.text;
      bar.title = mark.text;
    }
  }

  fillPoints(line, parts) {
    const { rows } = this.data;
    const focused = parts.points.contains(deepFocus(this.root)) ? deepFocus(this.root).dataset.id : null;
    parts.points.replaceChildren();
    parts.gutter.replaceChildren();
    this.hideTip();
    rows.forEach((row, at) => {
      const named = make("li", `row-name ${row.edit}`, parts.gutter);
      make("span", "number", named, row.number);
      fillName(make("span", "file", named), row.name);
      const point = this.makePoint(row, line.points[at], parts.points, at);
      named.onpointerenter = () => this.showTip(point, row);
      named.onpointerleave = () => this.hideTip();
      named.onclick = () => this.pick(row);
      if (row.id === focused) point.focus({ preventScroll: true });
    });
    const buttons = [...parts.points.querySelectorAll("button")];
    const reached = buttons.find((button) => button.dataset.id === focused) ?? buttons[0];
    for (const button of buttons) button.tabIndex = button === reached ? 0 : -1;
  }

  makePoint(row, point, parent, at) {
    const line = make("div", `row ${row.edit}`, parent);
    line.style.top = `calc(var(--pitch) * ${at})`;
    const value = point.value;
    const button = make("button", "point", line);
    button.type = "button";
    button.dataset.id = row.id;
    button.classList.toggle("ungraded", value === null);
    button.style.left = value === null ? "-18px" : percent(value);
    make("span", `mark ${row.is_web ? "web" : "corpus"} ${row.edit}`, button);
    button.classList.toggle("decides", point.decides);
    button.setAttribute("aria-label", [row.title, ...row.remarks].join(". "));
    button.onpointerenter = button.onfocus = () => this.showTip(button, row);
    button.onpointerleave = button.onblur = () => this.hideTip();
    button.onclick = (event) => this.pick(row, event.detail === 0);
    const note = make("span", "value", line, point.text);
    if (point.decides) make("span", "why", note, "decides");
    beside(note, value);
    const inline = make("span", `inline ${value > 0.5 ? "at-left" : "at-right"}`, line, row.name);
    inline.dir = "auto";
    inline.setAttribute("aria-hidden", "true");
    return button;
  }

  // --- the thresholds, as they move ---------------------------------------------------------------------------------

  paint() {
    const { data } = this;
    this.root.style.setProperty("--lower", this.at.lower);
    this.root.style.setProperty("--upper", this.at.upper);
    for (const mark of this.data.marks) {
      const { flag, text } = this.flags[mark.name] ?? {};
      if (!flag) continue;
      const [least, most] = this.reach(mark.name);
      const value = exact(this.at[mark.name]);
      text.textContent = `${data.lines.length > 1 ? "bar" : mark.called} ${value}`; // the line's title tells which
      flag.title = mark.meaning;
      if (!this.data.can_move) continue;
      const note = { label: `${mark.called}: ${mark.meaning}`, valuemin: least, valuemax: most };
      Object.assign(note, { valuenow: this.at[mark.name], valuetext: `${mark.called} ${value}` });
      for (const [name, one] of Object.entries(note)) flag.setAttribute(`aria-${name}`, one);
    }
    this.place();
  }

  // Names and flags as near to their places as they can be without touching.
  place() {
    if (!this.lines || !this.root.clientWidth) return;
    this.size();
    this.lines.forEach((parts, at) => this.placeLine(parts, this.data.lines[at]));
  }

  placeLine(parts, line) {
    const scale = parts.scale.getBoundingClientRect();
    const edges = { ...ENDS, ...this.at };
    const names = [];
    line.bands.forEach((band, at) => {
      const [named, low, high] = [parts.bands[at], edges[band.low], edges[band.high]];
      named.hidden = high <= low;
      if (!named.hidden) names.push({ element: named, at: (low + high) / 2, part: 0.5 });
    });
    spread(parts.names, names, scale, 14);
    const flag = (name) => ({ element: this.flags[name].flag, at: this.at[name], part: name === "lower" ? 1 : 0 });
    spread(parts.flags, line.marks.map(flag), scale, 6);
    if (line.compared !== null) {
      spread(parts.box, [{ element: parts.comparedText, at: line.compared, part: 0.5 }], scale, 0);
    }
  }

  // Many rows are drawn thin, and very many without names, so that the picture never grows tall.
  size() {
    const { root, data } = this;
    const isStacked = data.lines.length > 1 && root.clientWidth <= NARROW;
    const rows = data.rows.length;
    const pitch = Math.max(4, Math.min(ROW, ROOM[isStacked ? "stacked" : "beside"] / rows));
    root.style.setProperty("--pitch", `${pitch}px`);
    root.style.setProperty("--rows", rows);
    root.dataset.size = pitch >= 17 ? "roomy" : pitch >= 10.5 ? "thin" : "tiny";
  }

  take(event, name) {
    if (event.button !== 0) return;
    const { flag, parts } = this.flags[name];
    const scale = parts.scale.getBoundingClientRect();
    this.grip = event.clientX - scale.left - this.at[name] * scale.width;
    flag.setPointerCapture(event.pointerId);
    flag.classList.add("held");
    flag.focus({ preventScroll: true });
    event.preventDefault();
    this.held = name;
  }

  drag(event, name) {
    if (this.held !== name || !this.flags[name].flag.hasPointerCapture(event.pointerId)) return;
    const scale = this.flags[name].parts.scale.getBoundingClientRect();
    this.move(name, (event.clientX - this.grip - scale.left) / scale.width);
  }

  press(event, name) {
    const { step, page } = this.data;
    const on = { ArrowRight: step, ArrowUp: step, PageUp: page };
    const back = { ArrowLeft: -step, ArrowDown: -step, PageDown: -page };
    const by = { ...on, ...back, Home: -Infinity, End: Infinity }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    this.held = name;
    this.move(name, Math.min(Math.max(this.at[name] + by, 0), 1));
  }

  // A threshold stops at the other one, unless each has a line of its own.
  reach(name) {
    if (this.data.lines.length > 1) return [0, 1];
    return name === "lower" ? [0, this.at.upper] : [this.at.lower, 1];
  }

  move(name, value) {
    const [least, most] = this.reach(name);
    const snapped = Number((Math.round(value / this.data.step) * this.data.step).toFixed(6));
    const next = Math.min(Math.max(snapped, least), most);
    if (next === this.at[name]) return;
    this.at = { ...this.at, [name]: next };
    this.hasMoved = true;
    this.paint();
    this.tell();
  }

  release() {
    if (!this.held) return;
    this.flags[this.held].flag.classList.remove("held");
    this.held = null;
    if (this.hasMoved) {
      this.isDone = true;
      this.tell();
    } else {
      this.takeThresholds();
      this.paint();
    }
    this.hasMoved = false;
  }

  // Sends where the marks are, not too often, and always once more at the end.
  tell() {
    clearTimeout(this.timer);
    const left = this.sentAt + SEND_EVERY - performance.now();
    if (left > 0) {
      this.timer = setTimeout(() => this.tell(), left);
      return;
    }
    this.timer = null;
    this.pending.push(this.at);
    this.sentAt = performance.now();
    this.send("moved", { ...this.at, done: Boolean(this.isDone) });
    this.isDone = false;
  }

  // --- points -------------------------------------------------------------------------------------------------------

  step(event, points) {
    const moves = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
    if (!(event.key in moves)) return;
    event.preventDefault();
    const buttons = [...points.querySelectorAll("button")];
    const now = buttons.indexOf(event.target);
    const next = buttons[Math.min(Math.max(now + moves[event.key], 0), buttons.length - 1)];
    buttons[now].tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }

  pick(row, byKey = false) {
    const card = document.getElementById(row.anchor);
    if (!card) return;
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    card.scrollIntoView({ behavior: isStill ? "auto" : "smooth", block: "start" });
    if (byKey) {
      card.tabIndex = -1;
      card.focus({ preventScroll: true });
    }
  }

  showTip(button, row) {
    clearTimeout(this.hiding);
    const { tip, root } = this;
    tip.replaceChildren();
    make("b", "", tip, row.title).dir = "auto";
    for (const remark of row.remarks) make("span", "", tip, remark).dir = "auto";
    tip.classList.add("shown");
    const box = root.getBoundingClientRect();
    const point = button.getBoundingClientRect();
    const [width, height] = [tip.offsetWidth, tip.offsetHeight];
    const x = point.left + point.width / 2 - box.left;
    const y = point.top + point.height / 2 - box.top;
    const isBeside = x + 16 + width <= box.width || x - 16 - width >= 0;
    const left = x + 16 + width <= box.width ? x + 16 : isBeside ? x - 16 - width : (box.width - width) / 2;
    tip.style.left = `${left}px`;
    tip.style.top = `${isBeside ? Math.max(y - height / 2, 0) : y + 14}px`;
  }

  hideTip() {
    clearTimeout(this.hiding);
    this.hiding = setTimeout(() => {
      if (!this.tip.matches(":hover")) this.tip.classList.remove("shown");
    }, 80);
  }
}

// --- small things ----------------------------------------------------------------------------------------------------

function make(tag, name, parent, text) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = text;
  parent?.append(element);
  return element;
}

// Cut in the middle where it is too long: its end tells the page and one file from another.
function fillName(box, name) {
  box.dir = "auto";
  const at = name.length > 24 ? Math.max(name.length - 18, Math.ceil(name.length / 2)) : name.length;
  make("span", "name-start", box, name.slice(0, at));
  make("span", "", box, name.slice(at));
}

const edge = (name) => (name in ENDS ? ENDS[name] : `var(--${name})`);
const percent = (value) => `calc(${value} * 100%)`;

function span(element, low, high) {
  element.style.left = percent(low);
  element.style.width = `calc((${high} - ${low}) * 100%)`;
}

// A threshold as it is, with two decimals at least.
function exact(value) {
  const [whole, rest = ""] = String(Number(value.toFixed(6))).split(".");
  return `${whole}.${rest.padEnd(2, "0")}`;
}

function deepFocus(root) {
  return root.getRootNode().activeElement;
}

// The number of a point: to its right, to its left near the end of the line.
function beside(note, value) {
  if (value === null) {
    note.style.left = percent(0);
    return;
  }
  const isLeft = value > 0.8;
  note.classList.add(isLeft ? "on-left" : "on-right");
  note.style[isLeft ? "right" : "left"] = percent(isLeft ? 1 - value : value);
}

// Puts `part` of the width of each element left of its place `at`, as far as order, gap and room allow.
function spread(box, wishes, scale, gap) {
  const outer = box.getBoundingClientRect();
  const start = scale.left - outer.left;
  const [from, to] = [Math.max(start - OVER, 0), Math.min(start + scale.width + OVER, outer.width)];
  const widths = wishes.map(({ element }) => element.offsetWidth);
  const needed = widths.reduce((sum, width) => sum + width + gap, -gap);
  if (wishes.length > 1) box.classList.toggle("crowded", needed > to - from);
  const lefts = [];
  wishes.forEach(({ at, part }, n) => {
    const wished = start + at * scale.width - part * widths[n];
    lefts.push(Math.max(wished, n ? lefts[n - 1] + widths[n - 1] + gap : from));
  });
  for (let n = wishes.length - 1, limit = to; n >= 0; n--) {
    lefts[n] = Math.max(Math.min(lefts[n], limit - widths[n]), from);
    limit = lefts[n] - gap;
    wishes[n].element.style.left = `${lefts[n]}px`;
  }
}

function touches(one, other) {
  return one.width > 0 && one.left < other.right && other.left < one.right;
}

function buildAxis(axis) {
  axis.setAttribute("aria-hidden", "true");
  const scale = make("div", "ticks", axis);
  for (let tick = 0; tick <= 10; tick++) {
    const number = make("span", tick % 5 ? "tick minor" : "tick", scale, (tick / 10).toFixed(1));
    number.style.left = percent(tick / 10);
  }
}

function fillLegend(legend, data) {
  const key = JSON.stringify(data.legend);
  if (legend.dataset.key === key) return;
  legend.dataset.key = key;
  legend.replaceChildren();
  for (const [kind, meaning] of data.legend) {
    const entry = make("li", "", legend);
    make("span", `mark ${kind}`, entry);
    make("span", "", entry, meaning);
  }
}

function fillTable(table, rows) {
  const key = JSON.stringify(rows);
  if (table.dataset.key === key) return;
  table.dataset.key = key;
  table.replaceChildren();
  make("caption", "", table, "Scores of the chunks");
  const [head, ...body] = rows;
  const first = make("tr", "", make("thead", "", table));
  for (const cell of head) make("th", "", first, cell).scope = "col";
  const rest = make("tbody", "", table);
  for (const cells of body) {
    const row = make("tr", "", rest);
    const [first, ...others] = cells;
    make("th", "", row, first).scope = "row";
    for (const cell of others) make("td", "", row, cell);
  }
}
