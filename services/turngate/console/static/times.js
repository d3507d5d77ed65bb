// Times go on by themselves, on the server's clock, and say on hover what they are on the reader's.

const TICK_MS = 10_000;
const UNITS = [[86_400, "d"], [3_600, "h"], [60, "min"]];
const main = document.getElementById("main");
const offset = Number(main.dataset.now) - Date.now();

export function span(ms) {
  let seconds = Math.floor(Math.max(0, ms) / 1000);
  const parts = [];
  for (const [length, name] of UNITS) {
    if (seconds >= length) {
      parts.push(`${Math.floor(seconds / length)} ${name}`);
      seconds %= length;
    }
  }
  return parts.length ? parts.slice(0, 2).join(" ") : `${seconds} s`;
}

export function tellTimes() {
  const now = Date.now() + offset;
  for (const element of document.querySelectorAll("time[data-ago]")) {
    const at = Date.parse(element.dateTime);
    if (Number.isNaN(at)) continue;
    const { ago } = element.dataset;
    const bare = ago === "bare";
    // Only what is due can be ahead: what happened since the page was drawn, or on a host whose clock is ahead, is just now.
    const ahead = ago === "future" && at > now;
    const words = span(ahead ? at - now : now - at);
    const text = bare ? words : ahead ? `in ${words}` : `${words} ago`;
    if (element.textContent !== text) element.textContent = text;
    const said = `${bare ? "since " : ""}${new Date(at).toLocaleString()}`;
    if (element.title !== said) element.title = said;
  }
}

export function startTimes() {
  tellTimes();
  setInterval(tellTimes, TICK_MS);
}
