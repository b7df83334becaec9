// What a key that may administer does here: logs, keys, usage, and each action after its own words were seen.

import { ask, Refused } from "./asking.js";
import { fill, find, make, number } from "./dom.js";

const PATIENCE = 30; // seconds for one answer

let session = null; // {token, person, of_group}; null until it was asked for, false for a key that may not
let groups = []; // as they were last seen
let confirmed = null; // what the open dialog waits to be told

export async function open(seen) {
  groups = seen;
  offer();
  if (session !== null) return;
  try {
    session = await post("session");
  } catch (error) {
    if (error instanceof Refused && error.status && error.status < 500) session = false;
    return;
  }
  find("me").textContent = session.person;
  fill(find("group-acts"), ...session.of_group.map((name) => make("button", { type: "button", "data-act": name }, name[0].toUpperCase() + name.slice(1))));
  show(true);
  refresh();
}

export function close() {
  session = null;
  show(false);
  find("confirm").close();
  made("");
  for (const id of ["logs", "people", "used", "journal", "group", "opens"]) find(id).replaceChildren();
  say("");
}

function show(inside) {
  find("manage").hidden = !inside;
  find("manage-link").hidden = !inside;
}

const say = (text) => { find("manage-state").textContent = text; };

function made(key) {
  find("made").hidden = !key;
  find("made-key").textContent = key;
}

async function post(name, given = {}) {
  const headers = { "Content-Type": "application/json", "X-Sparkloom-Token": session ? session.token : "" };
  const signal = AbortSignal.timeout(PATIENCE * 1000);
  return (await ask(`/page/act/${name}`, { method: "POST", body: JSON.stringify(given), headers, signal })).json();
}

// A server that began anew knows no earlier session: another one is asked for, once.
async function posted(name, given) {
  try {
    return await post(name, given);
  } catch (error) {
    if (!(error instanceof Refused) || error.status !== 403) throw error;
    session = { ...session, ...(await post("session")) };
    return post(name, given);
  }
}

async function told(what, work) {
  say(`${what}…`);
  try {
    say((await work()) || "");
  } catch (error) {
    say(error.name === "TimeoutError" ? `No answer within ${PATIENCE} s.` : error.message);
  }
}

function offer() {
  const names = groups.map((group) => group.name);
  const select = find("group");
  if ([...select.options].map((one) => one.value).join("\n") === names.join("\n")) return;
  const chosen = select.value;
  select.replaceChildren(...names.map((name) => make("option", { value: name }, name)));
  if (names.includes(chosen)) select.value = chosen;
  fill(find("opens"), make("legend", {}, "Models; none chosen means all"), ...groups.map((group) => group.names[0] || group.name).map((name) =>
    make("label", { class: "choice" }, make("input", { type: "checkbox", name: "model", value: name }), name)));
}

// First what will happen, then, where a person says so, that it does.
function act(name, given) {
  return told("Asking what it would do", async () => {
    let plan = await posted(name, given);
    while (plan.confirm) {
      if (!(await agreed(plan.will))) return "Nothing was done.";
      say("Doing it…");
      plan = await posted(name, { ...given, confirm: plan.confirm });
    }
    made(plan.key || "");
    if (plan.key) {
      find("make").reset();
      find("made-key").focus();
    }
    await refresh();
    return plan.said;
  });
}

function agreed(words) {
  find("confirm-words").textContent = `${words[0].toUpperCase()}${words.slice(1)}.`;
  find("confirm").showModal();
  return new Promise((then) => { confirmed = then; });
}

async function refresh() {
  try {
    const [of_keys, of_usage] = await Promise.all([posted("keys"), posted("usage")]);
    fill(find("people"), ...of_keys.keys.map(person));
    fill(find("journal"), ...of_keys.journal.map((line) => make("li", {}, line)));
    fill(find("used"), ...(of_usage.rows.length ? of_usage.rows.map(use) : [make("tr", {}, make("td", { colspan: 6 }, `Nothing was asked since ${of_usage.since}.`))]));
  } catch (error) {
    say(error.message);
  }
}

function person(one) {
  const day = one.ends ? new Date(one.ends * 1000 - 1).toISOString().slice(0, 10) : "never";
  const state = one.taken ? `revoked by ${one.taken}` : one.ended ? `${day} (over)` : day;
  const revocable = !one.taken && one.name !== "owner";
  const may = one.admin ? make("span", { class: "note block" }, "may administer") : "";
  return make("tr", {}, make("th", { scope: "row" }, one.name, may), make("td", {}, (one.models || "all").split(",").filter(Boolean).join(", ") || "none"),
    make("td", {}, state), make("td", { class: "wide" }, one.by ? `on this page by ${one.by}` : one.name === "owner" ? "the site's own" : "keys.yml"),
    make("td", {}, revocable ? make("button", { type: "button", class: "quiet", "data-revoke": one.name, "aria-label": `Revoke the key of ${one.name}` }, "Revoke") : ""));
}

function use(one) {
  return make("tr", {}, make("th", { scope: "row" }, one.person || "(no key)"), make("td", {}, one.model || "–"),
    ...["requests", "refused", "prompt_tokens", "completion_tokens"].map((name, place) => make("td", { class: place % 3 ? "number wide" : "number" }, number(one[name]))));
}

function log(name) {
  return told(`Reading what ${name} said`, async () => {
    const ranks = (groups.find((group) => group.name === name)?.ranks || []).filter((rank) => rank.pod);
    const said = await Promise.all(ranks.map((rank) => posted("log", { pod: rank.pod }).then(({ lines }) => lines.join("\n") || "It said nothing.", (error) => error.message)));
    fill(find("logs"), ...ranks.map((rank, place) => make("div", {}, make("h4", {}, `Rank ${rank.rank} on ${rank.node}`),
      make("pre", { tabindex: 0, role: "region", "aria-label": `Log of rank ${rank.rank}`, class: "log" }, said[place]))));
    for (const place of find("logs").querySelectorAll("pre")) place.scrollTop = place.scrollHeight;
    return ranks.length ? `The last lines of ${name}.` : `${name} has no pod, and so no log.`;
  });
}

export function begin() {
  find("show-log").addEventListener("click", () => log(find("group").value));
  find("group-acts").addEventListener("click", (event) => {
    const name = event.target.closest("[data-act]")?.dataset.act;
    if (name) act(name, { group: find("group").value });
  });
  find("people").addEventListener("click", (event) => {
    const name = event.target.closest("[data-revoke]")?.dataset.revoke;
    if (name) act("key-revoke", { name });
  });
  find("make").addEventListener("submit", (event) => {
    event.preventDefault();
    const models = [...find("opens").querySelectorAll("input:checked")].map((one) => one.value);
    act("key-add", { name: find("new-name").value.trim(), models, days: Number(find("new-days").value) || 0, admin: find("new-admin").checked });
  });
  find("manage").addEventListener("click", (event) => {
    const what = event.target.closest("[data-copy]")?.dataset.copy;
    if (what) navigator.clipboard.writeText(find(what).textContent).then(() => say("Copied."), () => say("Select it and copy it."));
  });
  const dialog = find("confirm");
  find("confirm-yes").addEventListener("click", () => dialog.close("yes"));
  find("confirm-no").addEventListener("click", () => dialog.close(""));
  dialog.addEventListener("cancel", () => { dialog.returnValue = ""; });
  dialog.addEventListener("close", () => {
    confirmed?.(dialog.returnValue === "yes");
    confirmed = null;
    dialog.returnValue = "";
  });
}
