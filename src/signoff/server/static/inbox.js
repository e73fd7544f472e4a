// The pages' script: it sends answers, keeps the page up to date, and makes the keyboard work.
// Everything it shows comes from the server as HTML that is made there, or goes in as text.

const base = document.documentElement.dataset.base;
const texts = {
  new_one: "1 new",
  new_other: "{n} new",
  approved: "Approved.",
  denied: "Denied.",
  counted: "Your approval is counted. It takes more than one.",
  settled: "Settled in the meantime",
  gone: "settled",
  failed: "Not done:",
  offline: "The server does not respond. Nothing was sent twice; try again.",
  locked: "Locked:",
  unlocked: "Everything was read. You can approve now.",
  hold_on: "Hold it down for a second: this cannot be undone.",
  too_soon: "The card has only just appeared. Press again.",
  asked: "Asked back. The request stays open.",
  noted: "Noted.",
  answered: "The answer was sent.",
  claimed: "It is yours.",
  released: "Given back.",
  handed: "Handed over.",
  selected_one: "1 selected:",
  selected_other: "{n} selected:",
  watching: "also looking:",
  reconnected: "Connected again.",
  no_offers: "The answer to this request cannot be remembered.",
  no_drafts: "No rule can be made from this call.",
  write_rule: "Write this rule",
  written: "Written.",
  over: "overdue",
  unchanged: "The arguments are unchanged: approve the call as it is.",
  not_json: "This is not valid JSON:",
  why_halt: "Why do you halt everything?",
  why_cancel: "Why do you cancel the run?",
  resumed: "The run will resume shortly.",
  happened: "Noted: it happened.",
  edited: "Approved with your arguments.",
  sent_back: "The call is refused, and the agent is told your arguments.",
  enter: "Enter never approves. Press a, or the space bar.",
  arrived_one: "1 new request waits",
  arrived_other: "{n} new requests wait",
  changed: "Not sent: the request has changed. Read it again.",
  editing: "The form is open: send it or close it first.",
  did_not: "Noted: it did not happen.",
  nothing_picked: "Nothing is selected. Press x on a request first.",
  only_json: "The form cannot show this, so it stays JSON.",
  unread: "Unfold the long parts first: you cannot approve what you have not read.",
};
const csrf = document.querySelector('meta[name="csrf"]')?.content ?? "";
const $ = (what, within = document) => within.querySelector(what);
const $$ = (what, within = document) => [...within.querySelectorAll(what)];
const HOLD = 1000; // milliseconds that a button is held down where a call cannot be undone
const GRACE = 400; // a card has to be there for so long before a key decides about it: it may be meant for the one before

// --- saying things ---

let saidUntil = 0;
function say(text) {
  const place = $("#said");
  ($("dialog[open]") ?? document.body).append(place); // what is behind an open dialog is neither seen nor heard
  place.textContent = "";
  setTimeout(() => { place.textContent = text; }, 30); // the same text twice is said twice
  clearTimeout(saidUntil);
  saidUntil = setTimeout(() => { place.textContent = ""; }, 8000);
}
document.addEventListener("close", (event) => { // of a dialog
  if (event.target.contains($("#said"))) document.body.append($("#said"));
  refreshCard(); // it was left as it is meanwhile
}, true);
const filled = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
const counted = (name, n) => filled(texts[n === 1 ? `${name}_one` : `${name}_other`], { n });

// --- the API ---

class Refused extends Error {
  constructor(problem, status) {
    super(problem.detail ?? problem.title ?? `${status}`);
    this.status = status;
    this.word = `${problem.type ?? ""}`.replace("urn:signoff:", "");
    this.problems = problem.problems ?? [];
  }
}

// A text that is JSON already, and goes out as it is: a number is not turned into one of JavaScript's, which would
// change what is large or fine.
class Raw { constructor(text) { this.text = text; } }
function jsonText(value, indent = "", step = "") {
  if (value instanceof Raw) return value.text;
  const inner = indent + step;
  const around = (open, parts, close) => (parts.length ? `${open}${step ? `\n${inner}` : ""}${parts.join(step ? `,\n${inner}` : ",")}${step ? `\n${indent}` : ""}${close}` : open + close);
  if (Array.isArray(value)) return around("[", value.map((one) => jsonText(one, inner, step)), "]");
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null";
  const named = Object.entries(value).filter(([, one]) => one !== undefined);
  return around("{", named.map(([name, one]) => `${JSON.stringify(name)}:${step ? " " : ""}${jsonText(one, inner, step)}`), "}");
}

async function fetched(address, how) {
  try { return await fetch(address, how); } catch { throw new Refused({ detail: texts.offline }, 0); }
}
function sessionEnded() { // what was written stays on the page, and comes back with whoever signs in again
  $("#ended a").href = `${location.pathname}${location.search}`; // it sends whoever is not signed in to do so
  $("#ended").hidden = false;
  $("#connection").textContent = "";
  source?.close();
}

async function api(method, path, body) {
  const headers = { accept: "application/json", "x-signoff-csrf": csrf };
  if (method !== "GET") headers["idempotency-key"] = crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  let sent;
  for (let attempt = 0; ; attempt++) { // the same key: what was done already is not done again
    try {
      sent = await fetched(`${base}/api/v1${path}`, { method, headers, body: body === undefined ? undefined : jsonText(body) });
      break;
    } catch (error) {
      if (attempt >= 2) throw error;
      await new Promise((done) => setTimeout(done, 400 * (attempt + 1)));
    }
  }
  const data = await sent.json().catch(() => ({}));
  if (sent.status === 401) sessionEnded();
  if (!sent.ok) throw new Refused(data, sent.status);
  return data;
}

async function part(path) {
  const sent = await fetched(`${base}/fragments${path}`, { headers: { accept: "text/html" } });
  if (sent.status === 401) sessionEnded();
  if (!sent.ok) throw new Refused({ detail: `${sent.status}` }, sent.status);
  const made = document.createElement("template");
  made.innerHTML = await sent.text(); // made by our own server, which escapes all that others wrote
  return made.content;
}

async function trying(work) {
  try { return await work(); } catch (error) {
    if (!(error instanceof Refused)) throw error;
    say([texts.failed, error.message, ...error.problems].join(" "));
    return undefined;
  }
}

// --- the card ---

const card = () => $("#card");
const WAITS = new Set(["pending", "unknown"]); // for a person
const cardId = () => card()?.dataset.id;
const at = (id, rest = "") => `/requests/${encodeURIComponent(id)}${rest}`;
let steadySoon = 0;
function newCard() { // from when on keys decide about it
  const place = $("#detail");
  delete place.dataset.steady;
  clearTimeout(steadySoon);
  steadySoon = setTimeout(() => { place.dataset.steady = "yes"; }, GRACE);
}
const isSteady = () => moving === null && $("#detail")?.dataset.steady === "yes";
let wanted = null; // the request that is about to be shown
let moving = null; // until it is

function showCard(id, how = {}) {
  wanted = id;
  const work = loadCard(id, how).finally(() => { if (moving === work) { moving = null; wanted = null; } });
  moving = work;
  return work;
}

