// A chunk where it stands: the picture of a page, or the text around it. All words go in as text, never as markup.

const TAGS = { kept: "mark", struck: "del", chunk: "span", around: "span", gap: "span" };

export default function ({ data, parentElement }) {
  const place = parentElement.querySelector(".place");
  const drawn = JSON.stringify(data);
  // When only the theme changed, or something beside it, what is being read must not move.
  if (place.drawn === drawn) return;
  place.drawn = drawn;
  place.replaceChildren(data.png ? drawPage(data) : drawText(data.lines));
  const first = data.still ? null : place.querySelector("[data-first]");
  const at = first?.getBoundingClientRect().top ?? 0;
  if (at < 0 || at > 0.6 * innerHeight) first.scrollIntoView({ block: "center" });
}

function drawPage({ png, width, height, alt, boxes }) {
  const page = make("div", "page");
  page.style.aspectRatio = `${width} / ${height}`;
  const picture = make("img");
  picture.src = `data:image/png;base64,${png}`;
  picture.alt = alt;
  page.append(picture);
  boxes.forEach((box, at) => {
    const mark = make("div", "box");
    mark.title = box.hint;
    mark.ariaHidden = "true";
    if (at === 0) mark.dataset.first = "";
    for (const side of ["left", "top", "width", "height"]) mark.style[side] = `${box[side]}%`;
    page.append(mark);
  });
  return page;
}

function drawText(lines) {
  const text = make("div", "text");
  // What scrolls must be reachable by keyboard.
  text.tabIndex = 0;
  text.role = "group";
  text.ariaLabel = "The chunk in its place";
  for (const line of lines) {
    const paragraph = make("p", `${line.heading ? "heading" : ""} ${line.apart ? "apart" : ""}`);
    paragraph.dir = "auto";
    for (const piece of line.pieces) paragraph.append(...drawPiece(piece));
    text.append(paragraph);
  }
  const first = text.querySelector("mark, del, .passage");
  if (first) first.dataset.first = "";
  return text;
}

function drawPiece({ kind, text, said, hint, score }) {
  const piece = make(TAGS[kind], kind);
  // Our own words have a direction of their own, so that they do not settle that of the paragraph.
  if (said) piece.append(Object.assign(make("span", "unseen", `${said}: `), { dir: "ltr" }));
  piece.append(text);
  if (hint) piece.title = hint;
  return score ? [piece, Object.assign(make("small", "", score), { dir: "ltr" })] : [piece];
}

function make(tag, name = "", words = "") {
  const made = document.createElement(tag);
  if (name.trim()) made.className = name.trim();
  made.textContent = words;
  return made;
}
