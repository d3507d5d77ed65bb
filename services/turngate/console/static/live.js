// What happens, as it happens: one stream for all tabs of a browser, which has only six connections to a host.
//
// The tab that was looked at last holds a lock and the stream, and tells the others. Each remembers the last sequence, so
// whoever takes over goes on without a gap. Without locks (plain http from elsewhere) each visible tab has its own stream.

const LOCK = "turngate-live";
const TICK_MS = 5_000;
const ASLEEP_MS = 20_000;
const LOST_AFTER_MS = 1_200; // a restart that is over sooner is no news
const RETRIES_MS = [500, 1_000, 2_000, 5_000];

export class Live {
  constructor(page) {
    this.page = page;
    this.last = page.cursor;
    this.channel = "BroadcastChannel" in window ? new BroadcastChannel(LOCK) : null;
    this.locks = this.channel && navigator.locks ? navigator.locks : null;
    this.source = null;
    this.release = null;
    this.leads = false;
    this.waiting = null;
    this.attempt = 0;
    this.retries = 0;
    this.retryTimer = 0;
    this.lostTimer = 0;
    this.tick = Date.now();
  }

  start() {
    if (this.channel) this.channel.onmessage = ({ data }) => this.onTold(data);
    document.addEventListener("visibilitychange", () => this.onVisible());
    window.addEventListener("pagehide", () => this.leave());
    window.addEventListener("pageshow", (event) => event.persisted && this.comeBack());
    window.addEventListener("online", () => this.comeBack());
    setInterval(() => this.onTick(), TICK_MS);
    this.join(!document.hidden);
  }

  join(first) {
    if (!this.locks) {
      if (!document.hidden) this.open();
      return;
    }
    this.tell({ hello: true });
    this.waiting?.abort();
    this.waiting = first ? null : new AbortController();
    const options = first ? { steal: true } : { signal: this.waiting.signal };
    const attempt = ++this.attempt;
    this.locks
      .request(LOCK, options, () => {
        this.leads = true;
        this.open();
        return new Promise((release) => (this.release = release));
      })
      .catch(() => {
        if (attempt !== this.attempt) return; // given up by ourselves
        // Another tab took it.
        this.leads = false;
        this.close();
        clearTimeout(this.lostTimer);
        this.lostTimer = 0;
        this.join(false);
      });
  }

  leave() {
    this.attempt++;
    this.waiting?.abort();
    this.close();
    this.leads = false;
    this.release?.();
    this.release = null;
  }

  comeBack() {
    this.page.want(0);
    if (!this.locks) this.open();
    else if (this.leads) this.open();
    else this.join(!document.hidden);
  }

  onVisible() {
    if (!this.locks) {
      if (document.hidden) this.close();
      else this.comeBack();
    } else if (!document.hidden && !this.leads) {
      this.join(true);
    }
  }

  // A machine that slept finds its connections dead without being told.
  onTick() {
    const now = Date.now();
    if (now - this.tick > ASLEEP_MS) this.comeBack();
    this.tick = now;
  }

  open() {
    this.close();
    const source = new EventSource(`/live?after=${this.last}`);
    this.source = source;
    source.onopen = () => {
      this.retries = 0;
      this.reach(true);
    };
    source.onerror = () => {
      if (source !== this.source) return;
      this.reach(false);
      // A refusal (too many streams, a restart behind a proxy) ends an EventSource for good.
      if (source.readyState !== EventSource.CLOSED) return;
      this.page.want(0); // which finds out whether somebody has to log in again
      this.retry();
    };
    source.addEventListener("state", (event) => this.onEvent("state", event));
    source.addEventListener("progress", (event) => this.onEvent("progress", event));
    source.addEventListener("reset", (event) => this.onEvent("reset", event));
    source.addEventListener("status", (event) => this.onEvent("status", event));
  }

  close() {
    clearTimeout(this.retryTimer);
    this.source?.close();
    this.source = null;
  }

  retry() {
    const wait = RETRIES_MS[Math.min(this.retries++, RETRIES_MS.length - 1)];
    clearTimeout(this.retryTimer);
    this.retryTimer = setTimeout(() => this.open(), wait);
  }

  reach(reached) {
    const say = () => {
      this.page.onReach(reached);
      this.tell({ reached });
    };
    if (reached) {
      clearTimeout(this.lostTimer);
      this.lostTimer = 0;
      say();
    } else {
      // Each try that fails comes here; the time runs from the first.
      this.lostTimer ||= setTimeout(say, LOST_AFTER_MS);
    }
  }

  onEvent(name, event) {
    const data = JSON.parse(event.data);
    const told = { name, data, id: Number(event.lastEventId) || 0 };
    this.take(told);
    this.tell({ told });
  }

  take({ name, data, id }) {
    if (name === "status") {
      this.page.onNats(data.nats);
      return;
    }
    if (name === "reset") {
      this.last = id;
      this.page.want(0);
      return;
    }
    this.last = Math.max(this.last, id);
    if (name === "progress") this.page.onProgress(data);
    else this.page.onState(data);
  }

  tell(what) {
    this.channel?.postMessage(what);
  }

  onTold(what) {
    if (what.hello) {
      if (this.leads) this.tell({ at: this.last, nats: this.page.nats, reached: this.page.reached });
      return;
    }
    if (this.leads) return;
    if (what.told) this.take(what.told);
    if (what.reached !== undefined) this.page.onReach(what.reached);
    if (what.nats) this.page.onNats(what.nats);
    if (what.at > this.last) {
      this.last = what.at;
      this.page.want(0);
    }
  }
}