async function loadCard(id, { push = true, focus = false } = {}) {
  const wasOn = cardId();
  if (wasOn !== id) { markCurrent(id); delete $("#detail").dataset.steady; }
  const content = await trying(() => part(filtered(at(id))));
  if (!content && wanted === id) { markCurrent(cardId()); if (card()) newCard(); } // it is not there: all stays as it was
  if (!content || wanted !== id) return;
  placeCard(content);
  if (wasOn !== id) { newCard(); $("#detail").scrollTop = 0; }
  if (push && location.pathname !== `${base}${at(id)}`) history.pushState({}, "", `${base}${filtered(at(id))}`);
  document.body.classList.add("on-card");
  document.body.classList.remove("on-list");
  markCurrent(id);
  if (wasOn && wasOn !== id) look(wasOn, false);
  look();
  if (focus) $("#card-title")?.focus({ preventScroll: true });
}

// The card of the same request is changed where it differs, and only there: what somebody is writing, where they are in
// it, and what they unfolded stays.
function placeCard(content) {
  const place = $("#detail");
  const now = card();
  const fresh = $("#card", content);
  if (now && fresh && now.dataset.id === fresh.dataset.id) {
    const focused = now.contains(document.activeElement);
    if (fresh.dataset.digest !== now.dataset.digest) endHold();
    morph(now, fresh);
    for (const one of $$('[data-do="send-edit"]', now)) lock(one, $('[data-do="approve"]', now)?.getAttribute("aria-disabled") === "true");
    if (focused && !now.contains(document.activeElement)) { newCard(); $("#card-title")?.focus({ preventScroll: true }); }
  } else {
    place.replaceChildren(content);
    restoreDraft();
  }
  dress(place);
}
const lock = (button, is) => { if (is) button.setAttribute("aria-disabled", "true"); else button.removeAttribute("aria-disabled"); };
const keyOf = (node) => (node.nodeType !== 1 ? `${node.nodeType}` : `${node.tagName} ${"own" in node.dataset} ${node.id || node.dataset.key || node.dataset.lock || node.getAttribute("aria-labelledby") || node.dataset.do || ""}`);
const KEPT = new Set(["open", "data-was-read", "data-sent"]);
function morph(old, fresh) {
  if (old.nodeType !== 1) { if (old.data !== fresh.data) old.data = fresh.data; return; }
  if (old.hasAttribute("data-own")) return; // the script's own
  const kept = (name) => KEPT.has(name) || (name === "class" && old.classList.contains("holding"));
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && !kept(name)) old.removeAttribute(name);
  for (const { name, value } of [...fresh.attributes]) if (old.getAttribute(name) !== value && !(old.hasAttribute(name) && kept(name))) old.setAttribute(name, value);
  if (old.tagName === "TEXTAREA") return;
  let at = old.firstChild;
  for (const child of [...fresh.childNodes]) {
    let same = at;
    while (same && keyOf(same) !== keyOf(child)) same = same.contains(document.activeElement) ? null : same.nextSibling;
    if (!same) { old.insertBefore(child, at); continue; }
    while (at !== same) { const next = at.nextSibling; at.remove(); at = next; }
    morph(same, child);
    at = same.nextSibling;
  }
  while (at) { const next = at.nextSibling; at.remove(); at = next; }
}

// What somebody writes stays with its request, also while they look at another one or sign in again.
const WRITTEN = ["note", "comment-box", "answers"];
const DRAFTS = `signoff_drafts ${document.body.dataset.me}`;
const drafts = (() => { try { return JSON.parse(sessionStorage.getItem(DRAFTS)) ?? {}; } catch { return {}; } })();
function keepDraft() {
  const id = cardId();
  if (!id) return;
  const written = WRITTEN.map((one) => [one, document.getElementById(one)?.value ?? ""]).filter(([, text]) => text);
  if (written.length) drafts[id] = Object.fromEntries(written); else delete drafts[id];
  try { sessionStorage.setItem(DRAFTS, JSON.stringify(drafts)); } catch { /* then they last as long as the page */ }
}
function restoreDraft() {
  for (const [id, text] of Object.entries(drafts[cardId()] ?? {})) if ($(`#${id}`)) $(`#${id}`).value = text;
  drawAnswering();
}
document.addEventListener("input", (event) => { if (WRITTEN.includes(event.target.id)) keepDraft(); });
function drawAnswering() { // which question the text is an answer to
  const question = $("#answers")?.value;
  const place = $("#answering");
  if (!place) return;
  const text = question && $(".comment-text", document.getElementById(`comment-${question}`) ?? document.createElement("i"))?.textContent.trim();
  place.hidden = !text;
  $("[data-question-text]", place).textContent = text || "";
  $('[data-form="comment"] [value="answer"]').hidden = !text;
}
function answerTo(question) {
  $("#answers").value = question;
  keepDraft();
  drawAnswering();
}

async function refreshCard() {
  const id = cardId();
  if (!id || moving || $("dialog[open]")) return; // once it closes
  const content = await part(filtered(at(id))).catch(() => null);
  const made = content && $("#card", content);
  const now = card();
  if (!made || !now || now.dataset.id !== id || moving || $("dialog[open]")) return;
  const isOther = made.dataset.state !== now.dataset.state;
  if (made.dataset.digest !== now.dataset.digest) newCard();
  placeCard(content);
  if (isOther) {
    if (!settledHere.has(id)) say($(".outcome-line", card())?.textContent.replace(/\s+/g, " ").trim() ?? texts.settled);
    if (!WAITS.has(card().dataset.state)) markGone(id, $(".tag.state", card())?.textContent.trim());
  }
}
function dress(within) {
  for (const one of $$("time[data-local]", within)) {
    one.textContent = new Date(one.dateTime).toLocaleString(document.documentElement.lang, { dateStyle: "medium", timeStyle: "short" });
  }
  tick();
  checkRead();
}

// --- what has to be read first ---

const unread = (within) => $$("details[data-must-read]", within).filter((one) => !one.open && !one.dataset.wasRead);
async function checkRead() {
  const now = card();
  const waiting = now && $('#locked [data-lock="unread"]', now);
  if (!waiting || unread(now).length || waiting.dataset.sent) return;
  waiting.dataset.sent = "yes";
  if ((await trying(() => api("POST", at(now.dataset.id, "/read"), { args_digest: now.dataset.digest }))) === undefined) { delete waiting.dataset.sent; return; }
  const bar = $("#locked", now);
  $('[data-lock="unread"]', bar)?.remove();
  if (!$("[data-lock]", bar)) {
    bar.hidden = true;
    for (const one of $$("button.approve", now)) one.removeAttribute("aria-disabled");
    say(texts.unlocked);
  }
}
document.addEventListener("toggle", (event) => {
  const one = event.target;
  if (!(one instanceof HTMLDetailsElement)) return;
  if (one.matches("[data-must-read]") && one.open) {
    one.dataset.wasRead = "yes";
    if (one.closest("#bulk-dialog")) lockBulk(); else checkRead();
  }
}, true);

// --- answering ---

function lockedBy(button) {
  if (!button) return "";
  if (button.getAttribute("aria-disabled") !== "true") return "";
  const why = document.getElementById(button.dataset.why ?? "locked");
  return why?.textContent.replace(/\s+/g, " ").trim() || texts.locked;
}

