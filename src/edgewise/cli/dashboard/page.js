"use strict";
// What peers say is text: it goes into text nodes and numbers alone, and no markup is ever made of it.
const TONES = {
  running: "good", scoring: "good", lingering: "good", "summing up": "good",
  waiting: "wait", agreeing: "wait", starting: "wait",
  finished: "done", stopped: "none", "not started": "none", unknown: "none",
};
const MOST_KEYS = 12, WARN_DAYS = 30;
const $ = id => document.getElementById(id);
let state = null, picked = null, heardAt = 0;

function make(name, attributes = {}, ...inside) {
  const svg = ["svg", "line", "circle", "polyline", "text", "title"].includes(name);
  const e = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  e.append(...inside.map(each => each instanceof Node ? each : String(each)));
  return e;
}
const known = value => value !== null && value !== undefined;
const tone = peer => TONES[peer.state] || "bad";
const whole = n => known(n) ? Math.round(n).toLocaleString("en") : "";
const small = n => !known(n) ? "" : n === 0 ? "0" : n >= 100 ? whole(n) : n.toPrecision(2).replace(/e\+?/, "e");
const power = (n, digits) => n.toExponential(digits).replace("e+", "e");
const residual = n => known(n) ? power(n, 1) : "";
function bytes(n) {
  if (!known(n)) return "";
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let k = 0;
  while (n >= 1000 && k < units.length - 1) { n /= 1000; k++; }
  return (k && n < 100 ? n.toPrecision(2) : Math.round(n)) + " " + units[k];
}
const sum = (peers, key) => peers.reduce((all, peer) => all + (peer[key] || 0), 0);
const most = (peers, key) => Math.max(...peers.map(peer => peer[key]).filter(known));
const least = (peers, key) => Math.min(...peers.map(peer => peer[key]).filter(known));
const hue = k => `var(--c${k % 8})`;

// --- tiles and sentences ---

function tiles() {
  const peers = state.peers, up = peers.filter(peer => tone(peer) === "good");
  const worst = most(peers, "residual"), days = least(peers, "certificate_days"), slowest = least(up, "rounds_per_second");
  const refused = sum(peers, "refused"), failed = sum(peers, "failed_handshakes");
  const alarms = peers.reduce((all, peer) => all + (peer.alarms || []).length, 0);
  const lost = peers.filter(peer => tone(peer) === "bad").length;
  const goal = most(peers, "goal");
  return [
    ["take part", `${up.length} of ${peers.length}`, lost ? `${lost} lost or silent` : "", lost],
    ["largest residual", Number.isFinite(worst) ? residual(worst) : "–",
      Number.isFinite(goal) ? `stops at ${residual(goal)}` : ""],
    ["rounds a second", Number.isFinite(slowest) ? small(slowest) : "–", "of the slowest"],
    ["sent", bytes(sum(peers, "bytes_sent")), `${bytes(sum(up, "bytes_per_second"))} a second`],
    ["turned away", whole(refused + failed), refused + failed ? `${whole(refused)} strangers, ${whole(failed)} handshakes` : "nobody", refused + failed],
    ["alarms", whole(alarms), alarms ? "see below" : "none", alarms],
    ["certificates", Number.isFinite(days) ? `${Math.floor(days)} days` : "–", "until the first ends", days < WARN_DAYS],
  ];
}
function drawTiles() {
  $("tiles").replaceChildren(...tiles().map(([name, value, more, bad]) =>
    make("div", { class: bad ? "tile bad" : "tile" }, make("div", { class: "name" }, name),
      make("div", { class: "value" }, value), make("div", { class: "more" }, more || ""))));
}
function notices() {
  const said = [];
  for (const peer of state.peers) {
    const who = `Peer ${peer.id}`;
    if (tone(peer) === "bad") said.push(`${who}: ${peer.state}${peer.said ? ", " + peer.said : ""}`);
    for (const alarm of peer.alarms || []) said.push(`${who}: ${alarm}`);
    if (peer.exit_code) said.push(`${who} ended with exit code ${peer.exit_code}: ${peer.said}`);
    if (known(peer.certificate_days) && peer.certificate_days < WARN_DAYS)
      said.push(`${who}'s certificate ${peer.certificate_days > 0 ? "ends in " + Math.floor(peer.certificate_days) + " days" : "has ended"}`);
  }
  $("notices-panel").hidden = !said.length;
  $("notices").replaceChildren(...said.map(each => make("li", {}, each)));
}

