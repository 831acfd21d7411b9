// A part of the page that ticks and has stopped, as after a message that was lost, brings the whole page anew.

const PATIENCE = 3000; // milliseconds beyond its interval; twice as long each time that nothing has come of it
const LOOK_EVERY = 500;
const mounted = new WeakSet();

export default function ({ parentElement, setTriggerValue }) {
  if (mounted.has(parentElement)) return undefined;
  mounted.add(parentElement);
  let waits = new Map(); // by the mark of a tick: how long the next one is waited for

  function look() {
    const now = performance.now();
    const marks = [...document.querySelectorAll("[data-tick]")].map((mark) => mark.dataset);
    waits = new Map(
      marks.map(({ tick, every }) => [tick, waits.get(tick) ?? { patience: PATIENCE, due: now + 1000 * every + PATIENCE }])
    );
    const late = [...waits.values()].filter((wait) => wait.due < now);
    for (const wait of late) {
      wait.patience *= 2;
      wait.due = now + wait.patience;
    }
    if (late.length) setTriggerValue("late", true);
  }

  const timer = setInterval(look, LOOK_EVERY);
  return () => {
    mounted.delete(parentElement);
    clearInterval(timer);
  };
}
