// The pages' script: it sends answers, keeps the page up to date, and makes the keyboard work.
// Everything it shows comes from the server as HTML that is made there, or goes in as text.

const base = document.documentElement.dataset.base;
const texts = JSON.parse(document.body.dataset.texts);
const csrf = document.querySelector('meta[name="csrf"]')?.content ?? "";
const $ = (what, within = document) => within.querySelector(what);
const $$ = (what, within = document) => [...within.querySelectorAll(what)];
const HOLD = 1000; // milliseconds that a button is held down where a call cannot be undone
const GRACE = 400; // a card has to be there for so long before a key decides about it: it may be meant for the one before

// --- saying things ---

let saidUntil = 0;
function say(text) {
  const place = $("#said");
  place.textContent = "";
  setTimeout(() => { place.textContent = text; }, 30); // the same text twice is said twice
  clearTimeout(saidUntil);
  saidUntil = setTimeout(() => { place.textContent = ""; }, 8000);
}
const filled = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
const counted = (name, n) => filled(texts[n === 1 ? `${name}_one` : `${name}_other`], { n });

// --- the API ---

class Refused extends Error {
  constructor(problem, status) {
    super(problem.detail ?? problem.title ?? `${status}`);
    this.status = status;
    this.problems = problem.problems ?? [];
  }
}

