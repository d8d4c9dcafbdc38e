// Draws the charts of a page in its colours and writes how long ago times are. Fetches nothing.
const dark = matchMedia("(prefers-color-scheme: dark)");
const specs = new Map();
const SCRIPT = document.currentScript.src;
const COLUMNS = { arm: "Arm", image_size: "Image, px", tokens: "Tokens", gmacs_baseline: "GMACs, baseline",
  baseline_ms: "Baseline, ms", arm_ms: "Arm, ms", estimate: "Speed-up", interval: "Interval", word: "Verdict",
  pairs: "Pairs", flags: "Flags" };

function look() {
  const [text, soft, line] = ["--text", "--soft", "--line"].map((name) =>
    getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  const words = { labelColor: soft, titleColor: soft };
  return {
    background: "transparent", view: { stroke: null }, font: "system-ui, sans-serif",
    axis: { ...words, domain: false, gridColor: line, tickColor: line, labelFontSize: 12, titleFontSize: 12,
      titleFontWeight: "normal", titlePadding: 8 },
    legend: { ...words, labelFontSize: 12, labelLimit: 0, symbolSize: 70, columnPadding: 14, offset: 6 },
    title: { color: text, subtitleColor: soft, anchor: "start" },
  };
}

async function draw() {
  for (const figure of specs.keys()) {
    if (!window.vegaEmbed) {
      figure.textContent = "This chart needs assets/vega.js, which is not in this folder;"
        + " `breakeven publish` writes it. The table below has its points.";
      continue;
    }
    const spec = specs.get(figure);
    await vegaEmbed(figure, { ...spec, config: { ...spec.config, ...look() } }, {
      actions: false, renderer: "svg", tooltip: { theme: dark.matches ? "dark" : "light" },
      loader: { target: "_self" },
    });
  }
}

function cell(line, tag, text, href) {
  const made = line.appendChild(document.createElement(tag));
  const inner = href ? made.appendChild(document.createElement("a")) : made;
  if (href) inner.href = href;
  inner.textContent = text ?? "–";
}

// The points of the first chart of each part, for those who read tables or have no pointer.
function tables() {
  for (const place of document.querySelectorAll(".points")) {
    const figure = place.closest("section").querySelector("figure.chart");
    const sets = figure ? Object.values(specs.get(figure).datasets) : [];
    const rows = sets.find((set) => set.length && set[0].href) ?? [];
    const names = Object.keys(COLUMNS).filter((name) => rows.some((row) => row[name] !== null && row[name] !== ""
      && row[name] !== undefined));
    place.className = "points-table scroll";
    place.tabIndex = 0;
    const table = place.appendChild(document.createElement("table"));
    const head = table.createTHead().insertRow(), body = table.createTBody();
    for (const name of names) cell(head, "th", COLUMNS[name]);
    for (const row of rows) {
      const line = body.insertRow();
      for (const name of names) {
        const value = typeof row[name] === "number" ? Number(row[name].toPrecision(4)) : row[name];
        cell(line, "td", value, name === "arm" && row.href);
      }
    }
  }
}

function ages() {
  for (const time of document.querySelectorAll("time")) {
    const days = Math.floor((Date.now() - Date.parse(time.dateTime)) / 864e5);
    time.title = time.dateTime;
    time.textContent = `${time.textContent.replace(/^\d+ \w+/, `$& ${time.dateTime.slice(0, 4)}`)} UTC`;
    time.append(days < 1 ? " (today)" : days === 1 ? " (yesterday)" : ` (${days} days ago)`);
    if (days < 7 && time.closest(".card")) time.classList.add("new");
  }
}

addEventListener("DOMContentLoaded", () => {
  for (const figure of document.querySelectorAll("figure.chart")) {
    specs.set(figure, JSON.parse(figure.querySelector("script").textContent));
  }
  ages();
  tables();
  if (specs.size) {
    const script = document.createElement("script");
    script.src = new URL("vega.js", SCRIPT);
    script.onload = script.onerror = draw;
    document.head.append(script);
  }
  dark.addEventListener("change", draw);
  const server = document.getElementById("needs-server");
  if (!server) return;
  if (location.protocol === "file:") server.hidden = false;
  else {
    import("./query.js").catch(() => {
      document.getElementById("out").textContent = "This page needs assets/sqlite3, which is not in this"
        + " folder; `breakeven publish` writes it.";
    });
  }
});