let sending = false;
const settledHere = new Set(); // by this page, several at once: what came of them was said together
async function vote(decision, more = {}) {
  const now = card();
  if (!now || now.dataset.state !== "pending" || sending) return false;
  const button = more.as_voted ? null : $(`[data-do="${decision}"]`, now);
  const locked = lockedBy(button);
  if (locked) { say(`${texts.locked} ${locked}`); return false; }
  const id = now.dataset.id, isSentBack = $('[data-form="edit"]', now)?.hasAttribute("data-sent-back");
  const body = { decision, args_digest: now.dataset.digest, note: $("#note", now)?.value.trim() ?? "", ...more };
  let answer;
  sending = true;
  try {
    answer = await api("POST", at(id, "/votes"), body);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (error.problems.length && $('[data-form="edit"]', now)) showProblems($('[data-form="edit"]', now), error.problems);
    const begin = error.word === "already-settled" ? `${texts.settled}:` : error.word.endsWith("-changed") ? texts.changed : texts.failed;
    say([begin, error.message, ...error.problems].join(" "));
    if (error.status === 409) await refreshCard();
    return false;
  } finally { sending = false; }
  delete drafts[id]?.note;
  if (cardId() === id) {
    if ($("#note")) $("#note").value = "";
    keepDraft();
    const form = $('[data-form="edit"]');
    if (form) form.hidden = true;
    await showCard(id, { push: false });
  }
  const settled = answer.state !== "pending";
  if (settled && cardId() === id) $(".card-head")?.scrollIntoView();
  if (settled) markGone(id, $(".tag.state")?.textContent.trim());
  say(decision === "deny" ? texts.denied : !settled ? texts.counted : more.args ? (isSentBack ? texts.sent_back : texts.edited) : texts.approved);
  if (cardId() === id) currentRow()?.focus({ preventScroll: true });
  return true;
}

async function approveThese(button) { // what somebody else approved instead
  const theirs = button.closest("li");
  if (unread(theirs).length) { say(`${texts.locked} ${texts.unread}`); return; }
  const body = { args_digest: card().dataset.digest };
  if ($("[data-must-read]", theirs) && await trying(() => api("POST", at(cardId(), "/read"), body)) === undefined) return;
  await vote("approve", { as_voted: button.dataset.digest });
}

// A button that is held down, by pointer or key, for a second.
let holding = null;
function beginHold(button, run) {
  const locked = lockedBy(button);
  if (locked) { say(`${texts.locked} ${locked}`); return; }
  if (holding) return;
  button.classList.add("holding");
  holding = { button, timer: setTimeout(() => { endHold(true); run(); }, HOLD) };
}
function endHold(done = false) {
  if (!holding) return;
  clearTimeout(holding.timer);
  holding.button.classList.remove("holding");
  holding = null;
  if (!done) say(texts.hold_on);
}
const HELD = { approve: () => vote("approve"), "send-edit": () => sendEdit(), "approve-these": approveThese };
const isHeld = () => card()?.hasAttribute("data-irreversible");
document.addEventListener("pointerdown", (event) => {
  const button = event.target.closest?.("button.hold");
  if (button && event.button === 0) beginHold(button, () => HELD[button.dataset.do](button));
});
for (const end of ["pointerup", "pointercancel", "pointerleave", "blur"]) {
  document.addEventListener(end, () => endHold(), true);
}
document.addEventListener("contextmenu", (event) => { if (event.target.closest?.("button.hold")) event.preventDefault(); });

// --- editing ---

const own = (what, field) => $$(what, field).find((one) => one.closest("[data-field]") === field);
const around = (field) => field.parentElement.closest("[data-field]");

function readField(field, problems) {
  const path = JSON.parse(field.dataset.path);
  if (own("[data-given]", field) && !own("[data-given]", field).checked) return { path, given: false };
  if (own("[data-null]", field)?.checked) return { path, given: true, value: null };
  const input = own("[data-value]", field);
  const fail = (text) => { problems.push({ name: path.join("."), text }); input?.setAttribute("aria-invalid", "true"); };
  input?.removeAttribute("aria-invalid");
  // A number goes out as it is written. What is none is sent as a text: the server says what is wrong with it.
  const number = (text) => (/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text.trim()) ? new Raw(text.trim()) : text);
  switch (field.dataset.kind) {
    case "object": {
      const value = {};
      for (const inner of $$("[data-field]", field).filter((one) => around(one) === field)) {
        const found = readField(inner, problems);
        if (found.given) value[found.path.at(-1)] = found.value;
      }
      return { path, given: true, value };
    }
    case "list":
      return { path, given: true, value: $$(".items input", field).map((one) => field.dataset.item === "text" ? one.value : number(one.value)) };
    case "boolean": return { path, given: true, value: input.value === "true" };
    case "choice": return { path, given: true, value: new Raw(input.value) };
    case "integer": return { path, given: true, value: number(input.value) };
    case "number": return { path, given: true, value: number(input.value) };
    case "json":
      try { JSON.parse(input.value); return { path, given: true, value: new Raw(input.value.trim()) }; } catch (error) {
        fail(`${texts.not_json} ${error.message}`);
        return { path, given: true, value: input.value };
      }
    default: return { path, given: true, value: input.value };
  }
}

function readFields(form, problems = []) {
  const args = {};
  for (const field of $$("[data-fields] > [data-field]", form)) {
    const found = readField(field, problems);
    if (found.given) args[found.path[0]] = found.value;
  }
  return { args, problems };
}

function readForm(form) {
  const raw = $("[data-raw]", form);
  if (!(raw && (raw.hasAttribute("data-only") || raw.closest("details")?.open))) return readFields(form);
  try {
    const found = JSON.parse(raw.value);
    if (found === null || typeof found !== "object" || Array.isArray(found)) throw new Error("{ … }");
    return { args: new Raw(raw.value.trim()), problems: [] };
  } catch (error) {
    return { args: null, problems: [{ name: "", text: `${texts.not_json} ${error.message}` }] };
  }
}