async function api(method, path, body) {
  const headers = { accept: "application/json", "x-signoff-csrf": csrf };
  if (method !== "GET") headers["idempotency-key"] = crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  let sent;
  for (let attempt = 0; ; attempt++) { // the same key: what was done already is not done again
    try {
      sent = await fetch(`${base}/api/v1${path}`, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
      break;
    } catch (error) {
      if (attempt >= 2) throw new Refused({ detail: texts.offline }, 0);
      await new Promise((done) => setTimeout(done, 400 * (attempt + 1)));
    }
  }
  const data = await sent.json().catch(() => ({}));
  if (sent.status === 401) { location.assign(`${base}/sign-in?next=${encodeURIComponent(location.pathname.slice(base.length))}`); }
  if (!sent.ok) throw new Refused(data, sent.status);
  return data;
}

async function part(path) {
  const sent = await fetch(`${base}/fragments${path}`, { headers: { accept: "text/html" } });
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
const cardId = () => card()?.dataset.id;
const at = (id, rest = "") => `/requests/${encodeURIComponent(id)}${rest}`;
let shownAt = 0;
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
  if (wasOn !== id) markCurrent(id);
  const content = await trying(() => part(at(id)));
  if (!content || wanted !== id) return;
  placeCard(content);
  if (wasOn !== id) { shownAt = performance.now(); $("#detail").scrollTop = 0; }
  if (push && location.pathname !== `${base}${at(id)}`) history.pushState({}, "", `${base}${at(id)}`);
  document.body.classList.add("on-card");
  document.body.classList.remove("on-list");
  markCurrent(id);
  look();
  if (focus) $("#card-title")?.focus({ preventScroll: true });
}

function placeCard(content) {
  const place = $("#detail");
  const kept = keepDrafts();
  place.replaceChildren(content);
  restoreDrafts(kept);
  dress(place);
}

// What somebody is writing survives that the card is drawn anew.
function keepDrafts() {
  const now = card();
  if (!now) return null;
  const form = $('[data-form="edit"]', now);
  return {
    id: now.dataset.id, digest: now.dataset.digest,
    note: $("#note", now)?.value ?? "", comment: $("#comment-box", now)?.value ?? "",
    edit: form && !form.hidden ? form : null,
    open: $$("details[data-must-read]", now).map((one) => one.open),
    more: $(".more-actions", now)?.open ?? false,
    focus: document.activeElement?.id ?? "", scroll: $("#detail").scrollTop,
  };
}
function restoreDrafts(kept) {
  const now = card();
  if (!kept || !now || now.dataset.id !== kept.id) return;
  if ($("#note", now)) $("#note", now).value = kept.note;
  if ($("#comment-box", now)) $("#comment-box", now).value = kept.comment;
  if ($(".more-actions", now)) $(".more-actions", now).open = kept.more;
  if (now.dataset.digest === kept.digest) {
    $$("details[data-must-read]", now).forEach((one, index) => { one.open = one.open || kept.open[index]; });
    const form = $('[data-form="edit"]', now);
    if (kept.edit && form) form.replaceWith(kept.edit);
  }
  $("#detail").scrollTop = kept.scroll;
  if (kept.focus) document.getElementById(kept.focus)?.focus({ preventScroll: true });
}

async function refreshCard() {
  const id = cardId();
  if (!id || $("dialog[open]")) return;
  const content = await part(at(id)).catch(() => null);
  const fresh = content && $("#card", content);
  const now = card();
  if (!fresh || !now || now.dataset.id !== id) return;
  const changed = fresh.dataset.state !== now.dataset.state;
  if (fresh.dataset.digest !== now.dataset.digest) shownAt = performance.now();
  if (fresh.outerHTML === lastHtml.get(id)) return;
  placeCard(content);
  if (changed) {
    say($(".outcome-line", card())?.textContent.replace(/\s+/g, " ").trim() ?? texts.settled);
    if (fresh.dataset.state !== "pending") markGone(id, $(".tag.state", card())?.textContent.trim());
  }
}
const lastHtml = new Map();

function dress(within) {
  for (const one of $$("time[data-local]", within)) {
    one.textContent = new Date(one.dateTime).toLocaleString(document.documentElement.lang, { dateStyle: "medium", timeStyle: "short" });
  }
  const now = card();
  if (now) { lastHtml.clear(); }
  tick();
  checkRead();
}

// --- what has to be read first ---

const unread = (within) => $$("details[data-must-read]", within).filter((one) => !one.open && !one.dataset.wasRead);
async function checkRead() {
  const now = card();
  const lock = now && $('[data-lock="unread"]', now);
  if (!lock || unread(now).length || lock.dataset.sent) return;
  lock.dataset.sent = "yes";
  if ((await trying(() => api("POST", at(now.dataset.id, "/read"), { args_digest: now.dataset.digest }))) === undefined) { delete lock.dataset.sent; return; }
  const bar = $("#locked", now);
  lock.remove();
  if (!$("[data-lock]", now)) {
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
  return $("#locked")?.textContent.replace(/\s+/g, " ").trim() || texts.locked;
}

async function vote(decision, more = {}) {
  const now = card();
  if (!now || now.dataset.state !== "pending") return false;
  const button = $(`[data-do="${decision}"]`, now);
  const locked = lockedBy(button);
  if (locked) { say(`${texts.locked} ${locked}`); return false; }
  const id = now.dataset.id;
  const body = { decision, args_digest: now.dataset.digest, note: $("#note", now)?.value.trim() ?? "", ...more };
  let answer;
  try {
    answer = await api("POST", at(id, "/votes"), body);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (error.problems.length && $('[data-form="edit"]', now)) showProblems($('[data-form="edit"]', now), error.problems);
    say([error.status === 409 ? `${texts.settled}:` : texts.failed, error.message, ...error.problems].join(" "));
    if (error.status === 409) await refreshCard();
    return false;
  }
  if ($("#note", now)) $("#note", now).value = "";
  const form = $('[data-form="edit"]', now);
  if (form) form.hidden = true;
  await showCard(id, { push: false });
  const settled = answer.state !== "pending";
  if (settled) markGone(id, $(".tag.state")?.textContent.trim());
  say(!settled ? texts.counted : decision === "deny" ? texts.denied : more.args ? texts.edited : texts.approved);
  currentRow()?.focus({ preventScroll: true });
  return true;
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
const HELD = { approve: () => vote("approve"), "send-edit": () => sendEdit() };
const isHeld = () => card()?.hasAttribute("data-irreversible");
document.addEventListener("pointerdown", (event) => {
  const button = event.target.closest?.("button.hold");
  if (button && event.button === 0) beginHold(button, () => HELD[button.dataset.do]());
});
for (const end of ["pointerup", "pointercancel", "pointerleave", "blur"]) {
  document.addEventListener(end, () => endHold(), true);
}
document.addEventListener("contextmenu", (event) => { if (event.target.closest?.("button.hold")) event.preventDefault(); });

// --- editing ---

function readField(field, problems) {
  const path = JSON.parse(field.dataset.path);
  const own = (what) => $$(what, field).find((one) => one.closest("[data-field]") === field);
  if (own("[data-given]") && !own("[data-given]").checked) return { path, given: false };
  if (own("[data-null]")?.checked) return { path, given: true, value: null };
  const input = own("[data-value]");
  const fail = (text) => { problems.push({ name: path.join("."), text }); input?.setAttribute("aria-invalid", "true"); };
  input?.removeAttribute("aria-invalid");
  const number = (text, whole) => {
    // What is no number is sent as it is written: the server says what is wrong with it.
    const trimmed = text.trim();
    if (!/^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(trimmed)) return text;
    return whole && /^-?\d+$/.test(trimmed) ? Number(trimmed) : Number(trimmed);
  };
  switch (field.dataset.kind) {
    case "object": {
      const value = {};
      for (const inner of $$("[data-field]", field).filter((one) => one.parentElement.closest("[data-field]") === field)) {
        const found = readField(inner, problems);
        if (found.given) value[found.path.at(-1)] = found.value;
      }
      return { path, given: true, value };
    }
    case "list":
      return { path, given: true, value: $$(".items input", field).map((one) => field.dataset.item === "text" ? one.value : number(one.value)) };
    case "boolean": return { path, given: true, value: input.value === "true" };
    case "choice": return { path, given: true, value: JSON.parse(input.value) };
    case "integer": return { path, given: true, value: number(input.value, true) };
    case "number": return { path, given: true, value: number(input.value, false) };
    case "json":
      try { return { path, given: true, value: JSON.parse(input.value) }; } catch (error) {
        fail(`${texts.not_json} ${error.message}`);
        return { path, given: true, value: input.value };
      }
    default: return { path, given: true, value: input.value };
  }
}

function readForm(form) {
  const problems = [];
  const raw = $("[data-raw]", form);
  if (raw && (raw.hasAttribute("data-only") || raw.closest("details")?.open)) {
    try {
      return { args: JSON.parse(raw.value), problems };
    } catch (error) {
      return { args: null, problems: [{ name: "", text: `${texts.not_json} ${error.message}` }] };
    }
  }
  const args = {};
  for (const field of $$("[data-fields] > [data-field]", form)) {
    const found = readField(field, problems);
    if (found.given) args[found.path[0]] = found.value;
  }
  return { args, problems };
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

async function checkForm(form) {
  const { args, problems } = readForm(form);
  let found = problems.map((one) => (one.name ? `${one.name}: ${one.text}` : one.text));
  if (args !== null && !found.length) {
    const answer = await trying(() => api("POST", at(cardId(), "/edit-check"), { args }));
    if (answer === undefined) return null;
    found = answer.problems;
  }
  showProblems(form, found);
  return found.length ? null : args;
}

let checkSoon = 0;
document.addEventListener("input", (event) => {
  const form = event.target.closest?.('[data-form="edit"]');
  if (!form) return;
  const field = event.target.closest("[data-field]");
  const given = field && $$("[data-given]", field).find((one) => one.closest("[data-field]") === field);
  if (given && !event.target.matches("[data-given], [data-null]")) given.checked = true;
  clearTimeout(checkSoon);
  checkSoon = setTimeout(() => checkForm(form), 350);
});
// The raw text begins with what the fields hold.
document.addEventListener("toggle", (event) => {
  const raw = event.target.matches?.("details.raw") && event.target.open && $("[data-raw]", event.target);
  if (!raw) return;
  const { args } = readForm({ querySelector: () => null, querySelectorAll: (what) => event.target.closest("form").querySelectorAll(what) });
  raw.value = JSON.stringify(args, null, 2);
}, true);

async function sendEdit() {
  const form = $('[data-form="edit"]');
  clearTimeout(checkSoon);
  const args = await checkForm(form);
  if (args !== null) await vote("approve", { args });
}

function openEdit() {
  const form = $('[data-form="edit"]');
  if (!form) return;
  form.hidden = false;
  $("input, textarea, select", form)?.focus();
}

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
      if (done !== undefined) { $("#rule-dialog").close(); say(texts.written); }
    });
    block.append(text, ...warnings, diff, button);
    return block;
  });
  for (const why of found.refused ?? []) made.push(Object.assign(document.createElement("p"), { className: "hint", textContent: why }));
  if (!drafts.length) made.unshift(Object.assign(document.createElement("p"), { textContent: texts.no_drafts }));
  $("[data-drafts]").replaceChildren(...made);
  $("#rule-dialog").showModal();
}

