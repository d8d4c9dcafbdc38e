// SQL on store.sqlite in the browser, by the official build of SQLite for WebAssembly.
import sqlite3InitModule from "./sqlite3/index.mjs";

const [sql, run, out, pick] = ["sql", "run", "out", "examples"].map((id) => document.getElementById(id));
const MOST = 1000;
const LIMIT_MS = 5000; // of a query, which else may never end
const STEPS = 100000; // of SQLite between two looks at the clock
let started = 0;

async function open() {
  const [sqlite3, answer] = await Promise.all([sqlite3InitModule(), fetch("store.sqlite")]);
  if (!answer.ok) throw new Error(`store.sqlite: ${answer.status} ${answer.statusText}`);
  const bytes = new Uint8Array(await answer.arrayBuffer());
  const db = new sqlite3.oo1.DB();
  const { capi, wasm } = sqlite3;
  const flags = capi.SQLITE_DESERIALIZE_FREEONCLOSE | capi.SQLITE_DESERIALIZE_READONLY;
  db.checkRc(capi.sqlite3_deserialize(db.pointer, "main", wasm.allocFromTypedArray(bytes), bytes.length,
    bytes.length, flags));
  const late = () => (performance.now() - started > LIMIT_MS ? 1 : 0);
  capi.sqlite3_progress_handler(db.pointer, STEPS, late, 0);
  return db;
}

function show(db) {
  const columns = [], rows = [];
  started = performance.now();
  try {
    const statement = db.prepare(sql.value);
    try {
      columns.push(...statement.getColumnNames());
      while (rows.length < MOST && statement.step()) rows.push(statement.get([]));
    } finally {
      statement.finalize();
    }
  } catch (problem) {
    const late = performance.now() - started > LIMIT_MS;
    const words = late ? `The query was ended after ${LIMIT_MS / 1000} s: a recursive one needs a LIMIT inside.`
      : problem.message;
    out.replaceChildren(note(words, "warning"));
    return;
  }
  const table = document.createElement("table");
  const head = table.createTHead().insertRow(), body = table.createTBody();
  for (const name of columns) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = name;
    head.append(cell);
  }
  for (const row of rows) {
    const line = body.insertRow();
    for (const value of row) {
      line.insertCell().textContent = value === null ? "–" : typeof value === "number" && !Number.isInteger(value)
        ? value.toPrecision(5) : String(value);
    }
  }
  const scroll = document.createElement("div");
  scroll.className = "scroll";
  scroll.tabIndex = 0;
  scroll.append(table);
  const more = rows.length === MOST ? `, the first ${MOST}` : "";
  const words = `${rows.length} rows${more} in ${(performance.now() - started).toFixed(0)} ms`;
  out.replaceChildren(note(words, "soft"), scroll);
}

function note(text, kind) {
  const line = document.createElement("p");
  line.className = kind;
  line.textContent = text;
  return line;
}

sql.value = pick.value;
try {
  const db = await open();
  run.disabled = false;
  run.onclick = () => show(db);
  sql.onkeydown = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) show(db);
  };
  pick.onchange = () => {
    sql.value = pick.value;
    show(db);
  };
  show(db);
} catch (problem) {
  out.replaceChildren(note(`SQLite did not start: ${problem.message}`, "warning"));
}
