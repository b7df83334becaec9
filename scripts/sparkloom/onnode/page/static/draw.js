// The picture of the site, as /page/data/status.json has it.

import { duration, fill, find, make, moment, number, pair } from "./dom.js";

const PARTS = {
  host: "the host", own: "its group's alone", free: "free to share", guard: "kept by the memory guard",
};
const SHADES = 6;

export function draw(picture) {
  const groups = picture.groups || [];
  const shades = new Map(groups.map((group, place) => [group.name, place % SHADES]));
  const counted = groups.filter((group) => group.listed || group.ranks.length);
  const up = counted.filter((group) => group.serving).length;
  find("site").textContent = picture.site || "Sparkloom";
  document.title = `${picture.site || "Sparkloom"}: ${up} of ${counted.length} serve`;
  const resting = ["asleep", "stopped"].map((state) => [counted.filter((group) => group.state === state).length, state]);
  const rest = resting.filter(([count]) => count).map(([count, state]) => `, ${count} ${state}`).join("");
  const told = `${up} of ${counted.length} model${counted.length === 1 ? "" : "s"} serve${up === 1 ? "s" : ""}${rest}`;
  if (find("headline").textContent !== told) find("headline").textContent = told;
  fill(find("totals"),
    pair("tokens a second", number(picture.tokens_per_second, 1)),
    pair("requests running", number(picture.running)),
    pair("waiting", number(picture.queued)),
    pair("models up", `${up} / ${counted.length}`));
  const problems = picture.problems || [];
  fill(find("problems"), ...problems.map((problem) => make("li", {}, problem)));
  find("problems").hidden = !problems.length;
  fill(find("groups"), ...(groups.length
    ? groups.map((group) => card(group, shades.get(group.name)))
    : [make("p", {}, "Nothing is served here now.")]));
  fill(find("nodes"), ...(picture.nodes || []).map((node) => spark(node, groups, shades)));
  fill(find("legend"), ...legend(picture.nodes || [], groups, shades));
  fill(find("rails"), ...rails(picture));
}

// --- groups

function card(group, shade) {
  return make("article", { class: `group shade${shade}`, "aria-label": group.name },
    make("header", {}, make("h3", {}, group.names[0] || group.name), make("span", { class: `state ${group.state}` }, group.word)),
    make("p", { class: "note" }, subtitle(group)),
    group.doing || group.state === "wakes" ? make("p", { class: "cause mild" }, [group.doing, waking(group)].filter(Boolean).join("; ")) : "",
    group.state === "asleep" ? make("p", { class: "cause calm" }, "Asleep, wakes with the next request.") : "",
    group.cause && !group.serving ? make("p", { class: "cause" }, group.cause) : "",
    ...(group.serving ? group.rails : []).map((text) => make("p", { class: "cause" }, text)),
    figures(group),
    make("dl", { class: "facts" }, ...facts(group)),
    bench(group),
    ranks(group));
}

// How long a waking takes by now, of what the last proved start took.
function waking(group) {
  if (group.state !== "wakes") return "";
  const { seconds, expected } = group.on_demand;
  const waits = group.held ? `${number(group.held)} waiting for it` : "";
  const took = seconds === null ? "" : `${duration(seconds)}${expected ? ` of about ${duration(expected)}` : ""}`;
  return [took, waits].filter(Boolean).join(", ") || "begins to start";
}

function subtitle(group) {
  const nodes = [...new Set(group.ranks.map((rank) => rank.node))];
  const share = group.fraction ? `${Math.round(group.fraction * 100)} % of ` : "";
  const place = group.on_demand ? group.on_demand.nodes.join(", ") : "";
  const where = nodes.length ? `on ${share}${nodes.join(", ")}` : place ? `its place is on ${share}${place}` : "on no Spark";
  return [group.model, where, [group.engine, group.release].filter(Boolean).join(" ")].filter(Boolean).join(" · ");
}