// --- the graph ---

function drawGraph() {
  const svg = $("graph"), { width, height } = svg.getBoundingClientRect();
  const names = Object.keys(state.places), r = Math.max(6, Math.min(20, 130 / Math.sqrt(names.length) - 10));
  const pad = r + 6, byId = new Map(state.peers.map(peer => [peer.id, peer]));
  const side = Math.min(width / 1.5, height) - 2 * pad;  // a little wider than high, as most panels are
  const at = id => state.places[id].map((x, k) => [width, height][k] / 2 + (x - 0.5) * side * [1.5, 1][k]);
  const lines = state.edges.map(edge => {
    const [[x1, y1], [x2, y2]] = edge.ends.map(at);
    const kind = edge.connected === null ? "unknown" : edge.connected ? "up" : "down";
    const what = { unknown: "not known", up: "connected", down: "not connected" }[kind];
    return make("line", { x1, y1, x2, y2, class: "link " + kind },
      make("title", {}, `${edge.ends.join(" – ")}: ${what}${edge.relay ? ", by a relay" : ""}`));
  });
  const nodes = names.flatMap(id => {
    const [cx, cy] = at(id), peer = byId.get(id);
    const kind = peer ? `node ${tone(peer)}${id === picked ? " picked" : ""}` : "node unwatched";
    const circle = make("circle", { cx, cy, r, class: kind },
      make("title", {}, `peer ${id}: ${peer ? peer.state : "not watched from here"}`));
    if (peer) circle.addEventListener("click", () => pick(id));
    const shown = id.length > 3 ? id.slice(0, 2) + "…" : id;
    return [circle, make("text", { x: cx, y: cy + 4, class: peer ? "id" : "id unwatched" }, r < 9 ? "" : shown)];
  });
  svg.replaceChildren(...lines, ...nodes);
  const kinds = new Map(state.peers.map(peer => [peer.state, tone(peer)]));
  const keys = [...kinds].map(([name, kind]) => make("span", { class: `state ${kind}` }, name));
  if (names.some(id => !byId.has(id))) keys.push(make("span", {}, "dashed: not watched from here"));
  $("legend").replaceChildren(...keys);
}

// --- lines ---

