// Requests with the key, which this tab alone keeps; what is refused comes back as words for a person.

const KEPT = "sparkloom-key";

export const key = {
  get: () => sessionStorage.getItem(KEPT) || "",
  set: (value) => sessionStorage.setItem(KEPT, value),
  forget: () => sessionStorage.removeItem(KEPT),
};

export class Refused extends Error {
  constructor(message, status, wait) {
    super(message);
    this.status = status;
    this.wait = wait; // seconds, where the answer said so
  }
}

export async function ask(path, options = {}) {
  let answer;
  try {
    const headers = { ...options.headers, Authorization: `Bearer ${key.get()}` };
    answer = await fetch(path, { cache: "no-store", credentials: "omit", redirect: "error", ...options, headers });
  } catch (error) {
    if (error.name === "AbortError" || error.name === "TimeoutError") throw error;
    throw new Refused("This site does not answer. Is the network there?", 0, null);
  }
  if (answer.ok) return answer;
  throw await refusal(answer);
}

async function refusal(answer) {
  let said = "";
  try {
    const told = JSON.parse((await answer.text()).slice(0, 20000));
    said = String(told?.error?.message ?? told?.message ?? "");
  } catch {
    said = "";
  }
  const wait = /^\d+$/.test(answer.headers.get("Retry-After") || "") ? Number(answer.headers.get("Retry-After")) : null;
  const words = {
    401: "This key opens nothing here: it is wrong, was taken away, or has ended.",
    403: "This key may not do that.",
    413: "That is longer than this site takes.",
    429: "Too many requests or tokens on this key in this minute.",
  };
  const first = words[answer.status] || said || `The site answered ${answer.status}.`;
  const again = wait === null ? "" : ` Again in ${wait} s.`;
  const more = words[answer.status] && said && answer.status !== 401 ? ` (${said})` : "";
  return new Refused(`${first}${more}${again}`, answer.status, wait);
}
