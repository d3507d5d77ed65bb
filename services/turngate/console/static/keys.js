// One key does it. Keys rest while somebody types, while a dialog is open, and with Ctrl, Alt or Meta held.

import { say, whatWaits } from "./actions.js";

const main = document.getElementById("main");
const kind = main.dataset.page;
const find = (selector) => main.querySelector(selector);
const keysDialog = document.getElementById("keys");
const confirmDialog = document.getElementById("confirm");

export function startKeys() {
  document.addEventListener("keydown", onKey);
  document.getElementById("keys-open")?.addEventListener("click", () => keysDialog.showModal());
  document.getElementById("keys-close")?.addEventListener("click", () => keysDialog.close());
  document.getElementById("confirm-no")?.addEventListener("click", () => confirmDialog.close());
}

function isTyping(element) {
  if (element.isContentEditable || element.nodeName === "TEXTAREA" || element.nodeName === "SELECT") return true;
  return element.nodeName === "INPUT" && element.type !== "radio" && element.type !== "checkbox";
}

function onKey(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (document.querySelector("dialog[open]")) return;
  if (isTyping(event.target)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const act = signFor(event.key) ?? (event.shiftKey ? null : actionFor(event));
  if (!act) return;
  event.preventDefault();
  act();
}

// Signs that some keyboards have only with Shift.
function signFor(key) {
  if (key === "?") return () => keysDialog.showModal();
  if (key === "/") return focusOn("#search");
  return null;
}

function actionFor(event) {
  const { key, target, repeat } = event;
  if (key === "j" || key === "ArrowDown") return kind === "question" ? (key === "j" ? () => movePart(1) : null) : move(1, key);
  if (key === "k" || key === "ArrowUp") return kind === "question" ? (key === "k" ? () => movePart(-1) : null) : move(-1, key);
  if (repeat) return null;
  if (key === "i") return () => location.assign("/");
  if (kind === "session") return forSession(key);
  if (kind === "question") return forQuestion(key, target);
  if (kind === "objective") return forObjective(key);
  return null;
}

// Lists: j and k, and the arrows once an entry is chosen.
function move(step, key) {
  const items = [...main.querySelectorAll("[data-item]")];
  const at = items.indexOf(document.activeElement);
  if (!items.length || (key.startsWith("Arrow") && at < 0)) return null;
  return () => {
    const next = items[at < 0 ? (step > 0 ? 0 : items.length - 1) : Math.min(Math.max(at + step, 0), items.length - 1)];
    next.focus();
    next.scrollIntoView({ block: "nearest" });
  };
}

function forSession(key) {
  if (/^[1-9]$/.test(key)) {
    const option = find(`[data-digit="${key}"]`);
    return option && (() => pick(option));
  }
  if (key === "0") return fold;
  if (key === "t") return focusOn("#beside");
  if (key === "Escape" && find("#dismiss"))
    return () => ask("Dismiss this card?", "It is closed without an answer, and prompts that it held back go out.", "Dismiss it", "#dismiss");
  return null;
}

function pick(option) {
  const fold = option.closest("details.collect");
  if (!fold) {
    option.focus();
    option.click();
    return;
  }
  fold.open = true;
  const field = fold.querySelector("textarea");
  field.focus();
  field.setSelectionRange(field.value.length, field.value.length);
}

function fold() {
  const folds = [...main.querySelectorAll("details[data-fold]")];
  const open = folds.some((each) => !each.open);
  for (const each of folds) each.open = open;
}

const parts = () => [...main.querySelectorAll("[data-part]")];

function currentPart() {
  const all = parts();
  const here = document.activeElement?.closest?.("[data-part]");
  return here ?? all.find((part) => part.classList.contains("current")) ?? all[0];
}

function movePart(step) {
  const all = parts();
  const next = all[Math.min(Math.max(all.indexOf(currentPart()) + step, 0), all.length - 1)];
  goTo(next);
}

function goTo(part) {
  if (!part) return;
  for (const each of parts()) each.classList.toggle("current", each === part && parts().length > 1);
  (part.querySelector("input:checked") ?? part.querySelector("input"))?.focus();
  part.scrollIntoView({ block: "nearest" });
}

function forQuestion(key, target) {
  if (/^[1-9]$/.test(key)) {
    const box = currentPart()?.querySelector(`[data-number="${key}"]`);
    return box && (() => (box.focus(), box.click()));
  }
  if (key === "o") return () => currentPart()?.querySelector("[data-own]")?.focus();
  if (key === "c") return focusOn("#chat-text");
  if (key === "Enter" && !target.closest("button, a, summary, [tabindex='0']")) {
    const form = find("#resolve") ?? find("#chat");
    return form && (() => form.requestSubmit());
  }
  if (key === "Escape" && find("#cancel"))
    return () => ask("Cancel this question?", "The agent is told that nobody will answer, and goes on without.", "Cancel the question", "#cancel");
  return null;
}

function forObjective(key) {
  if (key === "g") return focusOn("#guide-text");
  if (key === "e" && find("#edit"))
    return () => {
      find("#edit").open = true;
      find("#edit-text").focus();
    };
  const command = /^[a-z]$/.test(key) && find(`[data-shortcut="${key}"]`);
  return command ? () => command.click() : null;
}

function focusOn(selector) {
  const field = find(selector);
  return field && (() => field.focus());
}

function ask(title, text, yes, formSelector) {
  document.getElementById("confirm-title").textContent = title;
  document.getElementById("confirm-text").textContent = text;
  const button = document.getElementById("confirm-yes");
  const asked = whatWaits();
  button.textContent = yes;
  button.onclick = () => {
    confirmDialog.close();
    // The page may have changed meanwhile: what was asked about is not what stands there now.
    if (whatWaits() === asked) find(formSelector)?.requestSubmit();
    else say("What you were asked about is not there any more, so nothing was done.", { bad: true });
  };
  confirmDialog.showModal();
  button.focus();
}