function figures(group) {
  if (!group.serving) return "";
  const told = [
    ["tok/s", group.tokens_per_second, (value) => number(value, 1)],
    ["running", group.running, number],
    ["waiting", group.queued, number],
    ["held by the router", group.held, number],
    ["cache", group.cache_usage, (value) => `${number(value * 100)} %`],
    ["tokens a step", group.accept_length, (value) => number(value, 2)],
  ].filter(([, value]) => value !== null && value !== undefined);
  if (!told.length) return make("p", { class: "note" }, "This engine tells no figures.");
  return make("dl", { class: "figures" }, ...told.map(([name, value, form]) => pair(name, form(value))));
}

function facts(group) {
  const found = [];
  if (group.since) found.push(pair("since", moment(group.since)));
  if (group.on_demand) {
    const mates = group.on_demand.turns ? `, takes turns with the others of ${group.on_demand.turns}` : "";
    found.push(pair("on demand", `sleeps after ${number(group.on_demand.idle_minutes)} min without a request${mates}`));
  }
  if (group.serving) found.push(pair("proof", proof(group)));
  if (group.evidence) found.push(pair("profile", evidence(group.evidence)));
  const again = restarts(group);
  if (again) found.push(pair("restarts", again));
  if (group.failed) found.push(pair("failure", `${group.failed.profile}, `, moment(group.failed.at), `: ${firstLine(group.failed.cause)}`));
  return found;
}

const firstLine = (text) => String(text || "").split("\n", 1)[0];

function proof(group) {
  if (!group.proved) return "none: this start was not proved";
  const took = group.ready_seconds ? `, a token ${duration(group.ready_seconds)} after the start` : "";
  return `${group.transport || "a streamed answer"}${took}`;
}

function evidence(told) {
  const speeds = ["n1", "n4", "n8"].filter((name) => told[name]).map((name) => `${number(told[name], 1)} tok/s with ${name === "n1" ? "1 stream" : `${name.slice(1)} streams`}`);
  const source = /^https:\/\//.test(told.source || "")
    ? make("a", { href: told.source, rel: "noopener noreferrer nofollow", target: "_blank" }, "source")
    : told.source || "";
  return make("span", {}, [told.status, speeds.join(", ")].filter(Boolean).join(": "), source ? " (" : "", source, source ? ")" : "");
}

function restarts(group) {
  const parts = [];
  if (group.restarts) parts.push(`${group.restarts} of containers`);
  if (group.epochs > 1) parts.push(`engines started ${group.epochs} times`);
  const told = group.ended && !group.serving && String(group.cause || "").includes(group.ended.why); // above, at length
  if (group.ended && !told && (group.epochs > 1 || !group.serving)) parts.push(`last ended: ${group.ended.why}`);
  return parts.join("; ");
}

function bench(group) {
  if (!group.bench) return "";
  const head = ["streams", "first token", "tok/s each", "tok/s all", "answers"];
  const rows = group.bench.levels.map((level) => make("tr", {},
    make("td", { class: "number" }, number(level.concurrency)),
    make("td", { class: "number" }, level.ttft_p50_ms === null ? "–" : `${number(level.ttft_p50_ms)} ms`),
    make("td", { class: "number" }, number(level.decode_tok_s, 1)),
    make("td", { class: "number" }, number(level.wall_tok_s, 1)),
    make("td", {}, `${number(level.ok)}/${number(level.requests)} ${level.text === "ok" ? "text" : level.text || ""}`)));
  const doubt = group.bench.valid ? "" : " (not valid)";
  return make("details", { "data-id": `bench ${group.name}` },
    make("summary", {}, "Last benchmark", doubt, ", ", moment(group.bench.measured)),
    make("div", { class: "scroll bench", tabindex: 0, role: "region", "aria-label": "The last benchmark" },
      make("table", {}, make("thead", {}, make("tr", {}, ...head.map((text, place) => make("th", { scope: "col", class: place < 4 ? "number" : "" }, text)))), make("tbody", {}, ...rows))));
}