function showProblems(form, problems) {
  const place = $("[data-problems]", form);
  place.replaceChildren(...problems.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
  place.hidden = !problems.length;
  for (const field of $$("[data-field]", form)) {
    const name = JSON.parse(field.dataset.path).join(".");
    const wrong = problems.some((text) => text.startsWith(`${name}:`) || text.startsWith(`${name} `));
    const input = $("[data-value], .items input", field);
    if (wrong) input?.setAttribute("aria-invalid", "true"); else if (input && field.dataset.kind !== "json") input.removeAttribute("aria-invalid");
  }
}

// What the call would change with the arguments in the form; what the card shows is of the call as it was asked.
function showEffect(form, effect) {
  const place = $("[data-effect]", form);
  place.hidden = !effect?.text;
  if (place.hidden) return;
  const isDiff = effect.kind === "diff";
  $(".count", place).replaceChildren(...(isDiff ? [Object.assign(document.createElement("ins"), { textContent: `+${effect.added}` }), " ", Object.assign(document.createElement("del"), { textContent: `−${effect.removed}` })] : []));
  $("pre", place).className = isDiff ? "diff" : "";
  if (!isDiff) { $("pre", place).textContent = effect.text; return; }
  const kinds = { "+": "added", "-": "removed", " ": "same", "@": "place" };
  $("pre", place).replaceChildren(...effect.text.split("\n").flatMap((text, at) => {
    const isHead = at < 2, kind = isHead ? "heading" : kinds[text[0]] ?? "heading";
    const inside = !isHead && "+- ".includes(text[0]);
    const line = Object.assign(document.createElement("span"), { className: `line ${kind}` });
    line.append(Object.assign(document.createElement("span"), { className: "gutter", textContent: inside ? text[0] : "" }), inside ? text.slice(1) : text, "\n");
    return [line];
  }));
}

async function checkForm(form) {
  const { args, problems } = readForm(form);
  let found = problems.map((one) => (one.name ? `${one.name}: ${one.text}` : one.text));
  if (args !== null && !found.length) {
    const answer = await trying(() => api("POST", at(cardId(), "/edit-check"), { args }));
    if (answer === undefined) return null;
    found = answer.problems;
    showEffect(form, answer.effect);
  }
  showProblems(form, found);
  return found.length ? null : args;
}

// Whoever writes into a field wants it sent: it is not null, and all that is around it is given.
function touched(field) {
  for (let one = field; one; one = around(one)) {
    const [given, none] = [own("[data-given]", one), own("[data-null]", one)];
    if (given) given.checked = true;
    if (none) none.checked = false;
  }
}
let checkSoon = 0;
document.addEventListener("input", (event) => {
  const form = event.target.closest?.('[data-form="edit"]');
  if (!form) return;
  const field = event.target.closest("[data-field]");
  if (field && !event.target.matches("[data-given], [data-null]")) touched(field);
  else if (field && event.target.checked) {
    const given = own("[data-given]", field);
    if (given) given.checked = true;
    touched(around(field));
  }
  clearTimeout(checkSoon);
  checkSoon = setTimeout(() => checkForm(form), 350);
});
// The JSON begins with what the fields hold, and goes back into them.
document.addEventListener("toggle", (event) => {
  if (!event.target.matches?.("details.raw")) return;
  const form = event.target.closest("form");
  const raw = $("[data-raw]", form);
  if (event.target.open) {
    raw.value = jsonText(readFields(form).args, "", "  ");
    raw.dataset.begun = raw.value;
  } else if (raw.value !== raw.dataset.begun && !fillForm(form, raw.value)) {
    event.target.open = true;
    say(texts.only_json);
  }
}, true);

// JSON with its numbers as they are written; null where it is none, or where an old browser would change them.
function parsed(text) {
  try {
    return JSON.parse(text, (_, value, context) => {
      if (typeof value !== "number") return value;
      if (!context && !Number.isSafeInteger(value)) throw new RangeError("this browser would change it");
      return new Raw(context?.source ?? `${value}`);
    });
  } catch { return null; }
}
const sorted = (value) => (Array.isArray(value) ? value.map(sorted) : value === null || typeof value !== "object" || value instanceof Raw ? value : Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)).map(([name, one]) => [name, sorted(one)])));
const isSame = (one, other) => one === other || (parsed(one) !== null && jsonText(sorted(parsed(one))) === jsonText(sorted(parsed(other))));

// Puts JSON into the fields; whether they can hold all of it.
function fillForm(form, text) {
  const args = parsed(text);
  const fields = $$("[data-fields] > [data-field]", form);
  if (!fits(fields, args)) return false;
  fill(fields, args);
  return true;
}
const inner = (field) => $$("[data-field]", field).filter((one) => around(one) === field);
const nameOf = (field) => JSON.parse(field.dataset.path).at(-1);
function fits(fields, args) {
  if (args === null || typeof args !== "object" || Array.isArray(args) || args instanceof Raw) return false;
  const names = new Set(fields.map(nameOf));
  if (Object.keys(args).some((name) => !names.has(name))) return false;
  return fields.every((field) => {
    const value = args[nameOf(field)];
    if (value === undefined) return Boolean(own("[data-given]", field));
    if (value === null && own("[data-null]", field)) return true;
    switch (field.dataset.kind) {
      case "object": return fits(inner(field), value);
      case "list": return Array.isArray(value) && value.every((one) => (field.dataset.item === "text" ? typeof one === "string" && !/[\r\n]/.test(one) : one instanceof Raw));
      case "boolean": return typeof value === "boolean";
      case "choice": return [...own("[data-value]", field).options].some((one) => one.value === jsonText(value));
      case "integer": case "number": return value instanceof Raw;
      case "json": return true;
      case "lines": return typeof value === "string" && !value.includes("\r");
      default: return typeof value === "string" && !/[\r\n]/.test(value);
    }
  });
}
function fill(fields, args) {
  for (const field of fields) {
    const value = args[nameOf(field)];
    const [given, none, input] = [own("[data-given]", field), own("[data-null]", field), own("[data-value]", field)];
    if (given) given.checked = value !== undefined;
    if (none) none.checked = value === null;
    if (value === undefined || (value === null && none)) continue;
    if (field.dataset.kind === "object") fill(inner(field), value);
    else if (field.dataset.kind === "list") {
      $(".items", field).replaceChildren();
      for (const one of value) addItem($('[data-do="add-item"]', field), one instanceof Raw ? one.text : one);
    } else input.value = typeof value === "string" && field.dataset.kind !== "json" && field.dataset.kind !== "choice" ? value : jsonText(value, "", field.dataset.kind === "json" ? "  " : "");
  }
}
function addItem(button, text = "") {
  const item = document.createElement("li");
  const input = Object.assign(document.createElement("input"), { dir: "auto", value: text });
  input.setAttribute("aria-label", button.dataset.label);
  const drop = Object.assign(document.createElement("button"), { type: "button", className: "plain", textContent: button.dataset.drop });
  drop.dataset.do = "drop-item";
  item.append(input, " ", drop);
  button.previousElementSibling.append(item);
  return input;
}

async function sendEdit() {
  const form = $('[data-form="edit"]');
  clearTimeout(checkSoon);
  const args = await checkForm(form);
  if (args === null) return;
  if (isSame(jsonText(args), form.dataset.begun)) { say(texts.unchanged); return; }
  await vote("approve", { args });
}

function openEdit() {
  const form = $('[data-form="edit"]');
  if (!form) return;
  if (form.hidden) form.dataset.begun ??= jsonText(readForm(form).args);
  form.hidden = false;
  asAsked(true);
  $("input, textarea, select", form)?.focus();
}
const asAsked = (edits) => { for (const one of $$("[data-as-asked]")) one.hidden = !edits; };
const isEditing = () => Boolean($('[data-form="edit"]:not([hidden])'));

// --- what is behind "more" ---

