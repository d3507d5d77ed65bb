// Make an element like another one while what a person did to it stays: focus, scroll, open folds, typed text, choices.
//
// All of that lives in elements, so an element is kept whenever it can be, and moved only if its neighbours changed
// places. Children are found again by their key (`id` or `data-key`), those without by their name and first class.

// Not `node.id`: a form with a field called `id` answers with the field.
const keyOf = (node) => node.getAttribute("id") || node.getAttribute("data-key");

function sign(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return node.nodeName;
  const key = keyOf(node);
  return key ? `${node.nodeName} #${key}` : `${node.nodeName} .${node.classList.item(0) ?? ""}`;
}

// What a script of ours put there is not the page's, and stays until that script takes it away.
const isOurs = (node) => node.nodeType === Node.ELEMENT_NODE && node.hasAttribute("data-ours");

export function morphChildren(from, to) {
  const left = new Map();
  for (const child of from.childNodes) {
    if (isOurs(child)) continue;
    const signature = sign(child);
    if (left.has(signature)) left.get(signature).push(child);
    else left.set(signature, [child]);
  }
  const wanted = [...to.childNodes].map((child) => ({ child, kept: left.get(sign(child))?.shift() ?? null }));
  for (const rest of left.values()) for (const child of rest) child.remove();
  let at = from.firstChild;
  for (const { child, kept } of wanted) {
    while (at && isOurs(at)) at = at.nextSibling;
    if (kept && kept === at) at = at.nextSibling;
    else from.insertBefore(kept ?? made(child), at);
    if (kept) morph(kept, child);
  }
}

function made(child) {
  const copy = document.importNode(child, true);
  if (copy.nodeType === Node.ELEMENT_NODE && copy.hasAttribute("data-key")) copy.classList.add("fresh");
  return copy;
}

function morph(from, to) {
  if (from.nodeType !== Node.ELEMENT_NODE) {
    if (from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue;
    return;
  }
  // An operation id that is out already must stay: trying again with it does nothing a second time.
  if (from.hasAttribute("data-keep")) return;
  const folds = from.nodeName === "DETAILS";
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name) && !(folds && name === "open") && name !== "data-script") from.removeAttribute(name);
  }
  for (const { name, value } of [...to.attributes]) {
    if (!(folds && name === "open") && from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
  morphChildren(from, to);
}

// What a person typed that the page did not have.
export const typedFields = (root) =>
  [...root.querySelectorAll("textarea, input")].filter(
    (field) => !["hidden", "checkbox", "radio"].includes(field.type) && field.value !== field.defaultValue,
  );
