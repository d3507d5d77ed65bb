// Make an element like another one while what a person did to it stays: focus, scroll, open folds, typed text, choices.
//
// Children that have a key (`id` or `data-key`) are found again by it, others by their place and name. An element is
// kept whenever it can be, because all of that lives in elements.

const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.id || node.dataset?.key || "" : "");

const same = (one, other) =>
  one.nodeType === other.nodeType && one.nodeName === other.nodeName && keyOf(one) === keyOf(other);

export function morphChildren(from, to) {
  const keyed = new Map();
  for (const child of from.childNodes) {
    const key = keyOf(child);
    if (key) keyed.set(`${child.nodeName} ${key}`, child);
  }
  let at = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    const key = keyOf(wanted);
    let found = null;
    if (key) found = keyed.get(`${wanted.nodeName} ${key}`) ?? null;
    else if (at && same(at, wanted)) found = at;
    if (!found) {
      const made = document.importNode(wanted, true);
      if (key && made.nodeType === Node.ELEMENT_NODE) made.classList.add("fresh");
      from.insertBefore(made, at);
      continue;
    }
    if (found === at) at = at.nextSibling;
    else from.insertBefore(found, at);
    morph(found, wanted);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function morph(from, to) {
  if (from.nodeType !== Node.ELEMENT_NODE) {
    if (from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue;
    return;
  }
  // An operation id that is out already must stay: trying again with it does nothing a second time.
  if (from.hasAttribute("data-keep")) return;
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name) && !(name === "open" && from.nodeName === "DETAILS") && name !== "data-script")
      from.removeAttribute(name);
  }
  for (const { name, value } of [...to.attributes]) {
    if (name === "open" && from.nodeName === "DETAILS") continue;
    if (from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
  morphChildren(from, to);
}

// What a person typed or chose that the page did not have.
export function isDirty(field) {
  if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
  return field.value !== field.defaultValue;
}

export const typedFields = (root) =>
  [...root.querySelectorAll("textarea, input")].filter(
    (field) => field.type !== "hidden" && field.type !== "checkbox" && field.type !== "radio" && isDirty(field),
  );