async function rememberDialog() {
  const now = card();
  const locked = lockedBy($('[data-do="approve"]', now));
  if (locked) { say(`${texts.locked} ${locked}`); return; }
  const found = await trying(() => api("GET", at(cardId(), "/offers")));
  if (!found) return;
  const list = found.offers.filter((one) => one.text);
  if (!list.length) { say(found.why_not || found.offers[0]?.problem || texts.no_offers); return; }
  $("[data-offers]").replaceChildren(...list.map((one, index) => {
    const label = Object.assign(document.createElement("label"), { className: "offer" });
    const input = Object.assign(document.createElement("input"), { type: "radio", name: "offer", value: one.number, required: true });
    input.checked = list.length === 1 && index === 0;
    const text = document.createElement("bdi");
    text.textContent = one.text;
    input.dataset.text = one.text;
    label.append(input, text);
    return label;
  }));
  $("#remember-dialog").showModal();
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?…]$/.test(text) ? "" : ".");
async function ruleDialog() {
  const id = cardId();
  const found = await trying(() => api("GET", at(id, "/rule-drafts")));
  if (!found) return;
  const drafts = found.drafts ?? [];
  const made = drafts.map((one, index) => {
    const block = Object.assign(document.createElement("div"), { className: "draft" });
    const text = document.createElement("p");
    const words = document.createElement("bdi");
    words.textContent = one.text;
    text.append(words);
    const diff = Object.assign(document.createElement("pre"), { className: "diff", tabIndex: 0 });
    for (const line of one.diff) {
      const kind = /^(\+\+\+|---)/.test(line) ? "heading" : { "+": "added", "-": "removed", "@": "place" }[line[0]] ?? "same";
      diff.append(Object.assign(document.createElement("span"), { className: `line ${kind}`, textContent: `${line}\n` }));
    }
    const warnings = (one.warnings ?? []).map((warning) => Object.assign(document.createElement("p"), { className: "banner warn", textContent: warning }));
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: texts.write_rule });
    button.addEventListener("click", async () => {
      const done = await trying(() => api("POST", at(id, "/rules"), { draft: one.number ?? index + 1, digest: one.digest }));
      if (done !== undefined) { $("#rule-dialog").close(); say(card()?.dataset.state === "pending" ? done.told : texts.written); }
    });
    block.append(text, ...warnings, diff, ...($("[data-no-admin]") ? [] : [button]));
    return block;
  });
  for (const why of found.refused ?? []) made.push(Object.assign(document.createElement("p"), { className: "hint", textContent: sentence(why) }));
  if (!drafts.length) made.unshift(Object.assign(document.createElement("p"), { textContent: texts.no_drafts }));
  $("[data-drafts]").replaceChildren(...made);
  $("[data-rule-how]").hidden = !drafts.length;
  $("[data-rule-waits]").hidden = card()?.dataset.state !== "pending";
  $("#rule-dialog").showModal();
}

async function claimOrRelease(release) {
  const locked = release ? "" : lockedBy($('[data-do="claim"]'));
  if (locked) { say(`${texts.locked} ${locked}`); return; }
  const done = await trying(() => api("POST", at(cardId(), release ? "/release" : "/claim"), {}));
  if (done === undefined) return;
  await refreshCard();
  say([release ? texts.released : texts.claimed, done.warning].join(" ").trim());
}

// --- the list ---

const listPlace = () => $("[data-list]");
const filter = () => listPlace()?.dataset.filter ?? ""; // which requests the list has, as the query of its address
const filtered = (path) => `${path}${path.includes("?") ? filter().replace("?", "&") : filter()}`;
const rows = () => $$(".row", listPlace() ?? document.createElement("div"));
const currentRow = () => rows().find((one) => one.getAttribute("aria-current") === "true");
const rowOf = (id) => rows().find((one) => one.dataset.row === id);
const picked = new Set();
const gone = new Map();

function markCurrent(id) {
  for (const one of rows()) {
    const is = one.dataset.row === id;
    if (is) one.setAttribute("aria-current", "true"); else one.removeAttribute("aria-current");
    one.tabIndex = is ? 0 : -1;
  }
  const all = rows();
  if (all.length && !all.some((one) => one.tabIndex === 0)) all[0].tabIndex = 0;
}

function markGone(id, word = texts.gone) {
  gone.set(id, word || texts.gone);
  const row = rowOf(id);
  if (!row) return;
  row.closest(".item").classList.add("is-gone");
  $(".gone-word", row).textContent = word || texts.gone;
  if (cardId() === id && card().dataset.title) $(".row-title bdi", row).textContent = card().dataset.title; // what ran may be another call
  picked.delete(id);
  const box = $("[data-pick]", row.closest(".item"));
  box.checked = false;
  box.disabled = true;
  drawBulk();
}

// Rows never move by themselves: what is new is counted on a button, what changes changes where it stands, and what is
// settled is marked there. What happened to which request, the stream tells.
const fresh = new Map(); // rows of requests that are new, by id
const PART = 100;
const byAge = (list, itemOf) => list.sort((one, other) => { // the DOM has them by run
  const [a, b] = [one, other].map((each) => $("[data-age]", itemOf(each)).dateTime);
  return a < b ? -1 : a > b ? 1 : 0;
});
async function refreshRows(about) {
  if (!listPlace()) return;
  const all = !about.size; // whatever happened
  const ids = all ? [...rows().map((one) => one.dataset.row), ...fresh.keys()] : [...about];
  const here = new Map();
  let content = null;
  for (let from = 0; from < Math.max(1, ids.length); from += PART) {
    content = await part(filtered(`/rows?${ids.slice(from, from + PART).map((id) => `id=${encodeURIComponent(id)}`).join("&")}`)).catch(() => null);
    if (!content) return;
    for (const group of $$(".group", content)) for (const item of $$(".item", group)) here.set(item.dataset.id, { item, group });
  }
  if (all && !$('[data-do="more"]', listPlace())) { // those after the last one
    const known = byAge([...$$(".item", listPlace()), ...[...fresh.values()].map((one) => one.item)], (item) => item);
    const last = known.map((item) => item.dataset.place).filter(Boolean).at(-1) ?? ""; // a damaged row has none
    const rest = await part(filtered(`/list?after=${encodeURIComponent(last)}`)).catch(() => null);
    for (const group of rest ? $$(".group", rest) : []) for (const item of $$(".item", group)) here.set(item.dataset.id, { item, group });
  }
  const groups = $(".groups", content);
  setCount(Number(groups.dataset.count), groups.dataset.more === "yes");
  setHalted(groups.dataset.halted);
  for (const id of ids) if (!here.has(id)) { fresh.delete(id); if (rowOf(id) && !gone.has(id)) markGone(id); }
  for (const [id, { item, group }] of here) {
    const row = rowOf(id);
    if (!row) { if (!("other" in item.dataset)) fresh.set(id, { item, group }); else fresh.delete(id); continue; }
    morph($(".row-facts", row), $(".row-facts", item));
    morph($(".row-title", row), $(".row-title", item));
    if (gone.delete(id)) { // it waits again: nobody knows how its call ended
      row.closest(".item").classList.remove("is-gone");
      $("[data-pick]", row.closest(".item")).disabled = false;
    }
  }
  tick();
  drawFresh();
}
function drawFresh() {
  const button = $('[data-do="new"]');
  const before = Number(button.dataset.n ?? 0);
  if (fresh.size > before) say(counted("arrived", fresh.size));
  if (fresh.size && !rows().some((one) => !gone.has(one.dataset.row))) { takeFresh(); return; }
  button.dataset.n = fresh.size;
  button.hidden = !fresh.size;
  button.textContent = fresh.size ? counted("new", fresh.size) : "";
}
function setHalted(text) {
  const place = $("[data-halt]");
  if ($("bdi", place).textContent === text) return;
  $("bdi", place).textContent = text;
  place.hidden = !text;
  refreshCard(); // it says what happens after a yes
}