function ranks(group) {
  if (!group.ranks.length) return "";
  const listed = group.ranks.map((rank) => make("li", {},
    `rank ${rank.rank} on ${rank.node}: ${rank.state}`, rank.restarts ? `, ${rank.restarts} restart${rank.restarts === 1 ? "" : "s"}` : "",
    says(rank)));
  return make("details", { "data-id": `ranks ${group.name}` },
    make("summary", {}, `${group.ranks.length} rank${group.ranks.length === 1 ? "" : "s"}, profile ${group.profile}`),
    make("ul", { class: "ranks" }, ...listed));
}

function says(rank) {
  const transport = rank.supervisor && rank.supervisor.transport;
  if (rank.cause) return make("span", { class: "says bad" }, rank.cause);
  return transport ? make("span", { class: "says" }, transport) : "";
}

// --- Sparks and rails

function spark(node, groups, shades) {
  const used = node.groups.reduce((sum, each) => sum + (each.gib || 0), 0);
  const title = (name) => groups.find((group) => group.name === name)?.names[0] || name;
  const who = node.groups.map((each) => `${title(each.group)} (rank ${each.rank})`).join(", ");
  const told = node.groups.length ? `${who}: ${number(used, 1)} of ${number(node.usable_gib, 1)} GiB` : `free, ${number(node.usable_gib, 1)} GiB`;
  const wrong = !node.there ? "not in the cluster" : !node.ready ? "not ready: is it switched on?" : node.cordoned ? "takes no new pods" : "";
  const bar = make("div", { class: "bar", role: "img", "aria-label": `Memory of ${node.name}: ${told}` });
  for (const part of node.bar.filter((one) => one.gib > 0)) {
    const drawn = make("span", { class: part.what === "group" ? `group-part shade${shades.get(part.group)}` : part.what, title: `${part.what === "group" ? part.group : PARTS[part.what]}: ${number(part.gib, 1)} GiB` },
      part.what === "group" && part.gib > 12 ? number(part.gib, 0) : "");
    drawn.style.flexGrow = String(part.gib);
    bar.append(drawn);
  }
  return make("div", { class: "node" },
    make("div", { class: "name" }, make("strong", {}, node.name), make("span", { class: wrong ? "wrong" : "note" }, wrong), make("span", { class: "note" }, told)),
    bar);
}

function legend(nodes, groups, shades) {
  const seen = new Set(nodes.flatMap((node) => node.bar.filter((part) => part.gib > 0).map((part) => part.what === "group" ? `group ${part.group}` : part.what)));
  const swatch = (look, text) => make("li", {}, make("span", { class: `swatch ${look}`, "aria-hidden": "true" }), text);
  return [
    ...groups.filter((group) => seen.has(`group ${group.name}`)).map((group) => swatch(`group-part shade${shades.get(group.name)}`, group.names[0] || group.name)),
    ...Object.entries(PARTS).filter(([what]) => seen.has(what)).map(([what, text]) => swatch(what, text)),
  ];
}

function rails(picture) {
  if (!(picture.rails || []).length) return [make("p", { class: "note" }, "There are no rails here: each model is on one Spark.")];
  const rows = picture.rails.map((rail) => make("tr", {},
    make("td", {}, rail.name), make("td", {}, rail.link_gbit ? `${number(rail.link_gbit)} Gb/s, MTU ${rail.mtu}` : ""),
    make("td", {}, rail.slowest_gbit === null ? "not measured" : `${number(rail.slowest_gbit, 1)} to ${number(rail.fastest_gbit, 1)} Gb/s`),
    make("td", { class: rail.faults.length ? "bad" : "" }, rail.faults.join("; ") || "no rank complains")));
  const told = picture.fabric ? make("p", { class: "note" }, `Measured ${picture.fabric.time}: ${picture.fabric.verdict}.`) : "";
  return [make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Rails" },
    make("table", {}, make("thead", {}, make("tr", {}, ...["rail", "link", "measured", "now"].map((text) => make("th", { scope: "col" }, text)))), make("tbody", {}, ...rows))), told];
}