async function claimOrRelease(release) {
  const done = await trying(() => api("POST", at(cardId(), release ? "/release" : "/claim"), {}));
  if (done === undefined) return;
  await refreshCard();
  say(release ? texts.released : texts.claimed);
}

// --- the list ---

const listPlace = () => $("[data-list]");
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
  picked.delete(id);
  const box = $("[data-pick]", row.closest(".item"));
  box.checked = false;
  box.disabled = true;
  drawBulk();
}

// Rows never move by themselves: what is new is counted on a button, what is settled is marked where it stands.
let fresh = null;
async function refreshList() {
  if (!listPlace()) return;
  const content = await part("/list").catch(() => null);
  if (!content) return;
  const groups = $(".groups", content);
  setCount(Number(groups.dataset.count), groups.dataset.more === "yes");
  const there = new Set($$(".row", groups).map((one) => one.dataset.row));
  const shown = rows().map((one) => one.dataset.row);
  const isWhole = !groups.dataset.next; // else a row may wait further down
  for (const id of shown) if (!there.has(id) && isWhole) { if (!gone.has(id)) markGone(id); }
  const known = new Set(shown);
  const news = [...there].filter((id) => !known.has(id));
  fresh = content;
  if (news.length && !shown.filter((id) => !gone.has(id)).length) { takeFresh(); say(filled(texts.arrived, { n: news.length })); return; }
  const button = $('[data-do="new"]');
  const before = Number(button.dataset.n ?? 0);
  button.dataset.n = news.length;
  button.hidden = !news.length;
  button.textContent = news.length ? counted("new", news.length) : "";
  if (news.length > before) say(filled(texts.arrived, { n: news.length }));
}

