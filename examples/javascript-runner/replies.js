"use strict";
// The agent: a script that answers what each role is asked for. Yours would start a model here.

const PASS = {
  verdict: "pass",
  review: "I ran the tests and read the change; the claim holds.",
  requirements_checked: ["every test passes"],
  evidence: ["npm test"],
  missing_work: [],
};

/**
 * Answer one role.
 *
 * @param {object} request the RoleRequest: `role`, `prompt`, `base_run_id`, `objective`, …
 * @param {AbortSignal} signal aborted when the role must stop
 * @param {{tool: (name: string) => void, progress: (line: string) => void}} tell what the agent does meanwhile
 * @param {number} delayMs how long it takes
 * @returns {Promise<{text: string, tokens: number}>} the final answer, whose last part is one JSON object
 */
async function answer(request, signal, tell, delayMs) {
  tell.progress(`works as ${request.role}`);
  await pause(delayMs, signal);
  tell.tool("bash");
  return { text: `Here is my report.\n${JSON.stringify(report(request))}`, tokens: 10 };
}

function report(request) {
  const run = Number(request.base_run_id.split("-").pop());
  switch (request.role) {
    case "worker":
      if (run === 1) {
        return {
          status: "continue",
          summary: "The first half is done.",
          evidence: ["npm test"],
          remaining_work: ["the second half"],
          blockers: [],
        };
      }
      return {
        status: "complete_candidate",
        summary: "Everything is done and every test passes.",
        evidence: ["npm test"],
        remaining_work: [],
        blockers: [],
      };
    case "recovery":
      return { decision: "resume", summary: "The work is intact.", evidence: ["git status"], remaining_work: [] };
    default:
      return PASS;
  }
}

function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new Error("it was stopped"));
    });
  });
}

module.exports = { answer };
