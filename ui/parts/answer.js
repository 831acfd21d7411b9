// An answer, sentence by sentence. A mark opens what supports its sentence, below the paragraph. Nothing is drawn anew
// unless it changed, so that what is open stays open when a threshold moves.

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".answer");
  const told = JSON.stringify(data);
  if (root.dataset.told === told) return;
  root.dataset.told = told;
  // What stands below stays where it is while an answer is away.
  root.style.minHeight = data.blocks.length ? "" : `${root.offsetHeight}px`;
  root.replaceChildren(...data.blocks.flatMap(block));
  if (data.message) root.append(make("p", "absent", data.message));
  if (data.sum) root.append(sum(data));
}

function block({ code, sentences }) {
  const line = make("p", code ? "code" : "");
  line.dir = "auto";
  const panel = make("div", "panel");
  panel.hidden = true;
  for (const one of sentences) line.append(sentence(one, line, panel), " ");
  return [line, panel];
}

function sentence(one, line, panel) {
  const whole = make("span", `sentence ${one.standing}`);
  const said = whole.appendChild(make("span", "said"));
  for (const [words, href, title] of one.parts) said.append(href ? link(words, href, title) : title ? unsupported(words, title) : words);
  if (!one.sign) return whole;
  const mark = make("button");
  mark.type = "button";
  mark.title = one.hint;
  mark.setAttribute("aria-expanded", "false");
  const sign = make("span", "", one.word ? `${one.sign} ` : one.sign);
  sign.setAttribute("aria-hidden", "true");
  mark.append(make("span", "unseen", one.spoken), sign, one.word, make("span", "unseen", one.after));
  mark.onclick = () => toggle(mark, one, line, panel);
  whole.append(mark);
  if (one.note) whole.append(make("span", "note", `⚠ ${one.note}`));
  return whole;
}

function toggle(mark, one, line, panel) {
  const opens = mark.getAttribute("aria-expanded") === "false";
  for (const other of line.querySelectorAll("button")) other.setAttribute("aria-expanded", "false");
  mark.setAttribute("aria-expanded", opens);
  panel.hidden = !opens;
  if (!opens) return;
  panel.replaceChildren(make("div", "", one.head), ...one.quotes.map(quote));
}

function quote({ text, source, href }) {
  const whole = make("div", "quote");
  whole.dir = "auto";
  whole.append(make("q", "", text), " ", link(source, href, ""));
  return whole;
}

function sum({ sum, about, marks }) {
  const whole = make("div", "sum");
  whole.append(make("b", "", sum));
  const more = whole.appendChild(make("details"));
  const list = make("dl");
  for (const [sign, words] of marks) list.append(make("dt", "", sign), make("dd", "", words));
  more.append(make("summary", "", "What this means"), make("div", "", about), list);
  return whole;
}

function unsupported(words, title) {
  const made = make("mark", "", words);
  made.title = title;
  return made;
}

function link(words, href, title) {
  const made = make("a", "", words);
  made.href = href;
  if (title) made.title = title;
  return made;
}

function make(tag, name = "", words = "") {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (words) made.textContent = words;
  return made;
}
