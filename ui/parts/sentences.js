// A chunk, one row a sentence: its text, kept or struck out, and its score against the cut-off. Rows stay the same
// elements when a threshold moves, so that a selection and the place that was scrolled to are not lost.

const SIGNS = { new: "+", gone: "−" };

export default function ({ data, parentElement }) {
  const box = parentElement.querySelector(".box");
  const list = parentElement.querySelector("ol");
  box.setAttribute("aria-label", data.label);
  box.classList.toggle("has-cutoff", data.cutoff !== null);
  box.style.setProperty("--cutoff", `${100 * (data.cutoff ?? 0)}%`);
  parentElement.querySelector(".note").textContent = data.note;
  parentElement.querySelector(".legend span").textContent = data.legend;
  data.rows.forEach((row, at) => draw(list.children[at] ?? list.appendChild(document.createElement("li")), row));
  while (list.children.length > data.rows.length) list.lastChild.remove();
  // What scrolls must be reachable by keyboard, and what does not must be no stop on the way.
  requestAnimationFrame(() => {
    if (box.scrollHeight > box.clientHeight) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  });
}

function draw(item, row) {
  const drawn = JSON.stringify(row);
  if (item.dataset.drawn === drawn) return;
  item.dataset.drawn = drawn;
  const state = row.kept === null ? "plain" : row.kept ? "kept" : "struck";
  item.className = row.starts ? `${state} starts` : state;
  item.title = row.hint;
  const change = make("span", `change ${row.change}`);
  change.setAttribute("aria-hidden", "true");
  change.textContent = SIGNS[row.change] ?? "";
  item.replaceChildren(change, text(row, state));
  if (state !== "plain") item.append(score(row));
}

function text(row, state) {
  const whole = make("span", "text");
  whole.dir = "auto";
  const inner = state === "struck" ? whole.appendChild(make("del")) : whole;
  for (const [words, isHeading] of row.lines) inner.append(make(isHeading ? "strong" : "span", "", words), " ");
  return whole;
}

function score(row) {
  const whole = make("span", "score");
  const bar = whole.appendChild(make("span", "bar"));
  if (row.score) bar.appendChild(document.createElement("i")).style.width = `${100 * row.score}%`;
  const number = make("b", "", row.score_text);
  number.setAttribute("aria-hidden", "true");
  whole.append(make("span", "unseen", row.spoken), number);
  return whole;
}

function make(tag, name = "", words = "") {
  const made = document.createElement(tag);
  if (name) made.className = name;
  made.textContent = words;
  return made;
}
