// The page keeps itself up to date: it asks for its own main part anew and puts in what changed.

import { morphChildren, typedFields } from "./morph.js";
import { tellTimes } from "./times.js";

const GAP_MS = 20; // between two loads of the page
const STORM = 10; // loads without a second of peace in between, from which the gap is a longer one
const STORM_GAP_MS = 300;
const PEACE_MS = 1_000;
const IDLE_GAP_MS = 3_000; // where only the count of the inbox is concerned
const SETTLE_MS = [200, 800, 2_500]; // the inbox follows the states that it is made from
const POLL_MS = 4_000;
const SLOW_POLL_MS = 15_000; // runners come and go without an event, and the inbox names what waits for one
const RETRY_MS = 2_000;
const COUNTED = 100; // what the server counts at most

const AWAY =
  "The NATS server is away. What stands here may be old, and nothing can be done until it is back; this page recovers by itself.";
const LOST = "The console can't be reached. What stands here may be old; this page recovers by itself.";

export function startPage() {
  return new Page();
}

class Page {
  constructor() {
    this.main = document.getElementById("main");
    this.banner = document.getElementById("banner");
    this.light = document.getElementById("live");
    this.cursor = Number(this.main.dataset.cursor) || 0;
    this.interests = this.main.dataset.live.split(/\s+/).filter(Boolean);
    this.polls = this.interests.includes("poll");
    this.isAway = this.main.dataset.page === "away";
    this.settles = this.main.dataset.page === "inbox";
    this.nats = this.banner.hidden ? "up" : "away";
    this.reached = true;
    this.loading = false;
    this.again = false;
    this.last = 0;
    this.took = 0;
    this.streak = 0;
    this.timer = 0;
    this.due = 0;
    this.later = [];
    if (this.polls) setInterval(() => document.hidden || this.want(0), POLL_MS);
    else if (this.settles) setInterval(() => document.hidden || this.want(0), SLOW_POLL_MS);
    else if (this.isAway) setInterval(() => document.hidden || this.want(0), POLL_MS);
  }

  // Something happened: is it about this page?
  onState({ kind, key }) {
    const mine = this.interests.some((each) => each === `${kind}:*` || each === `${kind}:${key}`);
    this.want(mine ? 0 : IDLE_GAP_MS);
    if (mine && this.settles) this.settle();
  }

  // An agent said something: no state changed, so nothing is loaded.
  onProgress({ session, role_run, progress = "" }) {
    for (const place of this.main.querySelectorAll("[data-said]")) {
      if (place.dataset.said !== session || (place.dataset.run && place.dataset.run !== role_run)) continue;
      place.querySelector(".said-line").textContent = progress;
      place.hidden = !progress;
    }
  }

  settle() {
    for (const timer of this.later) clearTimeout(timer);
    this.later = SETTLE_MS.map((after) => setTimeout(() => this.want(0), after));
  }

  // Say whether the server of the events, and the console itself, are there.
  onNats(nats) {
    const back = this.nats === "away" && nats === "up";
    this.nats = nats;
    this.tell();
    if (back) this.want(0);
  }

  onReach(reached) {
    const back = !this.reached && reached;
    this.reached = reached;
    this.tell();
    if (back) this.want(0);
  }

  tell() {
    const text = !this.reached ? LOST : this.nats === "away" ? AWAY : "";
    if (this.banner.textContent.trim() !== text) this.banner.textContent = text;
    this.banner.hidden = !text;
    if (!this.light) return;
    const state = text ? "lost" : "on";
    if (this.light.dataset.state === state) return;
    this.light.dataset.state = state;
    this.light.title = text || "This page is live";
    this.light.querySelector(".live-word").textContent = text ? "not live" : "live";
  }

  // Load the page anew: soon, and not more often than it can be loaded.
  want(delay) {
    const gap = Math.max(GAP_MS, this.took, this.streak > STORM ? STORM_GAP_MS : 0);
    const due = Math.max(performance.now() + delay, this.last + gap);
    if (this.loading) {
      this.again = true;
      return;
    }
    if (this.timer && this.due <= due) return;
    clearTimeout(this.timer);
    this.due = due;
    this.timer = setTimeout(() => this.load(), Math.max(0, due - performance.now()));
  }

  async load() {
    this.timer = 0;
    this.loading = true;
    this.again = false;
    const began = performance.now();
    this.streak = began - this.last > PEACE_MS ? 0 : this.streak + 1;
    try {
      await this.fetchMain();
    } catch {
      this.again = false;
      setTimeout(() => this.want(0), RETRY_MS); // the network; the stream says so too
    } finally {
      this.loading = false;
      this.last = performance.now();
      this.took = this.last - began;
      if (this.again) this.want(0);
    }
  }

  async fetchMain() {
    const response = await fetch(location.pathname + location.search, {
      headers: { "Turngate-Fragment": "main" },
      cache: "no-store",
      redirect: "manual",
    });
    if (response.status === 401 || response.type === "opaqueredirect") {
      location.reload();
      return;
    }
    if (response.status === 429 || response.status >= 500) {
      if (!this.isAway) setTimeout(() => this.want(0), RETRY_MS);
      return;
    }
    if (this.isAway) {
      // It stands in the place of another page, which can be read now.
      location.reload();
      return;
    }
    this.put(await response.text());
    this.cursor = Math.max(this.cursor, Number(response.headers.get("Turngate-Cursor")) || 0);
    this.count(Number(response.headers.get("Turngate-Inbox")) || 0, decodeURIComponent(response.headers.get("Turngate-Title") ?? ""));
  }

  put(html) {
    const wanted = new DOMParser().parseFromString(`<main>${html}</main>`, "text/html").querySelector("main");
    const typed = typedFields(this.main).map((field) => ({
      field,
      text: field.value,
      about: field.closest("[data-draft]")?.dataset.draft ?? "a field",
    }));
    const focused = document.activeElement;
    morphChildren(this.main, wanted);
    keepDrafts(typed.filter(({ field }) => !field.isConnected));
    if (focused && focused !== document.body && focused !== document.activeElement)
      (focused.isConnected ? focused : this.main).focus({ preventScroll: true });
    for (const element of this.main.querySelectorAll(".needs-script")) element.hidden = false;
    tellTimes();
    this.main.dispatchEvent(new CustomEvent("page-changed"));
  }

  count(number, title) {
    const badge = document.getElementById("inbox-count");
    const text = number < COUNTED ? String(number) : `${number}+`;
    if (badge) {
      badge.textContent = text;
      badge.hidden = !number;
    }
    if (title) document.title = `${number ? `(${text}) ` : ""}${title} · Turngate`;
  }
}

// What somebody was typing into a field that is gone is not lost with it.
function keepDrafts(lost) {
  if (!lost.length) return;
  const place = document.getElementById("drafts");
  for (const { text, about } of lost) {
    const draft = document.createElement("div");
    draft.className = "draft";
    const label = document.createElement("label");
    const area = document.createElement("textarea");
    const close = document.createElement("button");
    area.id = `draft-${place.childElementCount}-${Date.now()}`;
    area.value = text;
    area.dir = "auto";
    area.rows = 2;
    label.htmlFor = area.id;
    label.textContent = `What you had typed for ${about}, which is gone by now:`;
    close.type = "button";
    close.textContent = "Throw it away";
    close.addEventListener("click", () => {
      draft.remove();
      place.hidden = !place.childElementCount;
    });
    draft.append(label, area, close);
    place.append(draft);
  }
  place.hidden = false;
  place.scrollIntoView({ block: "start" });
}