// Puts rows at the end, each with those of its run.
function append(items) {
  const groups = $(".groups", listPlace());
  $(".empty", groups)?.remove();
  for (const { item, group } of items) {
    if (rowOf(item.dataset.id)) continue;
    let same = $$(".group", groups).find((one) => one.dataset.run === group.dataset.run);
    if (!same) {
      same = group.cloneNode(true);
      $(".rows", same).replaceChildren();
      groups.insertBefore(same, $('[data-do="more"]', groups));
    }
    $(".rows", same).append(item);
    $("[data-pick]", item).checked = picked.has(item.dataset.id);
  }
}
function takeFresh() {
  if (!fresh.size && !gone.size) return;
  const focused = document.activeElement?.dataset?.row;
  for (const id of gone.keys()) {
    const item = rowOf(id)?.closest(".item");
    const group = item?.closest(".group");
    item?.remove();
    if (group && !$(".item", group)) group.remove();
  }
  gone.clear();
  append(byAge([...fresh.values()], (one) => one.item));
  fresh.clear();
  drawFresh();
  markCurrent(cardId());
  tick();
  if (!card() && rows().length) {
    if (matchMedia("(min-width: 52.01rem)").matches) showCard(rows()[0].dataset.row, { push: false });
  }
  (focused && rowOf(focused) ? rowOf(focused) : rows()[0])?.focus({ preventScroll: true });
}

async function moreRows() {
  const groups = $(".groups", listPlace());
  const content = await trying(() => part(filtered(`/list?after=${encodeURIComponent(groups.dataset.next)}`)));
  if (!content) return;
  const next = $(".groups", content);
  $('[data-do="more"]', groups)?.remove();
  groups.dataset.next = next.dataset.next;
  const last = rows().at(-1);
  const items = $$(".group", next).flatMap((group) => $$(".item", group).map((item) => ({ item, group })));
  for (const { item } of items) fresh.delete(item.dataset.id);
  append(items);
  const button = $('[data-do="more"]', next);
  if (button) groups.append(button);
  drawFresh();
  markCurrent(cardId());
  tick();
  last?.focus({ preventScroll: true });
}

function setCount(n, more) {
  const shown = `${n}${more ? "+" : ""}`;
  const place = $("[data-total]");
  if (place) place.textContent = shown;
  document.title = `${n ? `(${shown}) ` : ""}${document.title.replace(/^\(\d+\+?\) /, "")}`;
  const icon = $('link[rel="icon"]');
  icon.href = `${base}/favicon.svg?n=${n}`;
}

async function step(by) {
  const all = rows();
  if (!all.length) return;
  const now = all.findIndex((one) => one.dataset.row === (wanted ?? cardId()));
  const next = Math.min(all.length - 1, Math.max(0, now + by));
  if (next === all.length - 1 && by > 0 && $('[data-do="more"]', listPlace())) await moreRows();
  const row = rows()[now === -1 ? 0 : next];
  row.focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
  await showCard(row.dataset.row);
}

// --- several at once ---

function drawBulk() {
  const bar = $("[data-bulk]");
  if (!bar) return;
  bar.hidden = !picked.size;
  $("[data-bulk-count]", bar).textContent = counted("selected", picked.size);
  $("[data-bulk-titles]", bar).textContent = [...picked].map((id) => $(".row-title", rowOf(id) ?? document.createElement("i"))?.textContent.trim() ?? id).join(" · ");
}
function pick(id, on) {
  if (gone.has(id)) return;
  if (on ?? !picked.has(id)) picked.add(id); else picked.delete(id);
  const box = $$("[data-pick]").find((one) => one.dataset.pick === id);
  if (box) box.checked = picked.has(id);
  drawBulk();
}
async function bulkDialog() {
  const content = await trying(() => part(`/selection?${[...picked].map((id) => `id=${encodeURIComponent(id)}`).join("&")}`));
  if (!content) return;
  $("[data-bulk-cards]").replaceChildren(content);
  if (!$("#bulk-dialog").open) $("#bulk-dialog").showModal();
  dress($("#bulk-dialog"));
  lockBulk();
}
const bulkItems = (decision) => $$(".selected > li").filter((one) => !one.hasAttribute("data-left-out") && !one.dataset.done && !(decision === "approve" && one.hasAttribute("data-no-approve")));
function lockBulk() {
  const locked = bulkItems("approve").some((one) => unread(one).length);
  $("[data-bulk-locked]").hidden = !locked;
  lock($('[data-do="bulk-approve"]'), locked);
}
async function bulkVote(decision) {
  const button = $(`[data-do="bulk-${decision}"]`);
  if (button.getAttribute("aria-disabled") === "true") { say(`${texts.locked} ${$("[data-bulk-locked]").textContent}`); return; }
  const note = $("#bulk-note").value.trim();
  const items = bulkItems(decision);
  if (!items.length || sending) return;
  sending = true;
  try {
    if (decision === "approve") {
      for (const one of items.filter((item) => $("[data-must-read]", item))) await trying(() => api("POST", at(one.dataset.request, "/read"), { args_digest: one.dataset.digest }));
    }
    const votes = items.map((one) => ({ request: one.dataset.request, decision, args_digest: one.dataset.digest, note }));
    const answer = await trying(() => api("POST", "/votes", { votes }));
    if (!answer) return;
    const outcomes = new Map(answer.results.map((one) => [one.request, one]));
    let done = 0;
    for (const item of items) {
      const outcome = outcomes.get(item.dataset.request);
      const place = $("[data-came]", item);
      place.hidden = false;
      if (!outcome?.ok) { place.textContent = `${texts.failed} ${outcome?.problem?.detail ?? ""}`; continue; }
      done += 1;
      item.dataset.done = "yes";
      picked.delete(item.dataset.request);
      const counts = outcome.state === "pending";
      place.textContent = `✓ ${counts ? texts.counted : decision === "deny" ? texts.denied : texts.approved}`;
      if (!counts) { settledHere.add(item.dataset.request); markGone(item.dataset.request, decision === "deny" ? texts.denied : texts.approved); }
    }
    for (const box of $$("[data-pick]")) box.checked = picked.has(box.dataset.pick);
    drawBulk();
    const words = answer.results.some((one) => one.ok && one.state === "pending") ? texts.counted : decision === "deny" ? texts.denied : texts.approved;
    say(`${words} ${done}/${items.length}`);
    if (done && done === $$(".selected > li").length && !picked.size) $("#bulk-dialog").close();
    else if (done === items.length && picked.size && $$(".selected > li").every((one) => one.dataset.done)) await bulkDialog(); // the rest of them
  } finally { sending = false; }
  refreshCard();
}

// --- time ---

