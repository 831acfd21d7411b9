// A part of the page whose ticks have stopped, as after a message that was lost, brings the whole page anew. Where the
// server is only late, the tick comes with its answer to a question.

const PATIENCE = 1000; // milliseconds beyond the interval of a part
const LOOK_EVERY = 250;
const mounted = new WeakSet();
let answer; // another one each time that the server draws this
let tell; // in the name of the fragment that the last full run has drawn

export default function ({ parentElement, data, setTriggerValue }) {
  answer = data.answer;
  tell = setTriggerValue;
  if (mounted.has(parentElement)) return undefined;
  mounted.add(parentElement);
  let waits = new Map(); // by the mark of a tick: how long the next one is waited for

  function look() {
    const now = performance.now();
    const marks = [...document.querySelectorAll("[data-tick]")].map((mark) => mark.dataset);
    waits = new Map(
      marks.map(({ tick, every }) => [tick, waits.get(tick) ?? { patience: PATIENCE, due: now + 1000 * every + PATIENCE }])
    );
    let wanted = "";
    for (const wait of waits.values()) {
      if (wait.isAnswered) wanted = "redraw";
      else if ("asked" in wait && wait.asked !== answer) wait.isAnswered = true;
      else if (wait.due < now) {
        wanted ||= "ask";
        Object.assign(wait, { asked: answer, patience: 2 * wait.patience, due: now + 2 * wait.patience });
      }
    }
    if (wanted === "redraw") waits.clear();
    if (wanted) tell("late", wanted);
  }

  const timer = setInterval(look, LOOK_EVERY);
  return () => {
    mounted.delete(parentElement);
    clearInterval(timer);
  };
}
