"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const COLOURS = ["#1f83c4", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#9a6b4f",
  "#7f7f7f", "#9467bd", "#a9a520"];
const DASHES = ["solid", "dash", "dot"];  // the second ten methods, the third
// Named one by one: by itself Plotly adds a button that sends the curves to a server of its maker.
const CONFIG = { responsive: true, displaylogo: false, showSendToCloud: false, plotlyServerURL: "",
  modeBarButtons: [["toImage"], ["zoom2d", "pan2d"], ["zoomIn2d", "zoomOut2d", "resetScale2d"]] };
const at = (id) => document.getElementById(id);
const shown = new Set(data.methods);

function add(parent, tag, text = "", given = {}) {
  const made = Object.assign(document.createElement(tag), given);
  made.textContent = text;  // never as HTML: names come from outside
  return parent.appendChild(made);
}

// Plotly reads a little HTML in its texts.
const escaped = (text) =>
  text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

function readable(name, value) {
  if (value === null) return "–";
  const size = Math.abs(value);
  if (name === "bytes_sent" && size >= 1000) {
    const power = Math.min(Math.floor(Math.log10(size) / 3), 5);
    return `${Number((value / 1000 ** power).toPrecision(3))} ${["", "k", "M", "G", "T", "P"][power]}B`;
  }
  if (size >= 1e15 || (size < 1e-2 && size > 0) || data.ys.includes(name))
    return value === 0 ? "0" : value.toExponential(2).replace("e+", "e");
  const places = size >= 100 ? 0 : size >= 1 ? 2 : 4;
  return value.toLocaleString("en-GB", { maximumFractionDigits: places });
}

function styled(method) {
  const place = data.methods.indexOf(method);
  return { colour: COLOURS[place % COLOURS.length],
    dash: DASHES[Math.floor(place / COLOURS.length) % DASHES.length] };
}

function chosen() {
  return { x: at("x").value, y: at("y").value, logX: at("log-x").checked, logY: at("log-y").checked };
}

function curve(run, { x, y, logX, logY }) {
  const xs = run.columns[x], ys = run.columns[y];
  const fits = (value, log) => value !== null && (!log || value > 0);
  const kept = xs.map((_, k) => k).filter((k) => fits(xs[k], logX) && fits(ys[k], logY));
  const { colour, dash } = styled(run.method);
  const head = `<b>${escaped(run.method)}</b>` + (run.parameters ? `<br>${escaped(run.parameters)}` : "");
  const line = (name, value) => `<br>${data.labels[name]}: ${readable(name, value)}`;
  return {
    type: "scatter", mode: kept.length > 1 ? "lines" : "markers", name: escaped(run.method),
    x: kept.map((k) => xs[k]), y: kept.map((k) => ys[k]),
    text: kept.map((k) => head + line(x, xs[k]) + line(y, ys[k])),
    hovertemplate: "%{text}<extra></extra>", line: { color: colour, dash, width: 2 },
    marker: { color: colour, size: 8 },
  };
}

function paint() {
  const css = getComputedStyle(document.documentElement);
  const tone = (name) => css.getPropertyValue(name).trim();
  return { ink: tone("--ink"), paper: tone("--paper"), grid: tone("--grid"), line: tone("--line"),
    faint: tone("--faint"), node: tone("--node") };
}

function layout(tones, more) {
  return { paper_bgcolor: tones.paper, plot_bgcolor: tones.paper, showlegend: false,
    font: { color: tones.ink, size: 13, family: "system-ui, sans-serif" },
    hoverlabel: { bgcolor: tones.paper, bordercolor: tones.faint, font: { color: tones.ink }, align: "left" },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: tones.faint, activecolor: tones.ink }, ...more };
}

function drawCurves() {
  const now = chosen(), tones = paint();
  const axis = (name, log) => ({ title: { text: data.labels[name] }, type: log ? "log" : "linear",
    exponentformat: log ? "power" : "SI", tickfont: { size: log ? 11 : 13 },  // powers come larger
    gridcolor: tones.grid, linecolor: tones.line,
    zeroline: false, automargin: true, showline: true });
  data.settings.forEach((setting, place) => {
    const runs = data.runs.filter((run) => run.setting === setting && shown.has(run.method));
    Plotly.react(`panel-${place}`, runs.map((run) => curve(run, now)), layout(tones, {
      margin: { l: 60, r: 12, t: 32, b: 48 }, hovermode: "closest",
      uirevision: JSON.stringify(now),  // an enlarged part stays as methods come and go
      xaxis: axis(now.x, now.logX), yaxis: axis(now.y, now.logY) }), CONFIG);
  });
}

