// Plays the story of a run: draws the data of crag_core/view/story one step at a time, on the Demo page and in the file.
// Everything that comes in is text; nothing of it is ever read as markup.

const SIGNS = { correct: "✓", ambiguous: "?", incorrect: "✗", plain: "→" };
const PLAIN_KEYS = { ArrowRight: 1, PageDown: 1, " ": 1, ArrowLeft: -1, PageUp: -1 };
const RESTING = 2400; // milliseconds a step is shown for, and more for each word
const PER_WORD = 260;
const SLIDE = 900; // milliseconds the bar takes to its goal
const NARROW = 620; // pixels, as in the style sheet: from there down a step is scrolled, and not made smaller
const SMALLEST = 0.6; // of its letters, to make a step fit into the window
const mounted = new WeakMap();

export default function mount(component) {
  const { parentElement, data, setTriggerValue } = component;
  const root = parentElement.querySelector(".story");
  if (!root) return undefined;
  let player = mounted.get(parentElement);
  if (!player || player.root !== root) {
    player?.stop();
    mounted.set(parentElement, (player = new Player(root)));
  }
  player.send = setTriggerValue ?? (() => {});
  player.take(data);
  return () => {
    player.stop();
    mounted.delete(parentElement);
  };
}

class Player {
  constructor(root) {
    this.root = root;
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
    this.onKey = (event) => this.key(event);
    this.onFull = () => this.drawFull();
    document.addEventListener("keydown", this.onKey);
    document.addEventListener("fullscreenchange", this.onFull);
    this.onSize = () => this.fit();
    addEventListener("resize", this.onSize);
    document.fonts.ready.then(this.onSize);
  }

  stop() {
    this.pause();
    cancelAnimationFrame(this.frame);
    document.removeEventListener("keydown", this.onKey);
    document.removeEventListener("fullscreenchange", this.onFull);
    removeEventListener("resize", this.onSize);
  }

  // A redraw of the page brings the same story again: then the step stays.
  take(data) {
    const same = this.data && JSON.stringify(this.data.story) === JSON.stringify(data.story);
    this.data = data;
    if (same) return;
    const at = this.story?.id === data.story.id ? this.at : data.start; // its name may be new
    this.story = data.story;
    this.build();
    this.show(within(at ?? 0, this.story.steps.length));
    if (data.plays && !this.calm.matches) this.play();
  }

  // --- the frame ----------------------------------------------------------------------------------------------------

  build() {
    const { root, story, data } = this;
    root.replaceChildren();
    root.setAttribute("role", "region");
    root.setAttribute("aria-label", story.tells_ending ? "Demo" : `Demo: ${story.title}`);
    const top = make("header", "top", root);
    make("span", "badge", top, "recorded"); // a story asks nothing anew
    this.name = make("span", "name", top);
    this.name.dir = "auto";
    const tools = make("span", "tools", top);
    if (data.links) this.copy = button(tools, "Copy link", () => this.copyLink());
    if (document.fullscreenEnabled) {
      this.full = button(tools, "Full screen", () => this.toggleFull());
    }
    if (data.leaves) button(tools, "Close", () => this.send("leave", true)).title = "Escape";
    this.asked = make("p", "asked", root);
    this.asked.dir = "auto";
    this.way = make("ol", "way", root);
    this.way.setAttribute("aria-label", "How far the question has come");
    this.slide = make("div", "slide", root);
    this.slide.setAttribute("aria-live", "polite");
    const bottom = make("footer", "bottom", root);
    this.back = button(bottom, "‹ Back", () => this.go(-1));
    this.dots = make("ol", "dots", bottom);
    story.steps.forEach((step, at) => {
      const dot = button(make("li", "", this.dots), "", () => this.jump(at));
      dot.setAttribute("aria-label", `Step ${at + 1}: ${step.title}`);
      dot.title = step.title;
    });
    this.player = button(bottom, "Play", () => (this.timer ? this.pause() : this.play()));
    this.next = button(bottom, "Next ›", () => this.go(1));
    this.next.classList.add("primary");
  }

