// Draws the path of a run: one button a stage, in place by its id, and the lines between them behind the buttons.
// Everything that comes in is text; nothing of it is ever read as markup.

const SVG = "http://www.w3.org/2000/svg";

// Strokes on a field of 16 by 16.
const ICONS = {
  retrieve: "M7 2.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9 M10.4 10.4L14 14",
  grade: "M2.5 11.5a5.5 5.5 0 0 1 11 0 M8 11.5L10.8 7.6",
  route: "M8 14V9.5L3.5 5 M8 9.5L12.5 5 M3.2 8.2V4.7H6.7 M12.8 8.2V4.7H9.3",
  again: "M13 8a5 5 0 1 1-1.6-3.7 M13 2.2V5H10.2",
  refine: "M2.5 3.5H13.5L9.6 8.4V13L6.4 11.3V8.4Z",
  page: "M4 2.5H9.5L12 5V13.5H4Z M6.2 7H9.8 M6.2 10H9.8",
  quote: "M3 10.5V7.5C3 5.8 4 4.9 5.8 4.6 M3 7.6H6.2V10.8H3Z M9.4 10.5V7.5C9.4 5.8 10.4 4.9 12.2 4.6 M9.4 7.6H12.6V10.8H9.4Z",
  discard: "M4.5 4.5L11.5 11.5 M11.5 4.5L4.5 11.5",
  rewrite: "M3 13L3.8 10L10.8 3L13 5.2L6 12.2Z M9.3 4.5L11.5 6.7",
  search: "M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0-11 M2.5 8H13.5 M8 2.5C5.4 5.6 5.4 10.4 8 13.5 M8 2.5C10.6 5.6 10.6 10.4 8 13.5",
  assemble: "M8 2.5L13.5 5.4L8 8.3L2.5 5.4Z M2.8 8.4L8 11.1L13.2 8.4 M2.8 11L8 13.7L13.2 11",
  answer: "M2.5 3.5H13.5V11H7.5L4.5 13.5V11H2.5Z",
  check: "M3 8.5L6.5 12L13 4.5",
  alert: "M8 3.2V9 M8 12.3V12.6",
  stop: "M5 5H11V11H5Z",
  wait: "M4.5 2.8H11.5 M4.5 13.2H11.5 M5.2 2.8C5.2 6.4 10.8 9.6 10.8 13.2 M10.8 2.8C10.8 6.4 5.2 9.6 5.2 13.2",
};
ICONS.grade_web = ICONS.grade;

const BEND = 8;
const mounted = new WeakMap();

export default function ({ data, parentElement }) {
  const nav = parentElement.querySelector(".path");
  if (!nav) return undefined;
  if (!mounted.has(parentElement)) mounted.set(parentElement, mount(nav));
  const view = mounted.get(parentElement);
  view.lines = data.lines;
  view.isSmall = Boolean(data.is_small);
  nav.toggleAttribute("data-small", view.isSmall);
  view.list.inert = view.isSmall; // a picture
  if (view.isSmall) nav.setAttribute("role", "img");
  place(view, data);
  connect(view);
  return () => {
    view.watch.disconnect();
    mounted.delete(parentElement);
    for (const node of [view.back, ...[...view.stages.values()].map((made) => made.item)]) node.remove();
  };
}

function mount(nav) {
  const back = svg("svg", { class: "lines", "aria-hidden": "true" });
  const layers = { off: svg("g"), would: svg("g"), on: svg("g") }; // what is taken lies on top
  back.append(layers.off, layers.would, layers.on);
  nav.prepend(back);
  const list = nav.querySelector("ol");
  const view = { nav, back, layers, list, stages: new Map(), drawn: new Map(), lines: [] };
  view.watch = new ResizeObserver(() => connect(view));
  view.watch.observe(nav);
  return view;
}

// The stages

function place(view, { stages, label }) {
  for (const [id, old] of view.stages) {
    if (stages.some((stage) => stage.id === id)) continue;
    old.item.remove();
    view.stages.delete(id);
  }
  stages.forEach((stage, at) => {
    const known = view.stages.get(stage.id) ?? build();
    view.stages.set(stage.id, known);
    // Moved only where it must be: an element that is moved loses the focus.
    if (view.list.children[at] !== known.item) view.list.insertBefore(known.item, view.list.children[at] ?? null);
    show(known, stage);
    known.button.onclick = () => reveal(stage.anchor);
  });
  set(view.nav, "aria-label", label);
}

function build() {
  const made = { item: element("li", "stage"), button: element("button") };
  for (const name of ["head", "dot", "title", "told"]) made[name] = element("span", name);
  made.button.type = "button";
  made.told.dir = "auto";
  made.shape = svg("path");
  const icon = svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" });
  icon.append(made.shape);
  made.dot.append(icon);
  made.head.append(made.dot, made.title);
  made.button.append(made.head, made.told);
  made.item.append(made.button);
  return made;
}

function show(made, stage) {
  set(made.item, "data-id", stage.id);
  set(made.item, "data-state", stage.state);
  set(made.item, "data-tone", stage.tone);
  set(made.shape, "d", ICONS[stage.icon] ?? "");
  set(made.button, "aria-label", stage.name);
  set(made.button, "title", stage.tip);
  if (stage.state === "running") set(made.button, "aria-current", "step");
  else made.button.removeAttribute("aria-current");
  say(made.title, stage.shown);
  say(made.told, stage.headline);
}

