// Makes the pages live and quick. Everything here has an equal without script: links, forms, whole pages.
// No inline handlers, no markup from data: what comes from the server goes through one Trusted Types policy.

const meta = (name) => document.querySelector(`meta[name="solocron-${name}"]`)?.content ?? "";
const main = () => document.getElementById("main");
const base = meta("base");
const policy = window.trustedTypes
  ? window.trustedTypes.createPolicy("solocron", { createHTML: (text) => text })
  : { createHTML: (text) => text };
const parse = (text) => new DOMParser().parseFromString(policy.createHTML(text), "text/html");

// --- the store's clock: what the server said, carried on by the time since then

let storeNow = Date.parse(meta("now")) || Date.now();
let heardAt = performance.now();
const now = () => storeNow + (performance.now() - heardAt);
const setClock = (iso) => {
  const told = Date.parse(iso);
  if (!Number.isNaN(told)) [storeNow, heardAt] = [told, performance.now()];
};

const two = (value) => String(value).padStart(2, "0");
function span(seconds) {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} m` + (whole % 60 ? ` ${two(whole % 60)} s` : "");
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${two(Math.floor((whole % 3600) / 60))} m`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

function tick() {
  const clock = document.getElementById("clock");
  if (clock) {
    // The zone of the page is the server's, which says how far it is from UTC.
    clock.textContent = new Date(now() + Number(clock.dataset.shift)).toISOString().slice(11, 19);
  }
  for (const one of document.querySelectorAll("time[data-ticks]")) {
    const away = (Date.parse(one.dateTime) - now()) / 1000;
    const counts = one.textContent.startsWith("in ") || one.textContent === "now";
    one.textContent = counts ? (away > 0.5 ? `in ${span(away)}` : "now") : span(Math.abs(away));
  }
  aged();
}

// --- live: a stream says that something changed, the page fetches itself and changes in place

const state = {
  live: true, failures: 0, asking: false, again: false, last: 0, whole: 0, etag: "", stream: null, open: false, timer: 0,
  good: 0,
};

function say(words, stale = false) {
  const place = document.getElementById("live");
  if (!place || place.lastElementChild.textContent === words) return;
  place.lastElementChild.textContent = words;
  place.classList.toggle("stale", stale);
  document.getElementById("retry").hidden = !stale;
}

// The page stays as it was when the store last answered; only this line comes and goes.
function away(is) {
  const bar = document.getElementById("away");
  if (!bar || bar.hidden !== is) return;
  if (is) bar.querySelector("b").textContent = document.getElementById("clock")?.textContent ?? "a while";
  bar.hidden = !is;
}

// A page that is looked at asks every half minute at the latest; one that stands still for longer says so.
function aged() {
  const bar = document.getElementById("old");
  if (!bar || !meta("topics")) return;
  const age = (performance.now() - state.good) / 1000;
  bar.hidden = age < 40 || !document.getElementById("away").hidden;
  bar.querySelector("b").textContent = span(age);
}

const busy = () =>
  document.hidden ||
  document.querySelector("dialog[open], td.pick input:checked") !== null ||
  String(window.getSelection() ?? "") !== "";

async function refresh() {
  if (!state.live || busy()) return;
  if (state.asking) {
    state.again = true;
    return;
  }
  state.asking = true;
  try {
    const wait = 1000 - (performance.now() - state.last);
    if (wait > 0) await new Promise((done) => setTimeout(done, wait));
    state.last = performance.now();
    // Now and then the whole page: what only the clock changes, such as a job that is late, has no new tag.
    const known = state.etag && state.last - state.whole < 30000;
    if (!known) state.whole = state.last;
    const headers = { "Solocron-Part": "main", ...(known ? { "If-None-Match": state.etag } : {}) };
    const answer = await fetch(location.href, { headers, credentials: "same-origin" });
    if (answer.status === 401) return location.reload();
    if (answer.status === 503) away(true);
    if (answer.status !== 304) {
      if (!answer.ok) throw new Error(String(answer.status));
      state.etag = answer.headers.get("ETag") ?? "";
      setClock(answer.headers.get("Solocron-Now") ?? "");
      morph(await answer.text());
    }
    state.failures = 0;
    state.good = performance.now();
    away(false);
    aged();
    say(state.open ? "live" : "asks every 5 s");
  } catch {
    state.failures += 1;
    if (state.failures === 1) state.since = document.getElementById("clock")?.textContent ?? "";
    if (state.failures >= 3) say(`stale since ${state.since}`, true);
  } finally {
    state.asking = false;
    if (state.again) {
      state.again = false;
      refresh();
    }
  }
}

function morph(text) {
  const fresh = parse(text);
  const content = fresh.getElementById("main") ?? fresh.body;
  if (window.Idiomorph) {
    window.Idiomorph.morph(main(), [...content.childNodes], {
      morphStyle: "innerHTML",
      ignoreActiveValue: true,
      callbacks: { beforeAttributeUpdated: (name, node) => !(name === "open" && node.localName === "details") },
    });
  } else {
    main().replaceChildren(...content.childNodes);
  }
  roving();
}

