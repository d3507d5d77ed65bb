// Forms without a new page: sent, and what became of them said aloud; what was typed stays until it was taken.

const UNSURE = new Set([500, 502, 503, 504]);
const SHOWN_MS = 6_000;
const UNREAD_MS = 1_000; // nobody has read a card that came so short ago: what is pressed was meant for the one before
let page = null;
let waiting = "";
let changedAt = -UNREAD_MS;

export function startActions(given) {
  page = given;
  document.addEventListener("submit", onSubmit);
  document.addEventListener("input", onInput);
  document.addEventListener("change", onChoice);
  waiting = whatWaits();
  page.main.addEventListener("page-changed", () => {
    if (whatWaits() !== waiting) changedAt = performance.now();
    waiting = whatWaits();
  });
}

// Which card or question waits on the page; empty where none does.
export const whatWaits = () => document.querySelector("#main [data-waiting]")?.dataset.key ?? "";

const newOp = () => Array.from(crypto.getRandomValues(new Uint8Array(12)), (each) => each.toString(16).padStart(2, "0")).join("");

function onSubmit(event) {
  const form = event.target;
  if (!form.hasAttribute("data-action") || event.defaultPrevented) return;
  event.preventDefault();
  if (form.dataset.script === "sending") return;
  if (event.submitter?.classList.contains("pick") && performance.now() - changedAt < UNREAD_MS) {
    say("Another card has just come, so nothing was answered. Read it first.", { bad: true });
    return;
  }
  send(form, event.submitter);
}

export async function send(form, submitter) {
  const data = new FormData(form);
  leaveOutUnused(form, data);
  if (submitter?.name) data.append(submitter.name, submitter.value);
  const to = submitter?.hasAttribute("formaction") ? submitter.formAction : form.action;
  form.dataset.script = "sending";
  submitter?.setAttribute("aria-disabled", "true");
  complain(form, "");
  try {
    const response = await fetch(to, {
      method: "POST",
      headers: { Accept: "application/json" },
      body: new URLSearchParams(data),
      redirect: "manual",
    });
    if (response.status === 401) {
      say("You were logged out. Log in again in another tab, then try again: what you typed stays here.", { bad: true, again: () => send(form, submitter) });
      return;
    }
    const told = await response.json();
    if (response.ok) done(form, told);
    else refused(form, submitter, response.status, told);
  } catch {
    say("The console can't be reached. Trying again is safe: it is done once.", { bad: true, again: () => send(form, submitter) });
  } finally {
    delete form.dataset.script;
    submitter?.removeAttribute("aria-disabled");
  }
}

function renew(form) {
  for (const field of form.querySelectorAll("input[name=op]")) field.value = newOp();
}

function done(form, told) {
  renew(form);
  form.reset();
  form.closest("details.dismiss, details.collect")?.removeAttribute("open");
  say(told.message);
  const there = new URL(told.location, location.href);
  if (there.origin === location.origin && there.pathname !== location.pathname) {
    location.assign(there.pathname + there.search);
    return;
  }
  page.want(0);
}

function refused(form, submitter, status, told) {
  const message = told.message || "It was not done, and the console does not say why.";
  if (UNSURE.has(status)) {
    // It may have been done: the same operation again is the same one.
    say(`${message.replace(/[.!?]?$/, ".")} Trying again is safe: it is done once.`, { bad: true, again: () => send(form, submitter) });
    return;
  }
  renew(form);
  const who = told.details?.actor || told.details?.by;
  const label = told.details?.label;
  const first = told.code === "already_answered" && who ? `${who} was first${label ? ` and chose “${label}”` : ""}.` : "";
  const text = first ? `${first} Your answer was not taken.` : message;
  complain(form, text);
  say(text, { bad: true });
  page.want(0);
}

// Beside the form too, for those who look there.
function complain(form, text) {
  let place = form.querySelector(".form-error");
  if (!text) {
    place?.remove();
    return;
  }
  if (!place) {
    place = document.createElement("p");
    place.className = "form-error";
    place.setAttribute("data-ours", "");
    place.dir = "auto";
    form.append(place);
  }
  place.textContent = text;
}

let timer = 0;

export function say(text, { bad = false, again = null } = {}) {
  const place = document.getElementById("outcome");
  clearTimeout(timer);
  const box = document.createElement("div");
  box.className = bad ? "outcome-bad" : "outcome-good";
  const words = document.createElement("span");
  words.dir = "auto";
  words.textContent = text;
  box.append(words);
  const close = () => place.replaceChildren();
  if (again) box.append(button("Try again", () => (close(), again())));
  if (bad) box.append(button("Close", close));
  else timer = setTimeout(close, SHOWN_MS);
  place.replaceChildren(box);
}

function button(label, act) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = label;
  made.addEventListener("click", act);
  return made;
}

// An answer of one's own takes the place of the options, and an option that of it; what was typed stays to come back to.
function onInput(event) {
  if (!event.target.matches("[data-own]")) return;
  const part = event.target.closest("[data-part]");
  if (event.target.value.trim()) for (const box of part.querySelectorAll(":checked")) box.checked = false;
  mark(part);
}

function onChoice(event) {
  const part = event.target.closest("[data-part]");
  if (part && !event.target.matches("[data-own]")) mark(part);
}

const isChosen = (part) => part.querySelector(":checked") !== null;

function mark(part) {
  const own = part.querySelector("[data-own]");
  own.closest(".own").classList.toggle("unused", isChosen(part) && own.value !== "");
}

function leaveOutUnused(form, data) {
  for (const part of form.querySelectorAll("[data-part]")) {
    if (isChosen(part)) data.delete(part.querySelector("[data-own]").name);
  }
}