function reveal(anchor) {
  const target = anchor && document.getElementById(anchor);
  if (!target) return;
  if (!target.hasAttribute("tabindex")) {
    target.setAttribute("tabindex", "-1");
    target.addEventListener("blur", () => target.removeAttribute("tabindex"), { once: true });
  }
  target.focus({ preventScroll: true });
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  target.scrollIntoView({ behavior: calm ? "auto" : "smooth", block: "start" });
}

// The lines

function connect(view) {
  const origin = view.nav.getBoundingClientRect();
  const isWide = getComputedStyle(view.nav).getPropertyValue("--wide").trim() === "1";
  const spots = new Map();
  for (const [id, made] of view.stages) spots.set(id, spot(made, origin, view.isSmall));
  const left = new Map(view.drawn);
  for (const line of view.lines) {
    const [start, end] = [spots.get(line.from), spots.get(line.to)];
    if (!start || !end) continue;
    const name = `${line.from} ${line.to}`;
    const path = view.drawn.get(name) ?? svg("path", { class: "line" });
    const layer = view.layers[line.how] ?? view.layers.off;
    if (path.parentNode !== layer) layer.append(path);
    set(path, "data-how", line.how);
    set(path, "data-tone", line.tone);
    set(path, "d", (isWide || view.isSmall ? across : down)(line, start, end, spots));
    view.drawn.set(name, path);
    left.delete(name);
  }
  for (const [name, path] of left) {
    path.remove();
    view.drawn.delete(name);
  }
}

function spot(made, origin, isSmall) {
  const dot = made.dot.getBoundingClientRect();
  const title = isSmall ? dot : made.title.getBoundingClientRect();
  const [x, y] = [dot.left + dot.width / 2 - origin.left, dot.top + dot.height / 2 - origin.top];
  return { x, y, before: x - dot.width / 2 - 3, after: title.right - origin.left + 6, half: dot.height / 2 + 2 };
}

function across(line, start, end, spots) {
  const fork = (spots.get("refine") ?? end).before - 16;
  const join = (spots.get("assemble") ?? spots.get("answer") ?? end).before - 10;
  switch (`${line.from} ${line.to}`) {
    case "route again":
      return route([start.after, start.y], [fork, start.y], [fork, end.y], [end.after, end.y]) + head(line, end.after, end.y, -1, 0);
    case "again retrieve": {
      const edge = end.before - 9;
      return route([start.before, start.y], [edge, start.y], [edge, end.y], [end.before, end.y]) + head(line, end.before, end.y, 1, 0);
    }
    case "route rewrite":
    case "route search":
      return route([start.after, start.y], [fork, start.y], [fork, end.y], [end.before, end.y]);
    case "grade_web assemble":
    case "search answer":
      return route([start.after, start.y], [join, start.y], [join, end.y], [end.before, end.y]);
    case "answer check": {
      const edge = Math.max(start.after, end.after) + 12;
      return route([start.after, start.y], [edge, start.y], [edge, end.y], [end.after, end.y]) + head(line, end.after, end.y, -1, 0);
    }
    default:
      return route([start.after, start.y], [Math.max(end.before, start.after), end.y]);
  }
}

function down(line, start, end) {
  const [leave, arrive] = [start.y + start.half, end.y - end.half];
  switch (`${line.from} ${line.to}`) {
    case "route again":
      return route([start.x, leave], [start.x, end.y], [end.x + end.half, end.y]) + head(line, end.x + end.half, end.y, -1, 0);
    case "again retrieve":
      return route([start.x, start.y - start.half], [start.x, end.y], [end.x - end.half, end.y]) + head(line, end.x - end.half, end.y, 1, 0);
    case "route rewrite":
      return route([start.x, leave], [start.x, leave + 9], [end.x, leave + 9], [end.x, arrive]);
    case "grade_web assemble":
      return route([start.x - start.half, start.y], [end.x, start.y], [end.x, arrive]);
    default:
      return route([start.x, leave], [end.x, arrive]);
  }
}

// A way through points, its corners rounded.
function route(...points) {
  const [first, ...rest] = points;
  let way = `M${xy(first)}`;
  rest.forEach((point, index) => {
    const next = rest[index + 1];
    if (!next) {
      way += `L${xy(point)}`;
      return;
    }
    const came = index ? rest[index - 1] : first;
    way += `L${xy(towards(point, came))}Q${xy(point)} ${xy(towards(point, next))}`;
  });
  return way;
}

function towards([x, y], [toX, toY]) {
  const length = Math.hypot(toX - x, toY - y) || 1;
  const step = Math.min(BEND, length / 2) / length;
  return [x + (toX - x) * step, y + (toY - y) * step];
}

function head(line, x, y, dx, dy) {
  if (line.how !== "on") return "";
  const [backX, backY] = [x - 5 * dx, y - 5 * dy];
  return `M${xy([backX + 4 * dy, backY - 4 * dx])}L${xy([x, y])}L${xy([backX - 4 * dy, backY + 4 * dx])}`;
}

function xy([x, y]) {
  return `${x.toFixed(1)} ${y.toFixed(1)}`;
}

// The document

function element(tag, name = "") {
  const made = document.createElement(tag);
  if (name) made.className = name;
  return made;
}

function svg(tag, attributes = {}) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function set(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