function spanText(seconds, exact = false) {
  const s = Math.max(0, Math.floor(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min${exact && s < 600 ? ` ${s % 60} s` : ""}`;
  if (s < 172800) return `${Math.floor(s / 3600)} h${s < 36000 && Math.floor((s % 3600) / 60) ? ` ${Math.floor((s % 3600) / 60)} min` : ""}`;
  return `${Math.floor(s / 86400)} d`;
}
function tick() {
  const now = Date.now();
  for (const one of $$("time[data-deadline]")) {
    const left = (Date.parse(one.dateTime) - now) / 1000;
    const text = left > 0 ? spanText(left, true) : texts.over;
    if (one.textContent !== text) one.textContent = text;
    one.previousElementSibling.hidden = left <= 0;
    one.classList.toggle("soon", left < 120);
  }
  for (const one of $$("time[data-age]")) {
    const text = spanText((now - Date.parse(one.dateTime)) / 1000);
    if (one.textContent !== text) one.textContent = text;
  }
}
setInterval(() => { if (!document.hidden) tick(); }, 1000);

// --- live ---

let source = null;
let wasLost = false;
let soon = 0;
let lastSeen = document.body.dataset.head; // the page shows all up to this event
const concerned = new Set();
let everything = false;
function changed(event) {
  if (event.lastEventId) lastSeen = event.lastEventId;
  try {
    const data = JSON.parse(event.data);
    if (data.request) concerned.add(data.request);
    if (data.run) concerned.add(data.run);
    if (!data.request && !data.run && !data.kind) everything = true;
  } catch { everything = true; }
  soon ||= setTimeout(async () => {
    const about = everything ? new Set() : new Set(concerned);
    if (!everything && !about.size) about.add(""); // it is about none of them
    everything = false;
    concerned.clear();
    try {
      await refreshRows(about);
      if (!about.size || about.has(cardId()) || about.has(card()?.dataset.run)) await refreshCard();
      if ($("[data-timeline]")) await refreshRun(about);
    } finally { soon = 0; }
    if (concerned.size || everything) changed({ data: '{"kind":"more"}' });
  }, 120);
}
const changedAll = () => changed({ data: "{}" });
function connected(is) {
  const place = $("#connection");
  const text = is || !$("#ended").hidden ? "" : place.dataset.lost;
  if (place.textContent !== text) place.textContent = text;
  if (is) document.body.dataset.live = "yes"; else delete document.body.dataset.live;
}
function listen() {
  if (!$("[data-list], [data-timeline]")) return;
  source = new EventSource(`${base}/api/v1/events${lastSeen ? `?after=${lastSeen}` : ""}`);
  source.addEventListener("open", () => {
    connected(true);
    if (!wasLost) return;
    wasLost = false;
    say(texts.reconnected);
    changedAll(); // whatever happened meanwhile
  });
  source.addEventListener("begin", (event) => { lastSeen = event.lastEventId || lastSeen; });
  source.addEventListener("message", changed);
  source.addEventListener("reset", (event) => { lastSeen = event.lastEventId; changedAll(); }); // another store
  source.addEventListener("presence", presence);
  source.addEventListener("closed", lost);
  source.addEventListener("error", lost);
}
async function lost() { // the connection, or the right to listen: the server says which
  source.close();
  wasLost = true;
  connected(false);
  const me = await fetch(`${base}/api/v1/me`).catch(() => null);
  if (me?.status === 401) { sessionEnded(); return; }
  clearTimeout(listenSoon);
  listenSoon = setTimeout(listen, 1500);
}
let listenSoon = 0;
async function refreshRun(about) {
  const id = location.pathname.split("/").at(-1);
  if (about.size && ![...about].some((one) => one && (one.startsWith(id) || id.startsWith(one)))) return;
  const sent = await fetch(location.href).catch(() => null);
  if (!sent?.ok) return;
  const page = new DOMParser().parseFromString(await sent.text(), "text/html");
  morph($("main"), $("main", page));
  dress(document);
}

// --- who else is looking ---

function look(id = cardId(), looking = !document.hidden) {
  if (!id || !$("[data-list]") || !$("#ended").hidden) return;
  api("POST", at(id, "/presence"), { looking }).then((data) => { if (looking && id === cardId()) drawWatchers(data); }, () => {});
}
document.addEventListener("visibilitychange", () => look());
function presence(event) {
  try { drawWatchers(JSON.parse(event.data)); } catch { /* nothing to show */ }
}
function drawWatchers(data) {
  const place = $("[data-watchers]");
  if (!place || !data || (data.request && data.request !== cardId())) return;
  const others = (data.people ?? data.watchers ?? []).filter((name) => name !== document.body.dataset.me);
  place.hidden = !others.length;
  place.textContent = others.length ? `${texts.watching} ${others.join(", ")}` : "";
}
setInterval(() => { if (!document.hidden) look(); }, 15000);

// --- pointer ---

const ACTIONS = {
  help: () => $("#keys").showModal(),
  theme: () => {
    const root = document.documentElement;
    const dark = root.dataset.theme === "dark" || (root.dataset.theme === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
    root.dataset.theme = dark ? "light" : "dark";
    remember("signoff_theme", root.dataset.theme);
  },
  approve: (button) => { if (!button.classList.contains("hold")) vote("approve"); },
  "approve-these": (button) => { if (!button.classList.contains("hold")) HELD["approve-these"](button); },
  "send-edit": (button) => { if (!button.classList.contains("hold")) sendEdit(); },
  deny: () => vote("deny"),
  edit: openEdit,
  "close-edit": () => { $('[data-form="edit"]').hidden = true; asAsked(false); $('[data-do="edit"]')?.focus(); },
  ask: () => $("#comment-box")?.focus(),
  remember: rememberDialog,
  rule: ruleDialog,
  claim: () => claimOrRelease(false),
  release: () => claimOrRelease(true),
  new: takeFresh,
  more: moreRows,
  "bulk-read": bulkDialog,
  "bulk-clear": () => { for (const id of [...picked]) pick(id, false); },
  "bulk-approve": () => bulkVote("approve"),
  "bulk-deny": () => bulkVote("deny"),
  "close-dialog": (button) => button.closest("dialog").close(),
  answer: (button) => { answerTo(button.dataset.question); $("#comment-box").focus(); },
  "not-that": () => { answerTo(""); $("#comment-box").focus(); },
  "add-item": (button) => { addItem(button).focus(); touched(button.closest("[data-field]")); },
  "drop-item": (button) => {
    const [form, field] = [button.closest("form"), button.closest("[data-field]")];
    const before = button.closest("li").previousElementSibling;
    button.closest("li").remove();
    touched(field);
    ($("input", before ?? document.createElement("i")) ?? $('[data-do="add-item"]', field)).focus();
    checkForm(form);
  },
  happened: (button) => told(button, true),
  "did-not": (button) => told(button, false),
  "run-resume": async (button) => { if (await trying(() => api("POST", `/runs/${runOf(button)}/resume`, {})) !== undefined) say(texts.resumed); },
  "run-cancel": async (button) => {
    const reason = prompt(texts.why_cancel);
    if (reason !== null && await trying(() => api("POST", `/runs/${runOf(button)}/cancel`, { reason })) !== undefined) location.reload();
  },
  halt: async () => {
    const why = prompt(texts.why_halt);
    if (why !== null && await trying(() => api("POST", "/halt", { why })) !== undefined) location.reload();
  },
  unhalt: async () => { if (await trying(() => api("DELETE", "/halt")) !== undefined) location.reload(); },
  "sign-out": async () => {
    sessionStorage.clear();
    await fetch(`${base}/sign-out`, { method: "POST", headers: { "x-signoff-csrf": csrf } }).catch(() => null);
    location.assign(`${base}/`);
  },
};
const runOf = (button) => encodeURIComponent(button.closest("[data-run]").dataset.run);
async function told(button, happened) {
  const id = cardId();
  const locked = lockedBy(button);
  if (locked) { say(`${texts.locked} ${locked}`); return; }
  if (await trying(() => api("POST", at(id, "/outcome"), { happened, note: $("#outcome-note").value.trim() })) === undefined) return;
  await showCard(id, { push: false });
  markGone(id);
  say(happened ? texts.happened : texts.did_not);
}
function remember(name, value) {
  document.cookie = `${name}=${value}; path=${base || "/"}; max-age=31536000; samesite=lax`;
}

document.addEventListener("click", (event) => {
  const row = event.target.closest?.(".row");
  if (row && listPlace() && !event.metaKey && !event.ctrlKey && !event.shiftKey && event.button === 0) {
    event.preventDefault();
    showCard(row.dataset.row, { focus: true });
    return;
  }
  const back = event.target.closest?.(".back a");
  if (back && listPlace()) { event.preventDefault(); toList(); return; }
  const button = event.target.closest?.("[data-do]");
  if (!button) return;
  if (button.matches("a")) event.preventDefault(); // without this script it leads somewhere
  ACTIONS[button.dataset.do]?.(button);
});
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-pick]")) pick(event.target.dataset.pick, event.target.checked);
  if (event.target.matches("[data-cookie]")) { remember(event.target.dataset.cookie, event.target.value); location.reload(); }
});
document.addEventListener("submit", async (event) => {
  const form = event.target.closest("[data-form]");
  if (!form) return;
  event.preventDefault();
  if (form.dataset.form === "comment") {
    const kind = event.submitter?.value ?? "note";
    const text = form.elements.text.value.trim();
    if (!text) { form.elements.text.focus(); return; }
    const body = kind === "agent" ? { text, kind: "question", agent: true } : { text, kind };
    if (kind === "answer") body.answers = form.elements.answers.value;
    if (await trying(() => api("POST", at(cardId(), "/comments"), body)) === undefined) return;
    form.elements.text.value = "";
    answerTo("");
    await refreshCard();
    say({ question: texts.asked, agent: texts.asked, answer: texts.answered }[kind] ?? texts.noted);
  } else if (form.dataset.form === "assign") {
    const done = await trying(() => api("POST", at(cardId(), "/assign"), { to: form.elements.to.value.trim() }));
    if (done === undefined) return;
    form.elements.to.value = "";
    await refreshCard();
    say([texts.handed, done.warning].join(" ").trim());
  } else if (form.dataset.form === "remember") {
    const chosen = $("input:checked", form);
    $("#remember-dialog").close();
    await vote("approve", { remember: { which: chosen.value, text: chosen.dataset.text } }); // what was read, or nothing
  }
});
addEventListener("popstate", () => {
  const found = location.pathname.slice(base.length).match(/^\/requests\/(.+)$/);
  if (found) showCard(decodeURIComponent(found[1]), { push: false }); else toList(false);
});
function toList(push = true) {
  if (push) history.pushState({}, "", `${base}${filtered("/")}`);
  document.body.classList.add("on-list");
  document.body.classList.remove("on-card");
  (currentRow() ?? rows()[0])?.focus({ preventScroll: true });
}

// --- keyboard ---

const isTyping = (target) => target.matches?.("input:not([type=checkbox]):not([type=radio]), textarea, select") || target.isContentEditable;
const tooSoon = () => { if (!isSteady()) say(texts.too_soon); return !isSteady(); };
const editing = () => { if (isEditing()) say(texts.editing); return isEditing(); };
const KEYS = {
  j: () => step(1), k: () => step(-1), ArrowDown: () => step(1), ArrowUp: () => step(-1),
  o: () => { const row = document.activeElement?.dataset?.row ?? cardId() ?? rows()[0]?.dataset.row; if (row) showCard(row, { focus: true }); },
  a: () => { if (!tooSoon() && !editing()) { if (isHeld()) beginHold($('[data-do="approve"]'), () => vote("approve")); else vote("approve"); } },
  d: () => { if (!tooSoon() && !editing()) vote("deny"); },
  e: openEdit,
  n: () => $("#note")?.focus(),
  b: () => $("#comment-box")?.focus(),
  m: () => { if (!tooSoon() && !editing() && $('[data-do="remember"]')) rememberDialog(); },
  r: () => { if ($('[data-do="rule"]')) ruleDialog(); },
  c: () => { if (card()?.dataset.state === "pending") claimOrRelease(Boolean($('[data-do="release"]'))); },
  h: () => { const more = $(".more-actions"); if (more) { more.open = true; $("#assign-to").focus(); } },
  x: () => { const id = document.activeElement?.dataset?.row ?? cardId(); if (id && rowOf(id)) pick(id); },
  v: () => { if (picked.size) bulkDialog(); else say(texts.nothing_picked); },
  ".": takeFresh,
  "/": () => { const box = $("#q"); if (box) box.focus(); else location.assign(`${base}/history`); },
  "?": ACTIONS.help,
};
const NOT_BY_ENTER = 'button.approve, [data-do="approve-these"], [data-form="edit"] input, [data-form="edit"] select, [data-form="remember"] input';
const ANYWHERE = new Set(["/", "?"]);
const STEPS = new Set(["j", "k", "ArrowDown", "ArrowUp"]);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    if ($("dialog[open]")) return; // the browser closes it
    if (event.isComposing) return; // it ends what an input method began
    if (event.target.closest?.('[data-form="edit"]')) { ACTIONS["close-edit"](); return; } // what was typed is kept
    if (isTyping(event.target)) { event.target.blur(); (currentRow() ?? $("#card-title"))?.focus({ preventScroll: true }); return; }
    if ($('[data-form="edit"]:not([hidden])')) { ACTIONS["close-edit"](); return; }
    if (listPlace()) toList(location.pathname !== `${base}/`);
    return;
  }
  if (event.key === "Enter" && event.target.matches?.(NOT_BY_ENTER)) { event.preventDefault(); say(texts.enter); return; }
  if (event.key === " " && event.target.matches?.("button.hold")) {
    event.preventDefault();
    if (!event.repeat) beginHold(event.target, () => HELD[event.target.dataset.do](event.target));
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || $("dialog[open]") || "noKeys" in document.body.dataset) return;
  if ((event.key === "ArrowDown" || event.key === "ArrowUp") && !event.target.closest?.(".list")) return;
  const act = KEYS[event.key];
  if (!listPlace() && !ANYWHERE.has(event.key)) return;
  if (!act || (event.repeat && !STEPS.has(event.key))) return;
  event.preventDefault();
  if (moving && !"ad".includes(event.key) && !STEPS.has(event.key)) moving.then(act, () => {}); else act();
});
document.addEventListener("keyup", (event) => { if (event.key === "a" || event.key === " ") endHold(); });

// --- begin ---

dress(document);
if (listPlace()) {
  newCard();
  restoreDraft();
  markCurrent(cardId());
  look();
  if (new URLSearchParams(location.search).get("make") === "rule" && card()) ruleDialog();
}
listen();
document.body.dataset.ready = "yes";