function listen() {
  const topics = meta("topics");
  if (!topics || meta("streams") === "off" || !window.EventSource || state.stream) return;
  const stream = new EventSource(`${base}/api/v1/events?topics=${encodeURIComponent(topics)}`);
  state.stream = stream;
  stream.addEventListener("hello", (event) => {
    setClock(JSON.parse(event.data).now ?? "");
    state.open = true;
    if (state.failures) refresh();
    else if (state.live) say("live");
  });
  stream.addEventListener("changed", refresh);
  stream.addEventListener("gap", refresh);
  const over = () => {
    stream.close();
    state.stream = null;
    state.open = false;
  };
  stream.addEventListener("bye", over);
  stream.onerror = () => {
    state.open = false;
    if (stream.readyState === EventSource.CLOSED) over();
  };
}

function ask() {
  clearTimeout(state.timer);
  state.timer = setTimeout(async () => {
    if (meta("topics") && (!state.open || performance.now() - state.whole > 30000)) await refresh();
    if (!state.stream && !document.hidden) listen();
    ask();
  }, state.failures > 3 ? 15000 : 5000);
}

document.getElementById("retry")?.addEventListener("click", () => {
  say("asks now", true);
  listen();
  refresh();
});

let hidden = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hidden);
  if (document.hidden) {
    hidden = setTimeout(() => {
      state.stream?.close();
      state.stream = null;
      state.open = false;
    }, 60000);
  } else {
    listen();
    refresh();
  }
});

// --- acts: the page of an act, shown in a dialog

async function openAct(href) {
  const dialog = document.getElementById("dialog");
  try {
    const answer = await fetch(href, { headers: { "Solocron-Part": "main" }, credentials: "same-origin" });
    const card = parse(await answer.text()).getElementById("act");
    if (!card) throw new Error();
    dialog.replaceChildren(card);
    dialog.setAttribute("aria-label", card.querySelector("h1").textContent);
    if (!dialog.open) dialog.showModal();
    card.querySelector("input:not([type=hidden]), textarea, button").focus();
  } catch {
    location.href = href;
  }
}

document.addEventListener("click", (event) => {
  shut(event.target);
  if (event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const link = event.target.closest?.("a");
  if (link?.matches("[data-dialog]")) {
    event.preventDefault();
    openAct(link.href);
  } else if (link?.matches("dialog [data-close]")) {
    event.preventDefault();
    link.closest("dialog").close();
  }
});

// A form that only asks further, such as for the span of a backfill, goes on in the dialog.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "get" || !form.matches("dialog form, #bulk")) return;
  event.preventDefault();
  const asked = new URLSearchParams(new FormData(form, event.submitter));
  openAct(`${form.getAttribute("action").split("?")[0]}?${asked}`);
});

// --- pictures: one tab stop each, arrows inside

function roving() {
  for (const table of document.querySelectorAll("table.cal")) {
    const cells = [...table.querySelectorAll("a.cell")];
    if (cells.length && !cells.some((cell) => cell.tabIndex === 0)) cells[0].tabIndex = 0;
  }
}

function step(from, key) {
  const row = from.closest("tr");
  if (row && from.matches(".cell")) {
    const place = from.closest("td").cellIndex;
    const along = key === "ArrowLeft" ? "previousElementSibling" : key === "ArrowRight" ? "nextElementSibling" : "";
    if (along) {
      for (let cell = from.closest("td")[along]; cell; cell = cell[along]) {
        const link = cell.querySelector("a.cell");
        if (link) return link;
      }
      return null;
    }
    const down = key === "ArrowDown" ? "nextElementSibling" : "previousElementSibling";
    for (let other = row[down]; other; other = other[down]) {
      const link = other.cells[place]?.querySelector("a.cell");
      if (link) return link;
    }
    return null;
  }
  const lane = from.closest(".lane");
  if (!lane) return null;
  const bars = [...lane.querySelectorAll("a")];
  const at = bars.indexOf(from);
  if (key === "ArrowLeft") return bars[at - 1] ?? null;
  if (key === "ArrowRight") return bars[at + 1] ?? null;
  const lanes = [...document.querySelectorAll(".lane")];
  const move = key === "ArrowDown" ? 1 : -1;
  for (let n = lanes.indexOf(lane) + move; n >= 0 && n < lanes.length; n += move) {
    const first = lanes[n].querySelector("a");
    if (first) return first;
  }
  return null;
}

// --- keys

const stored = (name) => {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
};
const store = (name, value) => {
  try {
    localStorage.setItem(name, value);
  } catch {
    // A browser without storage forgets the choice with the page.
  }
};

const places = { o: "/", j: "/jobs", r: "/runs", n: "/nodes", a: "/alarms", d: "/doctor" };
let going = 0;

