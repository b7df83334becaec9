// Elements are made one by one, and all text is text: nothing that a model or a cluster says is ever read as markup.

export const find = (id) => document.getElementById(id);

export function make(name, options = {}, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(options)) {
    if (key === "class") made.className = value;
    else if (key === "on") for (const [event, act] of Object.entries(value)) made.addEventListener(event, act);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...inside.filter((part) => part !== null && part !== undefined && part !== ""));
  return made;
}

// Puts new content in place of the old one, unless it is the same: who selects text or reads along is not disturbed.
export function fill(place, ...inside) {
  const next = make("div", {}, ...inside);
  if (place.childNodes.length && next.isEqualNode(copyOf(place))) return false;
  const open = new Set([...place.querySelectorAll("details[open][data-id]")].map((one) => one.dataset.id));
  for (const one of next.querySelectorAll("details[data-id]")) one.open = open.has(one.dataset.id);
  const focused = document.activeElement && place.contains(document.activeElement) && document.activeElement.closest("[data-id]");
  place.replaceChildren(...next.childNodes);
  if (focused) [...place.querySelectorAll("details[data-id]")].find((one) => one.dataset.id === focused.dataset.id)?.querySelector("summary")?.focus();
  return true;
}

function copyOf(place) {
  const copy = make("div", {}, ...[...place.childNodes].map((child) => child.cloneNode(true)));
  for (const one of copy.querySelectorAll("details[open]")) one.removeAttribute("open");
  return copy;
}

export const pair = (term, ...told) => make("div", {}, make("dt", {}, term), make("dd", {}, ...told));

export const number = (value, digits = 0) =>
  value === null || value === undefined ? "–" : value.toLocaleString("en", { maximumFractionDigits: digits });

export function duration(seconds) {
  if (seconds < 90) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

export function moment(text) {
  const at = new Date(text);
  if (!text || Number.isNaN(at.getTime())) return text || "";
  return make("time", { datetime: at.toISOString() }, at.toLocaleString([], { dateStyle: "medium", timeStyle: "short" }));
}
