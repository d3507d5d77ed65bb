// Validates an AsyncAPI document with @asyncapi/parser, the AsyncAPI initiative's own parser.
//
//   node tests/contracts/asyncapi_validate.mjs FOLDER DOCUMENT
//
// FOLDER is where `npm install --prefix FOLDER` put the package. Prints one line for each error and warning; ends with
// 0 when there is none, 1 when there is, 2 when the package is missing.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";

const SEVERITIES = ["error", "warning"];
const [folder, file] = process.argv.slice(2);

let asyncapi;
try {
  asyncapi = createRequire(resolve(folder, "package.json"))("@asyncapi/parser");
} catch (error) {
  console.error(`@asyncapi/parser is not in ${folder}: ${error.message.split("\n")[0]}`);
  process.exit(2);
}

const { document, diagnostics } = await new asyncapi.Parser().parse(readFileSync(file, "utf8"), { source: file });
const found = diagnostics.filter((each) => each.severity < SEVERITIES.length);
for (const { severity, code, message, path } of found) {
  console.log(`${SEVERITIES[severity]} ${code} at ${path.join("/")}: ${message}`);
}
if (document) {
  const count = (collection) => collection.all().length;
  console.log(
    `AsyncAPI ${document.version()}: ${count(document.channels())} channels, ` +
      `${count(document.operations())} operations, ${count(document.messages())} messages`,
  );
}
process.exit(found.length || !document ? 1 : 0);