  show(at) {
    this.at = at;
    cancelAnimationFrame(this.frame);
    const { steps } = this.story;
    const step = steps[at];
    drawWay(this.way, step.way);
    const isTold = !this.story.tells_ending || steps.slice(0, at + 1).some((one) => one.id === "answer");
    this.name.textContent = isTold ? this.story.title : "";
    this.asked.textContent = step.picture.kind === "question" ? "" : this.story.question;
    this.slide.replaceChildren();
    this.slide.dataset.step = step.id;
    const words = make("div", "words", this.slide);
    const heading = make("div", "", words);
    make("p", "count", heading, `Step ${at + 1} of ${steps.length}`);
    make("h1", "", heading, step.title);
    this.said = make("div", "", words);
    make("p", "caption", this.said, step.caption).dir = "auto";
    if (step.note) make("p", "note", this.said, step.note).dir = "auto";
    const picture = make("div", `picture ${step.picture.kind}`, this.slide);
    DRAWN[step.picture.kind]?.(picture, step.picture, this);
    this.back.disabled = at === 0;
    this.next.disabled = at === steps.length - 1;
    [...this.dots.querySelectorAll("button")].forEach((dot, place) => {
      if (place === at) dot.setAttribute("aria-current", "step");
      else dot.removeAttribute("aria-current");
    });
    if (this.data.keeps) this.writeAddress();
    this.fit();
  }

  // A step that is higher than the window is drawn smaller.
  fit() {
    const { root, slide } = this;
    if (!slide) return;
    slide.style.fontSize = "";
    const room = parseFloat(getComputedStyle(root).minHeight) + 1;
    if (root.clientWidth <= NARROW) return;
    for (let size = 0.96; root.offsetHeight > room && size >= SMALLEST; size -= 0.04) slide.style.fontSize = `${size}em`;
  }

  // --- moving -------------------------------------------------------------------------------------------------------

  go(by) {
    this.jump(this.at + by);
  }

  jump(to) {
    this.pause();
    const at = within(to, this.story.steps.length);
    if (at === this.at) return;
    this.show(at);
    // Where the page is longer than the window, a step begins at its top.
    if (this.slide.getBoundingClientRect().top < 0) this.root.scrollIntoView({ block: "start" });
  }

  key(event) {
    if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || !this.root.isConnected) return;
    const target = event.composedPath()[0];
    const name = target?.tagName ?? "";
    if (event.key === "Escape") {
      if (this.data.leaves && !document.fullscreenElement) this.send("leave", true);
      return;
    }
    if (["INPUT", "TEXTAREA", "SELECT"].includes(name) || target?.isContentEditable) return;
    if (event.key === " " && ["BUTTON", "A", "SUMMARY"].includes(name)) return;
    const last = this.story.steps.length - 1;
    if (event.key in PLAIN_KEYS) this.go(event.shiftKey && event.key === " " ? -1 : PLAIN_KEYS[event.key]);
    else if (event.key === "Home" || event.key === "End") this.jump(event.key === "Home" ? 0 : last);
    else return;
    event.preventDefault();
  }

  play() {
    if (this.at === this.story.steps.length - 1) this.show(0);
    const wait = () => {
      const step = this.story.steps[this.at];
      const length = RESTING + PER_WORD * `${step.title} ${step.caption} ${step.note}`.split(/\s+/).length;
      this.timer = setTimeout(() => {
        const isLast = this.at === this.story.steps.length - 1;
        if (isLast) {
          this.pause();
          this.moveBar?.();
        } else {
          this.show(this.at + 1);
          wait();
        }
      }, this.data.pace ?? length);
    };
    wait();
    this.player.textContent = "Pause";
  }

  pause() {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.player) this.player.textContent = "Play";
  }

  toggleFull() {
    if (document.fullscreenElement) document.exitFullscreen();
    else document.documentElement.requestFullscreen().catch(() => {});
  }

  drawFull() {
    if (this.full) this.full.textContent = document.fullscreenElement ? "Leave full screen" : "Full screen";
  }

  address() {
    const url = new URL(location.href);
    url.search = new URLSearchParams({ run: this.story.id, step: this.at + 1 });
    url.hash = "";
    return url;
  }

  writeAddress() {
    history.replaceState(history.state, "", this.address());
  }

  copyLink() {
    const done = (words) => {
      this.copy.textContent = words;
      setTimeout(() => (this.copy.textContent = "Copy link"), 1800);
    };
    const written = navigator.clipboard?.writeText(String(this.address())) ?? Promise.reject();
    written.then(
      () => done("Copied"),
      () => done("Copy the address above"),
    );
  }
}

