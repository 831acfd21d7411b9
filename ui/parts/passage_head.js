// The line of a chunk that opens and folds its card. A link to the chunk, wherever on the page, opens it too.

const followed = new WeakMap();

export default function ({ data, parentElement, setStateValue }) {
  const row = parentElement.querySelector(".row");
  const button = parentElement.querySelector("button");
  if (!button.hasAttribute("aria-expanded")) button.setAttribute("aria-expanded", data.open);
  const set = (open) => {
    if (open === (button.getAttribute("aria-expanded") === "true")) return;
    button.setAttribute("aria-expanded", open);
    setStateValue("open", open);
  };
  button.onclick = () => set(button.getAttribute("aria-expanded") !== "true");
  fill(parentElement, data);

  const follow = (event) => {
    const link = event.composedPath().find((node) => node.tagName === "A");
    if (link?.getAttribute("href") !== `#${data.anchor}`) return;
    set(true);
    row.scrollIntoView({ block: "start" });
    button.focus({ preventScroll: true });
  };
  if (!followed.has(parentElement) && location.hash === `#${data.anchor}`) row.scrollIntoView({ block: "start" });
  document.removeEventListener("click", followed.get(parentElement));
  document.addEventListener("click", follow);
  followed.set(parentElement, follow);
  return () => document.removeEventListener("click", follow);
}

function fill(root, data) {
  root.querySelector(".rank").textContent = data.rank;
  root.querySelector(".title").textContent = data.title;
  root.querySelector(".title").title = data.title;
  root.querySelector(".chips").replaceChildren(...data.chips.map(([kind, words]) => make(`chip ${kind}`, words)));
  const scores = [...data.scores.map(score), ...data.ungraded.map(ungraded), ...data.action.map(action)];
  root.querySelector(".scores").replaceChildren(...scores);
  const use = root.querySelector(".use");
  use.textContent = data.use;
  use.className = data.used ? "use used" : "use";
}

function score([name, value, text]) {
  const whole = make("score");
  const bar = make("bar");
  const filled = document.createElement("i");
  filled.style.width = `${100 * value}%`;
  bar.append(filled);
  const number = document.createElement("b");
  number.textContent = text;
  whole.append(make("name", name), " ", number, bar);
  return whole;
}

function ungraded(words) {
  return make("ungraded", words);
}

function action([tone, words]) {
  return make(`action ${tone}`, words);
}

function make(name, words = "") {
  const made = document.createElement("span");
  made.className = name;
  made.textContent = words;
  return made;
}
