// "/" leads to the question, wherever nothing is being written.

const mounted = new WeakSet();

export default function ({ parentElement }) {
  if (mounted.has(parentElement)) return undefined;
  mounted.add(parentElement);
  document.addEventListener("keydown", lead);
  return () => {
    mounted.delete(parentElement);
    document.removeEventListener("keydown", lead);
  };
}

function lead(event) {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isWriting(event)) return;
  const question = document.querySelector('input[aria-label="Your question"]');
  if (!question) return;
  event.preventDefault();
  question.focus();
  question.select();
}

function isWriting(event) {
  const [place] = event.composedPath();
  return place instanceof Element && (place.isContentEditable || place.matches("input, textarea, select"));
}
