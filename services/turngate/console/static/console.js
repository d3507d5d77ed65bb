// Where it begins: each module minds one thing, and pages work without any of them.
import { startActions } from "./actions.js";
import { startKeys } from "./keys.js";
import { Live } from "./live.js";
import { startPage } from "./page.js";
import { startTimes } from "./times.js";

for (const element of document.querySelectorAll(".needs-script")) element.hidden = false;
startTimes();
startKeys();
const page = startPage();
startActions(page);
if (page.interests.length) new Live(page).start();
