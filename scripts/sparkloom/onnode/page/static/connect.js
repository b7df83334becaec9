// How other programs reach this site: its own address and names, and never the key.

import { fill, find, make } from "./dom.js";

const KEY = "YOUR_KEY";
const quoted = (text) => `'${String(text).replaceAll("'", "'\\''")}'`;

function ways(base, model) {
  const body = JSON.stringify({ model, stream: true, messages: [{ role: "user", content: "Hello" }] });
  return [
    ["curl", `curl -N ${base}/chat/completions \\\n  -H 'Authorization: Bearer ${KEY}' \\\n  -H 'Content-Type: application/json' \\\n  -d ${quoted(body)}`],
    ["OpenAI SDK (Python)", `from openai import OpenAI\n\nclient = OpenAI(base_url=${JSON.stringify(base)}, api_key="${KEY}")\nstream = client.chat.completions.create(\n    model=${JSON.stringify(model)}, stream=True,\n    messages=[{"role": "user", "content": "Hello"}],\n)\nfor event in stream:\n    if event.choices:\n        print(event.choices[0].delta.content or "", end="", flush=True)`],
    ["Open WebUI", `OPENAI_API_BASE_URL=${base}\nOPENAI_API_KEY=${KEY}`],
    ["Claude Code (its requests go to /v1/messages: the engine must have that)", `export ANTHROPIC_BASE_URL=${base.replace(/\/v1$/, "")}\nexport ANTHROPIC_AUTH_TOKEN=${KEY}\nexport ANTHROPIC_MODEL=${quoted(model)}\nexport ANTHROPIC_SMALL_FAST_MODEL=${quoted(model)}\nclaude`],
    ["Codex (~/.codex/config.toml; its requests go to /v1/responses: the engine must have that)", `model = ${JSON.stringify(model)}\nmodel_provider = "site"\n\n[model_providers.site]\nname = "site"\nbase_url = ${JSON.stringify(base)}\nenv_key = "SITE_KEY"   # export SITE_KEY=${KEY}\nwire_api = "responses"`],
    ["Certificates of the site's own authority", `export SSL_CERT_FILE=$PWD/ca.pem         # Python, curl (--cacert ca.pem)\nexport NODE_EXTRA_CA_CERTS=$PWD/ca.pem   # Claude Code and what else runs on Node.js`],
  ];
}

export function connect(names) {
  const base = `${location.origin}/v1`;
  const model = find("model").value || names[0] || "MODEL";
  find("base").textContent = base;
  fill(find("ways"), ...ways(base, model).map(([title, text]) => make("div", { class: "way" },
    make("header", {}, make("h3", {}, title), make("button", { type: "button", class: "quiet copy", "aria-label": `Copy: ${title}` }, "Copy")),
    make("pre", { tabindex: 0 }, make("code", {}, text)))));
}

// One listener for all of them: what is drawn anew keeps working.
export function begin() {
  find("ways").addEventListener("click", async (event) => {
    const button = event.target.closest("button.copy");
    if (!button) return;
    const text = button.closest(".way").querySelector("code").textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select and copy";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}
