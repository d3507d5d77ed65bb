"use strict";
// The connection to NATS: requests, confirmed publishes and pulls, each repeated until it has an outcome.

const { readFileSync } = require("node:fs");
const { connect, headers, nkeyAuthenticator } = require("nats");

const RETRY_MS = 200;
const LONGEST_RETRY_MS = 5_000;
const REQUEST_MS = 5_000;

/** An error that a service answered with, by its code; what is `unavailable` is asked again instead. */
class Refusal extends Error {
  constructor(body) {
    super(body.message);
    this.code = body.code;
    this.details = body.details ?? {};
  }
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

class Wire {
  /** Connect as `identity`, proven by the key in TURNGATE_NATS_SEED_FILE where the server wants one. */
  static async open(url, namespace, identity, environment) {
    // The reconnects are the client's own and go on for ever. Replies come where only this identity may listen.
    const options = { servers: url.split(","), name: `runner-${identity}`, maxReconnectAttempts: -1 };
    const { TURNGATE_NATS_SEED_FILE: seedFile, TURNGATE_TLS_CA: caFile } = environment;
    if (seedFile) options.authenticator = nkeyAuthenticator(seedOf(readFileSync(seedFile, "utf8")));
    if (caFile) options.tls = { caFile };
    const nc = await connect({ ...options, inboxPrefix: `_INBOX.${identity}` });
    return new Wire(nc, namespace, identity);
  }

  constructor(nc, namespace, identity) {
    this.nc = nc;
    this.namespace = namespace;
    this.identity = identity;
  }

  /** The name of a stream: TG_WORK for `work` in the namespace `tg`. */
  stream(name) {
    return `${this.namespace}_${name}`.toUpperCase();
  }

  /** Ask a service, again and again while nobody answers, unless `once`. All requests are idempotent. */
  async request(name, schema, body, once = false) {
    const subject = `${this.namespace}.api.${name}.${this.identity}`;
    for (;;) {
      try {
        const reply = await this.nc.request(subject, JSON.stringify(body), {
          timeout: REQUEST_MS,
          headers: schemaOf(schema),
        });
        if (!reply.headers?.has("Nats-Service-Error-Code")) return reply.json();
        const error = reply.json();
        if (error.code !== "unavailable" || once) throw new Refusal(error);
      } catch (error) {
        if (error instanceof Refusal || once || this.nc.isClosed()) throw error;
      }
      await sleep(RETRY_MS);
    }
  }

  /** Publish into a stream until it is stored; publishing the same again does no harm. */
  async publish(subject, schema, body) {
    let delay = RETRY_MS;
    for (;;) {
      try {
        const reply = await this.nc.request(subject, JSON.stringify(body), {
          timeout: REQUEST_MS,
          headers: schemaOf(schema),
        });
        const ack = reply.json();
        if (ack.error === undefined) return;
        console.error(`not stored: ${ack.error.description}`);
      } catch (error) {
        if (this.nc.isClosed()) throw error;
      }
      await sleep(delay);
      delay = Math.min(2 * delay, LONGEST_RETRY_MS);
    }
  }

  /** Pull one message from a durable consumer; null when none came within `waitMs`. */
  async pull(stream, consumer, waitMs) {
    const subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`;
    const wanted = JSON.stringify({ batch: 1, expires: waitMs * 1_000_000 });
    try {
      // A subscription of its own: what is delivered bears the subject that it was stored under, not the inbox's.
      const message = await this.nc.request(subject, wanted, { timeout: waitMs + 1_000, noMux: true });
      // A status (404 no messages, 408 time is up, 409 the consumer goes) is no message.
      if (message.headers?.code) return null;
      return new Ticket(message);
    } catch (error) {
      if (this.nc.isClosed()) throw error;
      await sleep(RETRY_MS);
      return null;
    }
  }

  /** Call `take` with each message of a kind and schema in this runner's mailbox. */
  mail(kind, schema, take) {
    const subscription = this.nc.subscribe(`${this.namespace}.to.${this.identity}.${kind}`);
    (async () => {
      for await (const message of subscription) {
        // Mail names its schema; an answer that somebody had sent here names another, or none.
        if (message.headers?.get("Turngate-Schema") === schema) take(message.json());
      }
    })();
  }

  close() {
    return this.nc.drain();
  }
}

/** A message of a durable consumer, until it is ended. */
class Ticket {
  constructor(message) {
    this.message = message;
    this.body = message.json();
  }

  ack() {
    this.message.respond("+ACK");
  }

  /** Have it delivered again, to this runner or another. */
  nak(delayMs) {
    this.message.respond(`-NAK ${JSON.stringify({ delay: delayMs * 1_000_000 })}`);
  }

  /** Say that it is still worked on. */
  inProgress() {
    this.message.respond("+WPI");
  }
}

/** The bytes of a seed file's key; lines that begin with # are comments. */
function seedOf(text) {
  const line = text.split("\n").find((each) => each.trim() !== "" && !each.startsWith("#"));
  return new TextEncoder().encode(line.trim());
}

function schemaOf(name) {
  const head = headers();
  head.set("Turngate-Schema", name);
  return head;
}

module.exports = { Refusal, Wire, sleep };