function takeFresh() {
  if (!fresh) return;
  const place = listPlace();
  const focused = document.activeElement?.dataset?.row;
  place.replaceChildren(fresh);
  fresh = null;
  gone.clear();
  const button = $('[data-do="new"]');
  button.hidden = true;
  button.dataset.n = 0;
  for (const box of $$("[data-pick]", place)) box.checked = picked.has(box.dataset.pick);
  markCurrent(cardId());
  tick();
  if (!card() && rows().length) {
    if (matchMedia("(min-width: 52.01rem)").matches) showCard(rows()[0].dataset.row, { push: false });
  }
  (focused && rowOf(focused) ? rowOf(focused) : rows()[0])?.focus({ preventScroll: true });
}

async function moreRows() {
  const groups = $(".groups", listPlace());
  const content = await part(`/list?after=${encodeURIComponent(groups.dataset.next)}`).catch(() => null);
  if (!content) return;
  const next = $(".groups", content);
  $('[data-do="more"]', groups)?.remove();
  groups.dataset.next = next.dataset.next;
  const last = rows().at(-1);
  for (const group of $$(".group", next)) {
    const same = $$(".group", groups).find((one) => one.dataset.run === group.dataset.run);
    if (same) $(".rows", same).append(...$$(".item", group)); else groups.append(group);
  }
  const button = $('[data-do="more"]', next);
  if (button) groups.append(button);
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
  $("#bulk-dialog").showModal();
  lockBulk();
}
function lockBulk() {
  const locked = unread($("[data-bulk-cards]")).length > 0;
  $("[data-bulk-locked]").hidden = !locked;
  const button = $('[data-do="bulk-approve"]');
  if (locked) button.setAttribute("aria-disabled", "true"); else button.removeAttribute("aria-disabled");
}
async function bulkVote(decision) {
  const button = $(`[data-do="bulk-${decision}"]`);
  if (button.getAttribute("aria-disabled") === "true") { say(`${texts.locked} ${$("[data-bulk-locked]").textContent}`); return; }
  const note = $("#bulk-note").value.trim();
  const items = $$(".selected > li").filter((one) => !one.hasAttribute("data-left-out") && !one.dataset.done);
  if (decision === "approve") {
    for (const one of items.filter((item) => $("[data-must-read]", item))) await trying(() => api("POST", at(one.dataset.request, "/read"), { args_digest: one.dataset.digest }));
  }
  const votes = items.map((one) => ({ request: one.dataset.request, decision, args_digest: one.dataset.digest, note }));
  if (!votes.length) return;
  const answer = await trying(() => api("POST", "/votes", { votes }));
  if (!answer) return;
  const outcomes = new Map(answer.results.map((one) => [one.request, one]));
  let done = 0;
  for (const item of items) {
    const outcome = outcomes.get(item.dataset.request);
    const place = $("[data-came]", item);
    const failed = !outcome?.ok;
    place.hidden = false;
    place.textContent = failed ? `${texts.failed} ${outcome?.problem?.detail ?? ""}` : `✓ ${decision === "deny" ? texts.denied : texts.approved}`;
    if (failed) continue;
    done += 1;
    item.dataset.done = "yes";
    if (outcome.state !== "pending") markGone(item.dataset.request, decision === "deny" ? texts.denied : texts.approved);
  }
  say(`${decision === "deny" ? texts.denied : texts.approved} ${done}/${items.length}`);
  if (done === items.length) $("#bulk-dialog").close();
  refreshCard();
}