// --- the way ----------------------------------------------------------------------------------------------------------

function drawWay(list, places) {
  list.replaceChildren();
  const furthest = Math.max(...places.map((place, at) => (["done", "now"].includes(place.state) ? at : 0)));
  places.forEach((place, at) => {
    const item = make("li", `${place.state} ${at <= furthest ? "come" : ""}`, list);
    make("span", "stop", item);
    make("span", "", item, place.name);
    if (place.state === "now") item.setAttribute("aria-current", "step");
    if (place.state === "off") make("span", "unseen", item, " (not on this way)");
  });
}

// --- pictures ---------------------------------------------------------------------------------------------------------

const DRAWN = {
  question(box, picture) {
    make("blockquote", "", box, picture.question || "(no question)").dir = "auto";
    if (picture.about) make("p", "about", box, picture.about);
  },

  chunks(box, picture) {
    if (!picture.chunks.length) make("p", "empty", box, "Nothing was found.");
    const list = make("ol", "cards", box);
    for (const chunk of picture.chunks) drawChunk(make("li", `card ${chunk.state}`, list), chunk);
    if (picture.more) make("p", "about", box, `and ${picture.more} more`);
  },

  scores(box, picture) {
    if (picture.scales.length) {
      const scales = make("div", `scales ${picture.scales.length > 1 ? "two" : ""}`, box);
      picture.scales.forEach((scale) => new Plot(make("div", "scale", scales), scale));
    }
    if (picture.verdict) drawVerdict(make("div", "", box), picture.verdict);
  },

  sentences(box, picture) {
    const head = make("p", "head", box);
    make("b", "number", head, picture.chunk.number);
    make("span", "", head, picture.chunk.source).dir = "auto";
    const list = make("ul", "lines", box);
    for (const line of picture.sentences) {
      const item = make("li", line.kept ? "kept" : "struck", list);
      make("span", "unseen", item, line.kept ? "kept: " : "struck out: ");
      drawText(item, line.kept ? "span" : "s", line);
      make("span", "value", item, line.score);
    }
    if (picture.more) make("p", "about", box, picture.more);
  },

  web(box, picture) {
    if (!picture.query) {
      make("p", "empty", box, "Nothing from the web.");
      return;
    }
    const query = make("p", "query", box);
    make("span", "", query, picture.query).dir = "auto";
    const list = make("ol", "cards wide", box);
    picture.snippets.forEach((snippet, at) => {
      const item = make("li", `card ${snippet.state}`, list);
      drawChunk(item, snippet);
      if (picture.scores[at]) make("p", "value", item, `score ${picture.scores[at]}${snippet.state ? " · not used" : ""}`);
    });
    if (picture.note) make("p", "about", box, picture.note);
  },

  answer(box, picture) {
    box.classList.add(picture.tone);
    box.classList.toggle("long", picture.text.length > 320);
    if (picture.cells.length) {
      drawText(make("div", "text", box), "p", picture);
    } else if (picture.text) {
      for (const line of picture.text.split("\n")) make("p", "text", box, line).dir = "auto";
    } else {
      make("p", "text none", box, "No answer.");
      if (picture.why) make("p", "about", box, picture.why).dir = "auto";
    }
    if (picture.nearest) {
      make("h2", "", box, "Closest sentence, not given as an answer");
      drawSource(make("ul", "sources", box), picture.nearest);
    }
    if (picture.sources.length) {
      make("h2", "", box, picture.sources.length > 1 ? "Sources" : "Source");
      const list = make("ul", "sources", box);
      picture.sources.forEach((source) => drawSource(list, source));
    }
  },

  bar(box, picture, player) {
    const put = button(make("p", "put", player.said), "Move the bar", () => move());
    put.classList.add("primary");
    const plot = new Plot(make("div", "scale", box), picture.scale, picture);
    const both = make("div", "outcomes", box);
    const then = make("section", "", both);
    drawOutcome(then, `Before: bar at ${picture.text}`, picture.outcomes[0]);
    const now = make("section", "now", both);
    now.setAttribute("aria-live", "polite");
    let shown = -2;
    const draw = (value) => {
      const isStart = value === picture.start;
      const found = picture.stretches.find((one) => one.first <= value && value <= one.last);
      const index = isStart || !found ? 0 : found.outcome;
      put.textContent = value === picture.goal ? "Put it back" : "Move the bar";
      now.classList.toggle("still", isStart);
      if (shown !== index || isStart) now.replaceChildren();
      shown = index;
      const words = isStart ? "Now: the bar has not moved" : `Now: bar at ${(value / 100).toFixed(2)}`;
      if (!now.childElementCount) drawOutcome(now, words, picture.outcomes[index], picture.outcomes[0]);
      now.firstChild.textContent = words;
    };
    plot.onMove = draw;
    const move = () => {
      const [from, to] = [plot.value, plot.value === picture.goal ? picture.start : picture.goal];
      cancelAnimationFrame(player.frame);
      if (player.calm.matches) {
        plot.put(to);
        return;
      }
      const begun = performance.now();
      const tick = (time) => {
        const share = Math.min((time - begun) / SLIDE, 1);
        plot.put(Math.round(from + (to - from) * share));
        if (share < 1) player.frame = requestAnimationFrame(tick);
      };
      player.frame = requestAnimationFrame(tick);
    };
    player.moveBar = move;
    draw(picture.start);
  },

  policies(box, picture) {
    for (const reading of picture.readings) {
      const part = make("section", "reading", box);
      make("h2", "", part, `Policy “${reading.policy}”`).dir = "auto";
      make("p", "about", part, reading.how);
      new Plot(make("div", "scale", part), reading.scale);
      drawOutcome(make("div", "outcome", part), "", reading.outcome);
    }
  },
};