function ticks(low, high, log) {
  if (log) {
    const step = Math.max(1, Math.ceil((high - low) / 5));
    const found = [];
    for (let k = Math.ceil(low); k <= high; k += step) found.push(k);
    return found;
  }
  const raw = (high - low) / 4 || 1, size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(m => m * size).find(s => s >= raw);
  const found = [];
  for (let y = Math.ceil(low / step) * step; y <= high + step / 1e6; y += step) found.push(y);
  return found;
}
function chart(id, lines, { log = false, goal = null, yText, xText }) {
  const svg = $(id), { width, height } = svg.getBoundingClientRect();
  const drawn = lines.map(line => ({ ...line, points: line.points.map(([x, y]) => [x, log ? Math.log10(y) : y]) }));
  const all = drawn.flatMap(line => line.points);
  if (!all.length) {
    svg.replaceChildren(make("text", { x: 8, y: height / 2 }, "nothing yet"));
    return;
  }
  const marked = known(goal) ? [Math.log10(goal)] : [];
  const xs = all.map(p => p[0]), ys = [...all.map(p => p[1]), ...marked];
  const x0 = Math.min(...xs), x1 = Math.max(...xs);
  let y0 = log ? Math.min(...ys) : 0, y1 = Math.max(...ys);
  if (log) { y0 = Math.floor(y0); y1 = Math.max(Math.ceil(y1), y0 + 1); } else y1 = y1 * 1.08 || 1;
  const left = 58, right = width - 12, top = 10, bottom = height - 24;
  const X = x => left + (right - left) * (x1 > x0 ? (x - x0) / (x1 - x0) : 0.5);
  const Y = y => bottom - (bottom - top) * (y - y0) / (y1 - y0);
  const parts = ticks(y0, y1, log).flatMap(y => [
    make("line", { x1: left, x2: right, y1: Y(y), y2: Y(y), class: "grid" }),
    make("text", { x: left - 8, y: Y(y) + 4, "text-anchor": "end" }, yText(log ? 10 ** y : y))]);
  parts.push(make("line", { x1: left, x2: right, y1: bottom, y2: bottom, class: "axis" }));
  for (const [x, anchor] of x1 > x0 ? [[x0, "start"], [(x0 + x1) / 2, "middle"], [x1, "end"]] : [[x0, "middle"]])
    parts.push(make("text", { x: X(x), y: height - 6, "text-anchor": anchor }, xText(x)));
  for (const y of marked) parts.push(make("line", { x1: left, x2: right, y1: Y(y), y2: Y(y), class: "goal" }));
  for (const line of drawn.sort((a, b) => (a.id === picked) - (b.id === picked))) {
    if (!line.points.length) continue;
    const kind = picked === null ? "curve" : line.id === picked ? "curve picked" : "curve faded";
    if (line.points.length === 1) {
      const [x, y] = line.points[0];
      const dot = make("circle", { cx: X(x), cy: Y(y), r: 3 });
      dot.style.fill = line.hue;
      parts.push(dot);
    }
    const points = line.points.map(([x, y]) => `${X(x).toFixed(1)},${Y(y).toFixed(1)}`).join(" ");
    const curve = make("polyline", { points, class: kind }, make("title", {}, `peer ${line.id}`));
    curve.style.stroke = line.hue;
    parts.push(curve);
  }
  svg.replaceChildren(...parts);
}
function drawCharts() {
  const of = key => state.peers.map((peer, k) => ({ id: peer.id, hue: hue(k), points: key(peer) }));
  const goal = most(state.peers, "goal");
  chart("residuals", of(peer => peer.curve || []), {
    log: true, goal: Number.isFinite(goal) ? goal : null,
    yText: y => power(y, 0), xText: x => x === 0 ? "round 0" : `${whole(x)}`,
  });
  $("goal").textContent = "of each peer over its rounds" + (Number.isFinite(goal) ? `; the dashed line, ${residual(goal)}, is where it stops` : "");
  const ago = x => x > -1 ? "now" : x < -90 ? `${Math.round(-x / 60)} min ago` : `${Math.round(-x)} s ago`;
  chart("rounds", of(peer => (peer.speeds || []).map(s => [s[0], s[1]])), { yText: small, xText: ago });
  chart("bytes", of(peer => (peer.speeds || []).map(s => [s[0], s[2]])), { yText: bytes, xText: ago });
  const keys = state.peers.slice(0, MOST_KEYS).map((peer, k) => {
    const key = make("span", { class: "key" }, `peer ${peer.id}`);
    key.style.setProperty("--tone", hue(k));
    return key;
  });
  if (state.peers.length > MOST_KEYS) keys.push(make("span", {}, `and ${state.peers.length - MOST_KEYS} more: choose one in the table`));
  $("lines").replaceChildren(...keys);
}

// --- tables ---

