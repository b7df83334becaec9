// One look after the other while somebody looks; what is late says how late, what is refused says why.

import { ask, key, Refused } from "./asking.js";
import * as chat from "./chat.js";
import * as connection from "./connect.js";
import { duration, find } from "./dom.js";
import { draw } from "./draw.js";
import * as manage from "./manage.js";

const EVERY = 5; // seconds between two looks
const LATE = 20; // seconds, from which on the data counts as late
const PATIENCE = 15; // seconds for one answer
const MODELS_EVERY = 30; // seconds between two questions for the names that this key opens

let timer = null;
let seen = null; // {at: when it came here, age: how old it was then}
let names = [];
let askedNames = -Infinity;
let turn = 0; // another with every key: what an earlier one asked for is not shown

function notice(text, bad = true) {
  const place = find("notice");
  if (place.textContent !== text) place.textContent = text;
  place.hidden = !text;
  place.classList.toggle("bad", bad);
}

function freshness() {
  if (!seen) {
    find("freshness").textContent = "";
    return;
  }
  const age = seen.age + (performance.now() - seen.at) / 1000;
  find("freshness").textContent = age > LATE ? `What you see is ${duration(age)} old.` : `As of ${duration(age)} ago.`;
  find("freshness").classList.toggle("late", age > LATE);
}

function next(seconds) {
  clearTimeout(timer);
  timer = setTimeout(look, seconds * 1000);
}

async function look() {
  if (!key.get()) return;
  if (document.hidden) {
    next(EVERY);
    return;
  }
  const mine = turn;
  try {
    const answer = await ask("/page/data/status.json", { signal: AbortSignal.timeout(PATIENCE * 1000) });
    const picture = await answer.json();
    if (mine !== turn) return;
    seen = { at: performance.now(), age: Number(answer.headers.get("Age")) || 0 };
    show(true);
    draw(picture);
    notice("");
    await models();
    if (mine !== turn) return;
    chat.offer(names, new Map(picture.groups.flatMap((group) => group.names.map((name) => [name, group.word]))));
    connection.connect(names);
    manage.open(picture.groups);
    next(EVERY);
  } catch (error) {
    if (mine === turn) failed(error);
  }
  freshness();
}

function failed(error) {
  if (error instanceof Refused && error.status === 401) {
    leave(error.message);
    return;
  }
  const late = error.name === "TimeoutError" ? `The site took longer than ${PATIENCE} s to say what it is.` : null;
  const words = late || (error instanceof Refused ? error.message : "What the site said cannot be read.");
  notice(seen ? `${words} Below is what was last seen.` : words);
  next(Math.max(EVERY, error.wait || 0));
}

// What this key opens, as clients see it. A list that does not come now leaves the last one.
async function models() {
  if (performance.now() - askedNames < MODELS_EVERY * 1000) return;
  askedNames = performance.now();
  try {
    const answer = await ask("/v1/models", { signal: AbortSignal.timeout(PATIENCE * 1000) });
    const listed = await answer.json();
    names = (listed.data || []).map((model) => String(model.id));
  } catch (error) {
    if (error instanceof Refused && error.status === 429) notice(error.message, false);
  }
}

function show(inside) {
  find("enter").hidden = inside;
  find("content").hidden = !inside;
  find("leave").hidden = !inside;
}

// With a key, right or not: whoever gave a wrong one can take it back at once.
function enter() {
  find("enter").hidden = true;
  find("leave").hidden = false;
  find("headline").textContent = "Asking the site…";
  look();
}

function leave(text = "") {
  clearTimeout(timer);
  turn += 1;
  key.forget();
  chat.anew();
  manage.close();
  seen = null;
  names = [];
  askedNames = -Infinity;
  find("site").textContent = "Sparkloom";
  document.title = "Sparkloom";
  find("headline").textContent = "This page wants a key of this site.";
  freshness();
  show(false);
  notice(text);
  find("key").focus();
}

find("enter").addEventListener("submit", (event) => {
  event.preventDefault();
  const given = find("key").value.trim();
  find("key").value = "";
  if (!/^[\x21-\x7e]+$/.test(given)) {
    notice(given ? "A key has letters, digits and signs of ASCII, without spaces." : "Write a key first.");
    return;
  }
  turn += 1;
  key.set(given);
  notice("");
  enter();
});
find("leave").addEventListener("click", () => leave());
find("model").addEventListener("change", () => connection.connect(names));
document.addEventListener("visibilitychange", () => { if (!document.hidden && key.get()) next(0); });
setInterval(freshness, 1000);
chat.begin();
manage.begin();
connection.begin();
if (key.get()) enter();