function drawChunk(box, chunk) {
  const head = make("p", "head", box);
  make("b", "number", head, chunk.number);
  make("span", "", head, chunk.source).dir = "auto";
  if (chunk.state === "aside") make("span", "unseen", head, " (set aside)");
  drawText(box, "p", chunk);
}

// A row of a table is shown as heads and cells.
function drawText(box, tag, { text, cells }) {
  if (!cells.length) {
    make(tag, "text", box, text).dir = "auto";
    return;
  }
  const row = make("dl", tag === "s" ? "cells out" : "cells", box);
  for (const [head, cell] of cells) {
    const pair = make("div", "", row);
    make("dt", "", pair, head).dir = "auto";
    make("dd", "", pair, cell).dir = "auto";
  }
}

function drawSource(list, source) {
  const item = make("li", source.is_web ? "web" : "", list);
  if (source.number) make("b", "", item, `[${source.number}] `);
  make("span", "from", item, `${source.name}${source.is_web ? ", from the web" : ""}`).dir = "auto";
  make("p", "text", item, source.text).dir = "auto";
}

function drawVerdict(box, verdict) {
  box.className = `verdict ${verdict.tone}`;
  make("span", "sign", box, SIGNS[verdict.tone] ?? "").setAttribute("aria-hidden", "true");
  make("b", "", box, verdict.action);
  make("span", "means", box, verdict.meaning);
}

