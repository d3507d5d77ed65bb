// An MCP client with the TypeScript SDK that makes the calls it is told, and prints what came of each.
//
//   node tests/system/mcp_client.mjs FOLDER < PLAN
//
// FOLDER is where `npm install --prefix FOLDER` put the package. PLAN is JSON: {"stdio": {command, args, env}} or
// {"http": {url, headers}}; "elicit": what is filled into forms, if the client offers any; "calls": [{name, arguments}].
// Prints one line of JSON for the list of tools, one for each call, and one for each form that was shown.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [folder] = process.argv.slice(2);
const plan = JSON.parse(readFileSync(0, "utf8"));
const packages = createRequire(resolve(folder, "package.json"));
const load = (name) => import(pathToFileURL(packages.resolve(`@modelcontextprotocol/sdk/${name}`)));

const { Client } = await load("client/index.js");
const { StdioClientTransport } = await load("client/stdio.js");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");
const { ElicitRequestSchema } = await load("types.js");

const say = (line) => console.log(JSON.stringify(line));
const capabilities = plan.elicit ? { elicitation: {} } : {};
const client = new Client({ name: "turngate-tests", version: "1" }, { capabilities });
if (plan.elicit) {
  client.setRequestHandler(ElicitRequestSchema, (request) => {
    say({ form: request.params.message });
    return { action: "accept", content: plan.elicit };
  });
}

const transport = plan.stdio
  ? new StdioClientTransport(plan.stdio)
  : new StreamableHTTPClientTransport(new URL(plan.http.url), { requestInit: { headers: plan.http.headers } });
await client.connect(transport);
say({ tools: (await client.listTools()).tools.map((tool) => tool.name) });
for (const call of plan.calls) {
  // Progress keeps the call alive for as long as the person takes.
  const options = { timeout: 60_000, resetTimeoutOnProgress: true, onprogress: () => {} };
  try {
    const result = await client.callTool(call, undefined, options);
    say({ text: result.content[0].text, isError: result.isError ?? false });
  } catch (error) {
    say({ code: error.code, message: error.message });
  }
}
await client.close();
