// A part of the page that ticks and has stopped, as after a message that was lost, brings the whole page anew.

const PATIENCE = 3000; // milliseconds beyond its own interval
const LOOK_EVERY = 500;
const mounted = new WeakSet();

export default function ({ parentElement, setTriggerValue }) {
  if (mounted.has(parentElement)) return undefined;
  mounted.add(parentElement);
  let due = new Map(); // by the mark of a tick: when the next must have come

  function look() {
    const now = performance.now();
    const marks = [...document.querySelectorAll("[data-tick]")].map((mark) => mark.dataset);
    due = new Map(marks.map(({ tick, every }) => [tick, due.get(tick) ?? now + 1000 * every + PATIENCE]));
    if (![...due.values()].some((time) => time < now)) return;
    due.clear();
    setTriggerValue("late", true);
  }

  const timer = setInterval(look, LOOK_EVERY);
  return () => {
    mounted.delete(parentElement);
    clearInterval(timer);
  };
}