function drawOutcome(box, title, outcome, before) {
  make("h2", "", box, title);
  drawVerdict(make("div", "", box), outcome.verdict);
  const list = make("dl", "", box);
  outcome.lines.forEach(([name, words], at) => {
    const changed = before && before.lines[at]?.[1] !== words;
    make("dt", "", list, name);
    make("dd", changed ? "changed" : "", list, words);
  });
}

// A scale from 0 to 1 with a row for each chunk, its bars, and one bar to move if `moving` names it.
class Plot {
  constructor(box, scale, moving) {
    this.scale = scale;
    this.moving = moving;
    make("h2", "", box, scale.asks);
    const field = make("div", "field", box);
    this.area = make("div", "area", field);
    this.bands = scale.bands.map((band) => [band, make("div", `band ${band.tone}`, this.area)]);
    const rows = make("ol", "rows", field);
    for (const score of scale.scores) {
      const row = make("li", `row ${score.decides ? "decides" : ""} ${score.value === null ? "ungraded" : ""}`, rows);
      const name = make("span", "row-name", row);
      make("b", "number", name, score.number);
      make("span", "file", name, score.source).dir = "auto";
      const track = make("span", "track", row);
      if (score.value !== null) make("i", "dot", track).style.left = percent(score.value);
      make("span", "value", row, score.text);
    }
    if (scale.more) make("p", "about", box, `and ${scale.more} more`);
    if (scale.overall !== null) {
      const whole = make("span", "overall", this.area);
      whole.style.left = percent(scale.overall);
      make("span", "", whole, `together ${scale.overall_text}`);
    }
    this.bars = scale.bars.map((bar) => {
      const line = make("div", "bar-line", this.area);
      line.label = make("span", "flag", line, `${scale.bars.length === 1 ? bar.name : bar.id} ${bar.text}`);
      return [bar, line];
    });
    const axis = make("p", "axis", field);
    axis.setAttribute("aria-hidden", "true");
    for (const end of ["0", "1"]) make("span", "", axis, end);
    if (moving) this.build();
    this.value = moving?.start;
    this.place();
  }

  build() {
    const input = make("input", "slider", this.area);
    Object.assign(input, { type: "range", min: 0, max: 100, step: 1, value: this.moving.start });
    input.setAttribute("aria-label", this.moving.name);
    input.oninput = () => this.put(Number(input.value));
    this.input = input;
  }

  put(value) {
    const { stretches } = this.moving;
    this.value = Math.min(Math.max(value, stretches[0].first), stretches.at(-1).last);
    this.input.value = String(this.value);
    this.input.setAttribute("aria-valuetext", (this.value / 100).toFixed(2));
    this.place();
    this.onMove?.(this.value);
  }

  place() {
    const at = { zero: 0, one: 1 };
    for (const [bar, line] of this.bars) {
      const isMoving = this.moving && bar.id === this.moving.id;
      at[bar.id] = isMoving && this.value !== this.moving.start ? this.value / 100 : bar.value;
      line.style.left = percent(at[bar.id]);
      line.classList.toggle("movable", Boolean(isMoving));
      line.classList.toggle("right", this.bars.length > 1 ? bar.id === "lower" : at[bar.id] > 0.6);
      if (isMoving) line.label.textContent = `‹ ${this.value === this.moving.start ? bar.text : (this.value / 100).toFixed(2)} ›`;
    }
    for (const [band, area] of this.bands) {
      area.style.left = percent(at[band.low]);
      area.style.width = percent(Math.max(at[band.high] - at[band.low], 0));
    }
  }
}

// --- the document -----------------------------------------------------------------------------------------------------

function make(tag, name = "", parent = undefined, text = undefined) {
  const made = document.createElement(tag);
  if (name) made.className = name.trim();
  if (text !== undefined) made.textContent = text;
  parent?.append(made);
  return made;
}

function button(parent, text, act) {
  const made = make("button", "", parent, text);
  made.type = "button";
  made.onclick = act;
  return made;
}

function percent(share) {
  return `${(100 * share).toFixed(2)}%`;
}

function within(at, count) {
  return Math.min(Math.max(Math.trunc(at) || 0, 0), count - 1);
}