function table(id, columns, rows) {
  const head = make("tr", {}, ...columns.map(([name, kind]) => make("th", { class: kind || "", scope: "col" }, name)));
  const body = rows.map(({ cells, marked }) => make("tr", { class: marked ? "picked" : "" },
    ...cells.map((cell, k) => make("td", { class: `${columns[k][1] || ""} ${cell.kind || ""}` }, cell.shown ?? cell ?? ""))));
  $(id).replaceChildren(make("thead", {}, head), make("tbody", {}, ...body));
}
function chooser(id) {
  const button = make("button", { type: "button", "aria-pressed": String(id === picked) }, id);
  button.addEventListener("click", () => pick(id));
  return button;
}
const warn = (value, bad) => ({ shown: value, kind: bad ? "warn" : "" });
function drawPeers() {
  const focused = document.activeElement?.closest("#peers button")?.textContent;
  table("peers", [["peer", "text name"], ["state", "text"], ["round"], ["a second"], ["residual"], ["neighbours"], ["sent"],
    ["a second"], ["turned away"], ["alarms"], ["certificate"]], state.peers.map(peer => {
    const links = peer.neighbours || [], there = links.filter(link => link.connected).length;
    const away = (peer.refused || 0) + (peer.failed_handshakes || 0), days = peer.certificate_days;
    return { marked: peer.id === picked, cells: [
      chooser(peer.id), make("span", { class: `state ${tone(peer)}` }, peer.state), whole(peer.round),
      small(peer.rounds_per_second), residual(peer.residual), links.length && tone(peer) !== "bad" ? `${there} of ${links.length}` : "",
      bytes(peer.bytes_sent), bytes(peer.bytes_per_second), warn(whole(away), away), warn(whole((peer.alarms || []).length), (peer.alarms || []).length),
      warn(known(days) ? `${Math.floor(days)} days` : "", known(days) && days < WARN_DAYS)] };
  }));
  for (const button of $("peers").querySelectorAll("button")) if (button.textContent === focused) button.focus();
}
function drawOne() {
  const peer = state.peers.find(each => each.id === picked);
  $("one").hidden = !peer;
  if (!peer) return;
  $("one-name").textContent = `Peer ${peer.id}, at ${peer.where}`;
  $("one-said").textContent = [peer.method, peer.said].filter(Boolean).join("; ");
  table("links", [["neighbour", "text name"], ["", "text"], ["behind"], ["silent"], ["sent"], ["heard"], ["reconnects"], ["errors"]],
    (peer.neighbours || []).map(link => ({ cells: [link.id,
      make("span", { class: `state ${link.connected === null ? "none" : link.connected ? "good" : "bad"}` },
        (link.connected === null ? "not known" : link.connected ? "connected" : "away") + (link.relay ? ", by a relay" : "") + (link.part === false ? ", takes no part" : "")),
      whole(link.behind), known(link.silent) ? `${link.silent.toFixed(1)} s` : "", bytes(link.sent), bytes(link.heard),
      whole(link.reconnects), warn(whole(link.errors), link.errors)] })));
}

// --- to look again and again ---

function pick(id) { picked = id === picked ? null : id; draw(); }
function draw() {
  if (!state) return;
  const states = new Map();
  for (const peer of state.peers) states.set(peer.state, (states.get(peer.state) || 0) + 1);
  $("name").textContent = state.meshes.join(", ") || "Peers";
  document.title = `${$("name").textContent} – Edgewise`;
  $("summary").textContent = [...states].map(([name, count]) => `${count} ${name}`).join(", ");
  drawTiles(); notices(); drawGraph(); drawCharts(); drawPeers(); drawOne();
}
function tell() {
  const late = Date.now() - heardAt > 5000, old = state ? Date.now() / 1000 - state.time : 0;
  document.querySelector("#live .dot").className = late || old > 10 ? "dot off" : "dot on";
  $("live-text").textContent = !late ? (old > 10 ? `as of ${Math.round(old)} s ago` : "live") : heardAt ? "no answer: has the page's command ended?" : "connecting";
}
async function look() {
  try {
    const answer = await fetch("/state.json", { cache: "no-store" });
    if (answer.ok) { state = await answer.json(); heardAt = Date.now(); draw(); }
  } catch (away) { /* said by `tell` */ }
  tell();
  setTimeout(look, 1000);
}
const THEMES = ["system", "light", "dark"], dark = matchMedia("(prefers-color-scheme: dark)");
let theme = THEMES[0];
function dress() {
  document.documentElement.dataset.theme = theme === "system" ? (dark.matches ? "dark" : "light") : theme;
  $("theme").textContent = `theme: ${theme}`;
}
$("theme").addEventListener("click", () => { theme = THEMES[(THEMES.indexOf(theme) + 1) % 3]; dress(); });
dark.addEventListener("change", dress);
addEventListener("resize", draw);
dress();
look();
