// A small chat: a stream of one model, read piece by piece; Stop ends the request itself, so the engine stops too.

import { ask } from "./asking.js";
import { duration, find, make, number } from "./dom.js";

let turns = []; // what was said, as the model is told it again
let running = null; // the controller of the request on its way
let generation = 0; // another after "New chat": what comes late belongs to no chat

export function begin() {
  find("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  find("words").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      send();
    }
  });
  find("stop").addEventListener("click", stop);
  find("anew").addEventListener("click", anew);
}

export function stop() {
  running?.abort();
}

export function anew() {
  stop();
  generation += 1;
  turns = [];
  find("chat").replaceChildren();
  say("");
}

// The names that this key opens, each with its state where it does not serve; a choice stays, else one that serves.
export function offer(names, states) {
  const select = find("model");
  const told = (name) => (!states.has(name) || states.get(name) === "serves" ? name : `${name} (${states.get(name)})`);
  if ([...select.options].map((option) => option.text).join("\n") === names.map(told).join("\n")) return;
  const chosen = select.value;
  select.replaceChildren(...names.map((name) => make("option", { value: name }, told(name))));
  select.value = names.includes(chosen) ? chosen : names.find((name) => states.get(name) === "serves") ?? names[0] ?? "";
}

const say = (text) => { find("chat-state").textContent = text; };

function add(who) {
  const said = make("span");
  const place = make("div", { class: "turn" }, make("span", { class: "who" }, who), said);
  find("chat").append(place);
  return { place, said };
}

function follow() {
  const chat = find("chat");
  if (chat.scrollHeight - chat.scrollTop - chat.clientHeight < 80) chat.scrollTop = chat.scrollHeight;
}

async function send() {
  const words = find("words").value.trim();
  const model = find("model").value;
  if (running || !words) return;
  if (!model) return say("No model to ask: none that this key opens is up.");
  const mine = generation;
  find("words").value = "";
  add("You").said.textContent = words;
  const answer = add(model);
  find("chat").scrollTop = find("chat").scrollHeight;
  const asked = [...turns, { role: "user", content: words }];
  busy(new AbortController());
  const told = { text: "", thought: "", first: null, begun: performance.now(), usage: null, why: "" };
  let problem = "";
  try {
    await stream(model, asked, running.signal, (event) => {
      if (mine === generation) take(event, told, answer);
    });
  } catch (error) {
    problem = error.name === "AbortError" ? "Stopped." : error.message;
  } finally {
    busy(null);
  }
  if (mine !== generation) return;
  if (told.text) turns = [...asked, { role: "assistant", content: told.text }];
  else {
    if (problem) find("words").value ||= words;
    if (!told.thought) answer.place.remove();
  }
  say([problem, ended(told)].filter(Boolean).join(" "));
}

function busy(controller) {
  running = controller;
  find("send").disabled = Boolean(controller);
  find("stop").disabled = !controller;
  if (controller) say("Waiting for the first word…");
}

// A model that sleeps says in comments how far it is; an engine's own pings have nothing to tell.
const waits = (text) => { if (/ (starts|waits)\b/.test(text)) say(`${text}…`); };

async function stream(model, messages, signal, each) {
  const body = JSON.stringify({ model, messages, stream: true, stream_options: { include_usage: true } });
  const answer = await ask("/v1/chat/completions", { method: "POST", body, signal, headers: { "Content-Type": "application/json" } });
  const reader = answer.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    rest += decoder.decode(value || new Uint8Array(), { stream: !done });
    const lines = rest.split(/\r\n|\n|\r(?!$)/);
    rest = done ? "" : lines.pop();
    for (const line of lines) {
      if (line.startsWith(":") && line.length > 2) waits(line.slice(1).trim());
      if (!line.startsWith("data:")) continue;
      const data = line.slice(5).trim();
      if (data === "[DONE]") {
        reader.cancel();
        return;
      }
      each(parsed(data));
    }
    if (done) throw new Error("The answer broke off: its engine went away, or the way to it.");
  }
}

function parsed(text) {
  let event;
  try {
    event = JSON.parse(text);
  } catch {
    throw new Error("The answer holds what is no event of a stream.");
  }
  if (event && event.error) throw new Error(String(event.error.message || "The engine reported an error."));
  return event || {};
}

function take(event, told, answer) {
  const choice = event.choices?.[0];
  const delta = choice?.delta || {};
  const thought = delta.reasoning_content || delta.reasoning || "";
  if (event.usage) told.usage = event.usage;
  if (choice?.finish_reason) told.why = choice.finish_reason;
  if ((thought || delta.content) && told.first === null) {
    told.first = performance.now();
    say("Answers…");
  }
  if (thought) {
    told.thought += thought;
    thinking(answer).append(String(thought));
  }
  if (delta.content) {
    told.text += delta.content;
    answer.said.append(String(delta.content));
  }
  follow();
}

function thinking(answer) {
  if (!answer.thought) {
    answer.thought = make("span");
    answer.place.insertBefore(make("details", {}, make("summary", {}, "Its thoughts"), answer.thought), answer.said);
  }
  return answer.thought;
}

function ended(told) {
  if (told.first === null) return "";
  const seconds = (performance.now() - told.first) / 1000;
  const parts = [`First word after ${duration1((told.first - told.begun) / 1000)}`];
  const tokens = told.usage?.completion_tokens;
  if (tokens) parts.push(`${number(tokens)} tokens in ${duration1(seconds)}`);
  if (tokens > 1 && seconds > 0.2) parts.push(`${number((tokens - 1) / seconds, 1)} tok/s`);
  if (told.why === "length") parts.push("cut off at its limit");
  return `${parts.join(", ")}.`;
}

const duration1 = (seconds) => (seconds < 10 ? `${number(seconds, 2)} s` : duration(seconds));
