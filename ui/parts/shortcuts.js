// "/" leads to the question, wherever nothing is being written; Enter in a form presses its button; a list that is opened
// by a button closes once something of it is chosen.

const mounted = new WeakSet();

export default function ({ parentElement }) {
  if (mounted.has(parentElement)) return undefined;
  mounted.add(parentElement);
  document.addEventListener("keydown", lead);
  document.addEventListener("keydown", send, true);
  document.addEventListener("click", close);
  return () => {
    mounted.delete(parentElement);
    document.removeEventListener("keydown", lead);
    document.removeEventListener("keydown", send, true);
    document.removeEventListener("click", close);
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

function close(event) {
  if (!event.target.closest?.('[class*="st-key-choose_"] button')) return;
  setTimeout(() => document.querySelector('[data-testid="stPopover"] button[aria-expanded="true"]')?.click());
}

// Streamlit's field learns whether Enter may send it when it is drawn, and not when the button is enabled later: what was
// typed while a run went on was never sent.
function send(event) {
  const [field] = event.composedPath();
  if (event.key !== "Enter" || event.isComposing || !field.matches?.('[data-testid="stTextInputField"]')) return;
  const button = field.closest('[data-testid="stForm"]')?.querySelector('[data-testid="stFormSubmitButton"] button');
  if (!button || button.disabled) return;
  event.preventDefault();
  event.stopPropagation();
  field.blur(); // which hands over what was typed
  button.click();
  field.focus();
}

function isWriting(event) {
  const [place] = event.composedPath();
  return place instanceof Element && (place.isContentEditable || place.matches("input, textarea, select"));
}