function drawNetwork() {
  const { at: spots, links, degrees } = data.network, tones = paint();
  const ends = (axis) => links.flatMap(([i, j]) => [spots[i][axis], spots[j][axis], null]);
  const hidden = { visible: false, fixedrange: true };
  Plotly.react("network", [
    { type: "scatter", mode: "lines", x: ends(0), y: ends(1), hoverinfo: "skip",
      line: { color: tones.faint, width: links.length > 400 ? 0.5 : 1 } },
    { type: "scatter", mode: "markers", x: spots.map((s) => s[0]), y: spots.map((s) => s[1]),
      text: degrees.map((degree, node) => `node ${node}, degree ${degree}`),
      hovertemplate: "%{text}<extra></extra>",
      marker: { color: tones.node, size: spots.length > 100 ? 6 : 12, line: { color: tones.paper, width: 1 } } },
  ], layout(tones, { margin: { l: 8, r: 8, t: 8, b: 8 }, hovermode: "closest", dragmode: false,
    xaxis: hidden, yaxis: { ...hidden, scaleanchor: "x" } }), { ...CONFIG, displayModeBar: false });
}

function fillRuns() {
  const y = at("y").value, table = at("runs");
  table.replaceChildren();
  const several = data.settings.length > 1, told = data.runs.some((run) => run.parameters);
  const texts = [...(several ? ["setting"] : []), "method", ...(told ? ["parameters"] : [])];
  const numbers = [...data.xs, y];
  // Levels that some run came to: how many seconds of compute it took.
  const levels = data.levels.map((_, k) => k).filter((k) => data.runs.some((run) => run.times[y][k] !== null));
  const head = add(add(table, "thead"), "tr"), body = add(table, "tbody");
  texts.forEach((name) => add(head, "th", name, { scope: "col" }));
  numbers.forEach((name) => add(head, "th", data.labels[name], { scope: "col", className: "number" }));
  levels.forEach((k) => add(head, "th", `seconds to ${readable(y, data.levels[k]).replace(/\.?0+e/, "e")}`,
    { scope: "col", className: "number" }));
  data.runs.forEach((run) => {
    const row = add(body, "tr");
    texts.forEach((name) => add(row, "td", run[name], { className: "text" }));
    numbers.forEach((name) => add(row, "td", readable(name, run.last[name]), { className: "number" }));
    levels.forEach((k) => add(row, "td", readable("seconds", run.times[y][k]), { className: "number" }));
  });
}

function draw() {
  drawCurves();
  if (data.network && data.network.at) drawNetwork();
}

function build() {
  const many = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
  at("summary").textContent = `${many(data.runs.length, "run")} of ${many(data.methods.length, "method")}`
    + (data.settings.length > 1 ? ` in ${data.settings.length} settings. ` : ". ")
    + "Point at a curve for its numbers; drag over a part to enlarge it, double-click to come back.";
  for (const axis of ["x", "y"]) {
    data[`${axis}s`].forEach((name) => add(at(axis), "option", data.labels[name], { value: name }));
    at(axis).value = data[axis];
  }
  data.methods.forEach((method, place) => {
    const label = add(at("methods"), "label", "", { htmlFor: `method-${place}` });
    const box = add(label, "input", "", { type: "checkbox", id: `method-${place}`, checked: true });
    const { colour, dash } = styled(method);
    add(label, "span", "", { className: "swatch" }).style.cssText =
      `border-color:${colour};border-top-style:${{ solid: "solid", dash: "dashed", dot: "dotted" }[dash]}`;
    add(label, "span", method);
    box.addEventListener("change", () => {
      shown[box.checked ? "add" : "delete"](method);
      drawCurves();
    });
  });
  for (const [id, wanted] of [["all", true], ["none", false]]) {
    at(id).addEventListener("click", () => {
      data.methods.forEach((method, place) => {
        at(`method-${place}`).checked = wanted;
        shown[wanted ? "add" : "delete"](method);
      });
      drawCurves();
    });
  }
  data.settings.forEach((setting, place) => {
    const panel = add(at("panels"), "section");
    if (setting) add(panel, "h3", setting);
    add(panel, "div", "", { id: `panel-${place}`, className: "curves" });
  });
  if (data.network) {
    const { nodes, edges, at: spots } = data.network;
    at("network-section").hidden = false;
    at("network-size").textContent = `${many(nodes, "node")}, ${many(edges, "edge")}`
      + (spots ? "; point at a node for its degree." : ": too many nodes to draw.");
    at("network").hidden = !spots;
  }
  data.about.forEach(([name, value]) => {
    at("about-section").hidden = false;
    const row = add(at("about"), "tr");
    add(row, "th", name, { scope: "row" });
    add(row, "td", value);
  });
  ["x", "log-x", "log-y"].forEach((id) => at(id).addEventListener("change", drawCurves));
  at("y").addEventListener("change", () => { drawCurves(); fillRuns(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}

build();
fillRuns();
draw();
