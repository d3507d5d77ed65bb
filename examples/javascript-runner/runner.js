"use strict";
// A runner: it takes roles of objectives, runs an agent for each, and says how it ended. Written from the AsyncAPI
// document alone. The story of a role run: pull its ticket, claim it, run the agent, publish the result, acknowledge.
// Killed anywhere, the supervisor misses the beats and has somebody look at what was left behind.

const { randomBytes } = require("node:crypto");
const { parseArgs } = require("node:util");
const { answer } = require("./replies.js");
const { Refusal, Wire, sleep } = require("./wire.js");

const ROLES = ["worker", "critic", "audit", "recovery"];
const PULL_MS = 2_000;
const AGAIN_MS = 2_000;
const LINGER_MS = 60_000;

class Runner {
  constructor(wire, pools, roles, delayMs, beatMs) {
    this.wire = wire;
    this.pools = pools;
    this.roles = roles;
    this.delayMs = delayMs;
    this.beatMs = beatMs;
    this.incarnation = randomBytes(6).toString("hex");
    this.startedAt = Date.now();
    this.claims = 0;
    this.slots = pools.length * roles.length;
    this.held = new Map(); // by claim, until the supervisor says that it is over
    this.draining = false;
  }

  /** Join, take roles until `drain` is called, and finish what runs. */
  async run() {
    this.wire.mail("cancel", "role_cancelled.v1", (cancelled) => this.held.get(cancelled.claim)?.stop.abort());
    const consumers = [];
    for (const pool of this.pools) {
      const body = { runner: this.wire.identity, roles: this.roles };
      const joined = await this.wire.request(`runner.join.${pool}`, "join_runner.v1", body);
      consumers.push(...Object.values(joined.roles).flatMap((byRole) => Object.values(byRole)));
    }
    const beating = setInterval(() => this.beat(), this.beatMs);
    await this.beat();
    // One loop, and so one agent at a time, for each pool and role.
    console.log(JSON.stringify({ ready: this.wire.identity, consumers }));
    await Promise.all(consumers.map((consumer) => this.take(consumer)));
    clearInterval(beating);
    await this.wire.close();
  }

  drain() {
    this.draining = true;
    this.beat();
  }

  async take(consumer) {
    while (!this.draining) {
      const ticket = await this.wire.pull(this.wire.stream("work"), consumer, PULL_MS);
      if (ticket === null) continue;
      try {
        await this.serve(ticket);
      } catch (error) {
        console.error(`a role run failed here: ${error.message}`);
        ticket.nak(AGAIN_MS);
        await sleep(AGAIN_MS);
      }
    }
  }

  async serve(ticket) {
    const offer = ticket.body;
    this.claims += 1;
    const claim = `${this.incarnation}-${this.claims}`;
    const { session, role_run, generation, pool } = offer;
    let request;
    try {
      ({ request } = await this.wire.request(`role.claim.${pool}`, "claim_role.v1", {
        session,
        role_run,
        generation,
        claim,
      }));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      // Another runner has it, or nobody wants it any more: the ticket has done its work.
      if (error.code === "claim_refused") ticket.ack();
      else ticket.nak(AGAIN_MS);
      return;
    }
    const run = new RoleRun(offer, claim, ticket, request);
    this.held.set(claim, run);
    this.beat();
    const ended = await run.toEnd(this.wire.identity, this.delayMs);
    const subject = `${this.wire.namespace}.esm.result.${this.wire.identity}.${session}`;
    await this.wire.publish(subject, "role_ended.v1", ended);
    ticket.ack();
    // It is spoken of until the supervisor has applied the result, or nobody answers for a minute.
    run.storedAt = Date.now();
  }

  /** Say that this runner is alive and what it holds; the answers say what became of each role run. */
  async beat() {
    for (const [claim, run] of this.held) {
      if (run.storedAt === 0) run.ticket.inProgress();
      else if (Date.now() - run.storedAt > LINGER_MS) this.held.delete(claim);
    }
    try {
      const { answers } = await this.wire.request(
        "runner.beat",
        "beat.v1",
        {
          incarnation: this.incarnation,
          pools: this.pools,
          roles: this.roles,
          slots: this.slots,
          held: [...this.held.values()].map((run) => run.held()),
          started_at: this.startedAt,
          draining: this.draining,
        },
        true,
      );
      for (const told of answers) this.told(told);
    } catch (error) {
      console.error(`a beat was not answered: ${error.message}`);
    }
  }

  told(answered) {
    const run = this.held.get(answered.claim);
    if (run === undefined) return;
    run.version = answered.version ?? 0;
    if (answered.action !== "cancel") return;
    if (run.storedAt === 0) run.stop.abort();
    else this.held.delete(answered.claim);
  }
}

class RoleRun {
  constructor(offer, claim, ticket, request) {
    this.offer = offer;
    this.claim = claim;
    this.ticket = ticket;
    this.request = request;
    this.version = request.objective.version ?? 1;
    this.since = Date.now();
    this.storedAt = 0;
    this.stop = new AbortController();
    this.line = "";
    this.tools = {};
    this.toolCalls = 0;
  }

  held() {
    const { session, role_run, role, generation } = this.offer;
    return {
      session,
      role_run,
      role,
      generation,
      claim: this.claim,
      since: this.since,
      version: this.version,
      progress: this.line,
      tool_calls: this.toolCalls,
    };
  }

  /** Run the agent and return the RoleEnded. Evidence is what happened, never what the agent says. */
  async toEnd(runner, delayMs) {
    const { session, role_run, generation } = this.offer;
    const tell = {
      tool: (name) => {
        this.toolCalls += 1;
        this.tools[name] = (this.tools[name] ?? 0) + 1;
      },
      progress: (line) => {
        this.line = line;
      },
    };
    const ended = { session, runner, role_run, generation, claim: this.claim };
    let overdue = false;
    const deadline = this.request.deadline_ms
      ? setTimeout(() => {
          overdue = true;
          this.stop.abort();
        }, this.request.deadline_ms)
      : undefined;
    try {
      const said = await answer(this.request, this.stop.signal, tell, delayMs);
      Object.assign(ended, { response: said.text, tokens: said.tokens });
    } catch (error) {
      const failure = overdue ? "deadline" : this.stop.signal.aborted ? "cancelled" : "error";
      Object.assign(ended, { failure, message: error.message });
    } finally {
      clearTimeout(deadline);
    }
    ended.duration_ms = Date.now() - this.since;
    ended.evidence = { tool_calls: this.toolCalls, tool_names: this.tools, tool_errors: 0 };
    return ended;
  }
}

async function main() {
  const { values } = parseArgs({
    options: {
      url: { type: "string", default: process.env.TURNGATE_NATS_URL ?? "nats://127.0.0.1:4222" },
      namespace: { type: "string", default: process.env.TURNGATE_NAMESPACE ?? "tg" },
      identity: { type: "string", default: `javascript-${process.pid}` },
      pool: { type: "string", multiple: true, default: ["default"] },
      role: { type: "string", multiple: true, default: ROLES },
      "delay-ms": { type: "string", default: "500" },
      "beat-ms": { type: "string", default: "5000" },
    },
  });
  const wire = await Wire.open(values.url, values.namespace, values.identity, process.env);
  const runner = new Runner(wire, values.pool, values.role, Number(values["delay-ms"]), Number(values["beat-ms"]));
  for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => runner.drain());
  await runner.run();
}

main().catch((error) => {
  console.error(error.message);
  process.exitCode = 1;
});