// --- time ---

function spanText(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min${s < 600 ? ` ${s % 60} s` : ""}`;
  if (s < 172800) return `${Math.floor(s / 3600)} h${s < 36000 && Math.floor((s % 3600) / 60) ? ` ${Math.floor((s % 3600) / 60)} min` : ""}`;
  return `${Math.floor(s / 86400)} d`;
}
function tick() {
  const now = Date.now();
  for (const one of $$("time[data-deadline]")) {
    const left = (Date.parse(one.dateTime) - now) / 1000;
    const text = left > 0 ? spanText(left) : texts.over;
    if (one.textContent !== text) one.textContent = text;
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
const concerned = new Set();
function changed(event) {
  try {
    const data = JSON.parse(event.data);
    if (data.request) concerned.add(data.request);
    if (data.run) concerned.add(data.run);
  } catch { /* whatever it is about, the page is looked at anew */ }
  if (soon) return;
  soon = setTimeout(async () => {
    soon = 0;
    const about = new Set(concerned);
    concerned.clear();
    await refreshList();
    if (!about.size || about.has(cardId())) await refreshCard();
    if ($("[data-live]")) refreshRun(about);
  }, 120);
}
function listen() {
  if (!$("[data-list], [data-live]")) return;
  source = new EventSource(`${base}/api/v1/events`);
  source.addEventListener("open", () => {
    document.body.dataset.live = "yes";
    if (!wasLost) return;
    wasLost = false;
    $("#connection").hidden = true;
    say(texts.reconnected);
    changed({ data: "{}" }); // whatever happened meanwhile
  });
  source.addEventListener("message", changed);
  for (const kind of ["record", "change", "request", "run"]) source.addEventListener(kind, changed);
  source.addEventListener("presence", presence);
  source.addEventListener("error", () => {
    wasLost = true;
    delete document.body.dataset.live;
    $("#connection").hidden = false;
    if (source.readyState === EventSource.CLOSED) { // the browser gave up; we do not
      source.close();
      setTimeout(listen, 1500);
    }
  });
}
async function refreshRun(about) {
  const id = location.pathname.split("/").at(-1);
  if (about.size && ![...about].some((one) => one.startsWith(id) || id.startsWith(one))) return;
  const sent = await fetch(location.href).catch(() => null);
  if (!sent?.ok) return;
  const page = new DOMParser().parseFromString(await sent.text(), "text/html");
  $("main").replaceChildren(...$("main", page).childNodes);
  dress(document);
}

// --- who else is looking ---

function look() {
  const id = cardId();
  if (id && !document.hidden && $("[data-list]")) api("POST", at(id, "/presence"), {}).then(drawWatchers, () => {});
}
function presence(event) {
  try { drawWatchers(JSON.parse(event.data)); } catch { /* nothing to show */ }
}
function drawWatchers(data) {
  const place = $("[data-watchers]");
  if (!place || !data || (data.request && data.request !== cardId())) return;
  const others = (data.people ?? data.watchers ?? []).filter((name) => name !== document.body.dataset.me);
  place.hidden = !others.length;
  place.textContent = others.length ? `👁 ${texts.watching} ${others.join(", ")}` : "";
}
setInterval(look, 15000);

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
  "send-edit": (button) => { if (!button.classList.contains("hold")) sendEdit(); },
  deny: () => vote("deny"),
  edit: openEdit,
  "close-edit": () => { $('[data-form="edit"]').hidden = true; $('[data-do="edit"]')?.focus(); },
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
  answer: (button) => {
    const form = $('[data-form="comment"]');
    form.elements.answers.value = button.dataset.question;
    $('[value="answer"]', form).hidden = false;
    $("#comment-box").focus();
  },
  "add-item": (button) => {
    const item = document.createElement("li");
    const input = Object.assign(document.createElement("input"), { dir: "auto" });
    input.setAttribute("aria-label", button.dataset.label);
    const drop = Object.assign(document.createElement("button"), { type: "button", className: "plain", textContent: button.dataset.drop });
    drop.dataset.do = "drop-item";
    item.append(input, " ", drop);
    button.previousElementSibling.append(item);
    input.focus();
  },
  "drop-item": (button) => { const form = button.closest("form"); button.closest("li").remove(); checkForm(form); },
  happened: () => told(true),
  "did-not": () => told(false),
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
    await fetch(`${base}/sign-out`, { method: "POST", headers: { "x-signoff-csrf": csrf } }).catch(() => null);
    location.assign(`${base}/`);
  },
};
const runOf = (button) => encodeURIComponent(button.closest("[data-run]").dataset.run);
async function told(happened) {
  const id = cardId();
  if (await trying(() => api("POST", at(id, "/outcome"), { happened, note: $("#outcome-note").value.trim() })) === undefined) return;
  await showCard(id, { push: false });
  markGone(id);
  say(texts.happened);
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
  if (button) ACTIONS[button.dataset.do]?.(button);
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
    const body = { text, kind };
    if (kind === "answer") body.answers = form.elements.answers.value;
    if (await trying(() => api("POST", at(cardId(), "/comments"), body)) === undefined) return;
    form.elements.text.value = "";
    await refreshCard();
    say({ question: texts.asked, answer: texts.answered }[kind] ?? texts.noted);
  } else if (form.dataset.form === "assign") {
    if (await trying(() => api("POST", at(cardId(), "/assign"), { to: form.elements.to.value.trim() })) === undefined) return;
    await refreshCard();
    say(texts.handed);
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
  if (push) history.pushState({}, "", `${base}/`);
  document.body.classList.add("on-list");
  document.body.classList.remove("on-card");
  (currentRow() ?? rows()[0])?.focus({ preventScroll: true });
}

// --- keyboard ---

const isTyping = (target) => target.matches?.("input:not([type=checkbox]):not([type=radio]), textarea, select") || target.isContentEditable;
const tooSoon = () => { const is = moving !== null || performance.now() - shownAt < GRACE; if (is) say(texts.too_soon); return is; };
const KEYS = {
  j: () => step(1), k: () => step(-1), ArrowDown: () => step(1), ArrowUp: () => step(-1),
  o: () => { const row = document.activeElement?.dataset?.row ?? cardId() ?? rows()[0]?.dataset.row; if (row) showCard(row, { focus: true }); },
  a: () => { if (!tooSoon()) { if (isHeld()) beginHold($('[data-do="approve"]'), () => vote("approve")); else vote("approve"); } },
  d: () => { if (!tooSoon()) vote("deny"); },
  e: openEdit,
  n: () => $("#note")?.focus(),
  b: () => $("#comment-box")?.focus(),
  m: () => { if (!tooSoon() && $('[data-do="remember"]')) rememberDialog(); },
  r: () => { if ($('[data-do="rule"]')) ruleDialog(); },
  c: () => { if (card()?.dataset.state === "pending") claimOrRelease(Boolean($('[data-do="release"]'))); },
  h: () => { const more = $(".more-actions"); if (more) { more.open = true; $("#assign-to").focus(); } },
  x: () => { const id = document.activeElement?.dataset?.row ?? cardId(); if (id && rowOf(id)) pick(id); },
  ".": takeFresh,
  "/": () => { const box = $("#q"); if (box) box.focus(); else location.assign(`${base}/history`); },
  "?": ACTIONS.help,
};
const NOT_BY_ENTER = 'button.approve, [data-form="edit"] input, [data-form="edit"] select, [data-form="remember"] input';
const STEPS = new Set(["j", "k", "ArrowDown", "ArrowUp"]);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    if ($("dialog[open]")) return; // the browser closes it
    if (isTyping(event.target)) { event.target.blur(); (currentRow() ?? $("#card-title"))?.focus({ preventScroll: true }); return; }
    if ($('[data-form="edit"]:not([hidden])')) { ACTIONS["close-edit"](); return; }
    if (listPlace()) toList(location.pathname !== `${base}/`);
    return;
  }
  if (event.key === "Enter" && event.target.matches?.(NOT_BY_ENTER)) { event.preventDefault(); say(texts.enter); return; }
  if (event.key === " " && event.target.matches?.("button.hold")) {
    event.preventDefault();
    if (!event.repeat) beginHold(event.target, () => HELD[event.target.dataset.do]());
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || $("dialog[open]")) return;
  if ((event.key === "ArrowDown" || event.key === "ArrowUp") && !event.target.closest?.(".list")) return;
  const act = KEYS[event.key];
  if (!act || (event.repeat && !STEPS.has(event.key))) return;
  event.preventDefault();
  if (moving && !"ad".includes(event.key) && !STEPS.has(event.key)) moving.then(act, () => {}); else act();
});
document.addEventListener("keyup", (event) => { if (event.key === "a" || event.key === " ") endHold(); });

// --- begin ---

dress(document);
if (listPlace()) {
  shownAt = performance.now();
  markCurrent(cardId());
  look();
  if (new URLSearchParams(location.search).get("make") === "rule" && card()) ruleDialog();
}
listen();
document.body.dataset.ready = "yes";