const row = () => document.activeElement?.closest("table.data tbody tr");
function mark(move) {
  const rows = [...document.querySelectorAll("table.data tbody tr")].filter((one) => one.querySelector("a"));
  rows[Math.min(rows.length - 1, Math.max(0, rows.indexOf(row()) + move))]?.querySelector("a").focus();
}

function shut(keep) {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (menu.contains(keep)) continue;
    if (menu.contains(document.activeElement)) menu.firstElementChild.focus();
    menu.open = false;
  }
}

document.addEventListener("keydown", (event) => {
  const at = event.target;
  const typing = at.matches?.("input:not([type=checkbox]), textarea, select");
  const asking = document.querySelector("dialog[open]");
  if (event.key === "Escape" && !asking) shut();
  if (event.key.startsWith("Arrow") && at.matches?.("a.cell, .lane a")) {
    const next = step(at, event.key);
    if (next) {
      event.preventDefault();
      at.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    }
    return;
  }
  if (typing) {
    if (event.key === "Escape") at.blur();
    return;
  }
  if (stored("solocron-keys") === "off" || event.altKey || event.metaKey) return;
  if (event.ctrlKey && event.key !== "k") return;
  if (asking) return;
  const opens = document.querySelector(`a[data-key="${CSS.escape(event.key)}"]`);
  const act = row()?.dataset[event.key];
  if (going && places[event.key] !== undefined) {
    location.href = base + places[event.key];
  } else if (event.key === "/" || event.ctrlKey) {
    document.querySelector(".find input")?.focus();
  } else if (event.key === "g") {
    going = 1;
    setTimeout(() => (going = 0), 1000);
    return;
  } else if (event.key === "j" || event.key === "k") {
    mark(event.key === "j" ? 1 : -1);
  } else if (event.key === "x") {
    row()?.querySelector("td.pick input")?.click();
  } else if (event.key === "o") {
    row()?.querySelector("a").click();
  } else if (event.key === "z") {
    turnZone();
  } else if (event.key === "l") {
    state.live = !state.live;
    say(state.live ? "live" : "paused");
    refresh();
  } else if (event.key === "r") {
    refresh();
  } else if (event.key === "?") {
    showKeys();
  } else if (event.key === ".") {
    turnTheme();
  } else if (act) {
    openAct(act);
  } else if (opens) {
    opens.click();
  } else {
    return;
  }
  event.preventDefault();
});

const showKeys = () => document.getElementById("keys")?.showModal();
const keysOn = document.getElementById("keys-on");
const keysOpen = document.getElementById("keys-open");
if (keysOn && keysOpen) {
  keysOn.checked = stored("solocron-keys") !== "off";
  keysOn.addEventListener("change", () => store("solocron-keys", keysOn.checked ? "on" : "off"));
  keysOpen.hidden = false;
  keysOpen.addEventListener("click", showKeys);
}

// --- zone: the job's, UTC, mine

const mine = document.getElementById("zone-mine");
const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (mine && own) {
  const address = new URL(location.href);
  address.searchParams.set("tz", own);
  mine.href = address.href;
  mine.textContent = `${own}, mine`;
  mine.hidden = new URLSearchParams(location.search).get("tz") === own;
}
function turnZone() {
  const ways = [...document.querySelectorAll("#zones a:not([hidden])")];
  const at = ways.findIndex((way) => way.getAttribute("aria-current"));
  ways[(at + 1) % ways.length]?.click();
}

// --- copying: its buttons are there where the browser lets a page write to the clipboard

const copies = document.documentElement.classList;
if (navigator.clipboard) copies.add("copies");
document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("button.copy");
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.value || button.parentElement.querySelector("pre").textContent);
    const said = (button.dataset.said ??= button.textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = said), 1500);
  } catch {
    copies.remove("copies");
  }
});

// --- selection, and what was just done

document.addEventListener("change", (event) => {
  if (!event.target.matches?.("td.pick input")) return;
  const count = document.querySelectorAll("td.pick input:checked").length;
  const words = document.getElementById("picked");
  if (words) words.textContent = count ? `${count} selected` : "Select jobs to pause or resume them together.";
});
if (new URLSearchParams(location.search).has("done")) {
  // A reload, and the page that fetches itself, shall not say it again.
  const address = new URL(location.href);
  address.searchParams.delete("done");
  history.replaceState(null, "", address);
}

// --- theme: as the system, light, dark

const themes = ["", "light", "dark"];
function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  document.getElementById("theme")?.setAttribute("aria-label", `Theme: ${theme || "as the system"}`);
}
function turnTheme() {
  const next = themes[(themes.indexOf(stored("solocron-theme") ?? "") + 1) % themes.length];
  store("solocron-theme", next);
  setTheme(next);
}

setTheme(stored("solocron-theme") ?? "");
const button = document.getElementById("theme");
if (button) {
  button.hidden = false;
  button.addEventListener("click", turnTheme);
}
roving();
tick();
setInterval(tick, 1000);
listen();
ask();
