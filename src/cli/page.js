"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);

const CLASSES = {
  e: { name: "exact", mark: "=" },
  r: { name: "rounds", mark: "≈" },
  l: { name: "range", mark: "!" },
  x: { name: "refused", mark: "✕" },
};
const sets = data.sets.map(([name, label, weak]) => ({ name, label, weak }));
const ops = data.ops.map(([name, aliases, doc, operands, tiers]) => ({ name, aliases, doc, operands, tiers }));
const outcomes = data.outcomes.map((text) => {
  const [shown, kind, compute, why] = text.split("|");
  return { shown, kind: CLASSES[kind], compute, why: why.split(" ").map((part) => data.parts[part]) };
});
const packedRows = data.rows.split(",");
const packedTables = data.tables.split(",");
const slug = (title) => title.replaceAll(", ", ",").replaceAll(" ", "-");

// What is chosen. A value that does not exist is kept, so that it applies again where it exists.
const state = { op: "", rules: "", compare: "", operands: "", cell: "", theme: "" };
let view = null;

// Data.

function numbers(text) {
  return text.split(" ").flatMap((part) => {
    const [n, count] = part.split("*");
    return Array(Number(count || 1)).fill(Number(n));
  });
}

/** The numbers of a table's outcomes, by row and column. */
function unpacked(table) {
  return numbers(packedTables[table]).map((row) => numbers(packedRows[row]));
}

/** What a rule set gives for a cell: the result, its class, the compute dtype, and the reasons. */
function found({ op, shape, tables }, set, i, j) {
  const dtype = (title) => title.replace("*", "");
  const names = { "\u0001": dtype(shape.rows[i]), "\u0002": dtype(shape.columns[j]), "\u0003": op.name };
  const filled = (text) => text.replace(/[\u0001-\u0003]/g, (placeholder) => names[placeholder]);
  const { shown, kind, compute, why } = outcomes[tables[set][i][j]];
  return { shown: filled(shown), kind, compute: filled(compute), why: why.map(filled) };
}

/** What the state means: what does not exist falls back to the first of its kind. */
function resolve() {
  const op = ops.find((o) => o.name === state.op) || ops[0];
  const set = Math.max(0, sets.findIndex((s) => s.name === state.rules));
  const other = sets.findIndex((s) => s.name === state.compare);
  const shapes = op.tiers.map(([shape]) => data.shapes[shape]);
  const tier = Math.max(0, shapes.findIndex(([title]) => slug(title) === state.operands));
  const [title, rows, columns] = shapes[tier];
  const tables = op.tiers[tier][1].map(unpacked);
  const [row, column] = state.cell.split(",");
  const cell = [rows.indexOf(row), columns.indexOf(column)];
  return {
    op, set, other: other === set ? -1 : other, titles: shapes.map(([t]) => t), tier,
    shape: { title, rows, columns }, tables, cell: cell.includes(-1) ? null : cell,
  };
}

const differ = (a, b) => a.shown !== b.shown || a.kind !== b.kind || a.compute !== b.compute;

function differsAt(i, j) {
  return view.other >= 0 && differ(found(view, view.set, i, j), found(view, view.other, i, j));
}

// The address.

function readHash() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const key of Object.keys(state)) state[key] = given.get(key) || "";
}

function hash() {
  const text = (value) => encodeURIComponent(value).replaceAll("%2C", ",");
  return "#" + Object.entries(state).filter(([, v]) => v).map(([k, v]) => k + "=" + text(v)).join("&");
}

function choose(change) {
  Object.assign(state, change);
  clearTimeout(pending);
  history.pushState(null, "", hash());
  render();
}

// Moving in the table makes no entry in the history. Browsers limit how often the address changes.
let pending = 0;
function remember(key) {
  state.cell = key;
  clearTimeout(pending);
  pending = setTimeout(() => history.replaceState(null, "", hash()), 150);
}

// Elements.

function element(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) e.setAttribute(key, value);
  e.append(...children);
  return e;
}

const spoken = (text) => element("span", { class: "sr" }, text);

/** Text with `code` in it. */
function prose(text) {
  const parts = text.replaceAll("->", "→").split("`");
  return parts.map((part, i) => (i % 2 ? element("code", {}, part) : part));
}

/** The radio buttons of the rule sets. They are made once, so that the chosen one keeps the focus. */
function makeRules() {
  at("rules").replaceChildren(...sets.map(({ name, label }) => {
    const radio = element("input", { type: "radio", name: "rules", value: name });
    radio.addEventListener("change", () => choose({ rules: name }));
    return element("label", {}, radio, label);
  }));
}

function options(select, labels) {
  select.replaceChildren(...labels.map(([value, label]) => element("option", { value }, label)));
}

// Parts of the page.

function listOps() {
  const q = at("search").value.trim().toLowerCase();
  const named = (o) => (o.name + " " + o.aliases).toLowerCase().includes(q);
  const matches = ops.filter((o) => named(o) || o.doc.toLowerCase().includes(q));
  // Ops whose names match come before those whose descriptions match.
  matches.sort((a, b) => named(b) - named(a));
  options(at("op"), matches.map((o) => [o.name, o.name]));
  at("op").value = view ? view.op.name : "";
  at("found").textContent = q ? matches.length + " of " + ops.length + " ops" : ops.length + " ops";
}

function describe() {
  const { op } = view;
  document.title = op.name + ": dtype promotion, castwise";
  at("name").textContent = op.name + "(" + op.operands.join(", ") + ")";
  at("doc").replaceChildren(...prose(op.doc + (op.aliases ? " Also: " + op.aliases.replaceAll(" ", ", ") + "." : "")));
  at("rules").querySelectorAll("input")[view.set].checked = true;
  options(at("operands"), view.titles.map((title) => [slug(title), title]));
  at("operands").value = slug(view.titles[view.tier]);
  const others = sets.filter((_, i) => i !== view.set);
  options(at("compare"), [["", "nothing"], ...others.map((s) => [s.name, s.label])]);
  at("compare").value = view.other < 0 ? "" : sets[view.other].name;
  const without = shownSets().filter((i) => !sets[i].weak).map((i) => sets[i].label);
  at("note").hidden = !without.length || !view.shape.title.includes("weak");
  at("note").textContent = without.join(" and ") + ": no weak tensors, so one promotes as any other tensor does.";
}

/** The rule sets that are shown: one, or the two that are compared. */
const shownSets = () => (view.other < 0 ? [view.set] : [view.set, view.other]);

/** Positions of all cells. */
function positions() {
  const { rows, columns } = view.shape;
  return rows.flatMap((_, i) => columns.map((_, j) => [i, j]));
}

/** The number of cells of each class under a rule set. */
function classesOf(set) {
  const counts = new Map(Object.values(CLASSES).map((kind) => [kind, 0]));
  for (const [i, j] of positions()) {
    const { kind } = found(view, set, i, j);
    counts.set(kind, counts.get(kind) + 1);
  }
  return counts;
}

function summarize() {
  const counts = shownSets().map(classesOf);
  const numbersOf = (kind) => counts.map((c) => c.get(kind)).join(" / ");
  at("legend").replaceChildren(...Object.values(CLASSES).map((kind) =>
    element("li", { class: kind.name }, kind.mark + " " + kind.name + " ", element("b", {}, numbersOf(kind)))));
  const compared = summarizeDifferences();
  const names = shownSets().map((set) => sets[set].label).join(" / ");
  at("status").textContent = view.op.name + ", " + names + ", " + view.shape.title + ": " +
    Object.values(CLASSES).map((kind) => numbersOf(kind) + " " + kind.name).join(", ") + ". " + compared;
}

/** How many cells differ, in words. */
function summarizeDifferences() {
  const all = positions();
  const differences = all.filter(([i, j]) => differsAt(i, j)).length;
  const [mine, other] = shownSets().map((set) => sets[set].label);
  const compared = other ? mine + " and " + other + " differ in " + differences + " of " + all.length + " cells. " : "";
  at("differences").hidden = !other;
  at("next").disabled = !differences;
  at("count").textContent = compared + "The upper half of such a cell, and the first number above, is " + mine + ".";
  return compared;
}

/** A result with its mark, as contents of a cell. */
function result({ shown, kind }) {
  return [
    element("span", { class: "dtype" }, shown), element("span", { class: "mark", "aria-hidden": "true" }, kind.mark),
    spoken(shown === kind.name ? "" : " " + kind.name),
  ];
}

function halves(a, b) {
  // Results that are equal are computed in different dtypes, or by other casts.
  const said = (x) => (a.shown === b.shown && a.compute !== b.compute ? { ...x, shown: "in " + x.compute } : x);
  const half = (x, set) =>
    element("span", { class: "half " + x.kind.name }, spoken(sets[set].label + ": "), ...result(said(x)));
  return [half(a, view.set), half(b, view.other)];
}

function cellElement(i, j) {
  const mine = found(view, view.set, i, j);
  const attributes = { tabindex: "-1", "data-at": i + "," + j, class: mine.kind.name };
  if (view.other < 0) return element("td", attributes, ...result(mine));
  const other = found(view, view.other, i, j);
  if (differ(mine, other)) return element("td", { ...attributes, class: "differs" }, ...halves(mine, other));
  return element("td", { ...attributes, class: "same" }, ...result(mine));
}

function drawTable() {
  const { op, shape: { title, rows, columns } } = view;
  const [first, second] = op.operands;
  const corner = rows.length > 1 ? first + " \\ " + second : first;
  const caption = "Results of " + op.name + " under the rules of " + sets[view.set].label + " for " + title +
    (rows.length > 1 ? "; rows: " + first + ", columns: " + op.operands.slice(1).join(" and ") : "");
  const head = element("tr", {}, element("th", { scope: "col" }, corner),
    ...columns.map((c) => element("th", { scope: "col" }, c)));
  const body = rows.map((row, i) => element("tr", {}, element("th", { scope: "row" }, row || "result"),
    ...columns.map((_, j) => cellElement(i, j))));
  const table = element("table", { role: "grid", "aria-readonly": "true" }, element("caption", {}, caption),
    element("thead", {}, head), element("tbody", {}, ...body));
  const focused = at("scroll").contains(document.activeElement);
  at("scroll").replaceChildren(table);
  const [i, j] = view.cell || [0, 0];
  mark(i, j, Boolean(view.cell));
  if (view.cell) reveal(tdAt(i, j));
  if (focused) tdAt(i, j).focus();
}

// The reason.

/** The operands of a cell: `x: i64 tensor, y: f32 tensor`. */
function operandsOf(i, j) {
  const { op: { operands }, shape: { title, rows, columns } } = view;
  const kinds = title.split(", ");
  const given = kinds[0] === operands[0];
  const one = (names, dtype, kind) => names.join(" and ") + ": " + dtype + (given ? "" : " " + kind);
  if (rows.length === 1) return one(operands, columns[j], kinds[0]);
  return one(operands.slice(0, 1), rows[i], kinds[0]) + ", " + one(operands.slice(1), columns[j], kinds[1]);
}

/** The dtype that is computed in, if it is not the result's. */
function within({ shown, kind, compute }) {
  const same = [kind.name, "", compute, compute + "*"].includes(shown);
  return same ? "" : " in " + compute;
}

const tag = ({ kind }, text) => element("span", { class: "tag " + kind.name }, text);

function block(set, i, j) {
  const it = found(view, set, i, j);
  const text = [it.shown, it.kind.mark, it.shown === it.kind.name ? "" : it.kind.name].filter(Boolean).join(" ");
  return element("div", {}, element("p", {}, sets[set].label + " ", tag(it, text)),
    element("ul", {}, ...it.why.map((part) => element("li", {}, ...prose(part)))));
}

function explain(cell) {
  if (!cell) {
    const hint = "Point at a cell, focus it or tap it to see its reason.";
    at("reason").replaceChildren(element("p", { class: "muted" }, hint));
    at("every").replaceChildren();
    return;
  }
  const [i, j] = cell;
  const shown = shownSets();
  const title = element("h3", {}, element("code", {}, view.op.name + "(" + operandsOf(i, j) + ")"));
  at("reason").replaceChildren(title, ...shown.map((set) => block(set, i, j)));
  at("every").replaceChildren(element("span", { class: "muted" }, "All rules:"), ...sets.map((s, k) => {
    const it = found(view, k, i, j);
    const e = tag(it, s.label + " " + (it.shown || it.kind.name) + within(it) + " " + it.kind.mark);
    if (shown.includes(k)) e.classList.add("chosen");
    return e;
  }));
}

/** Marks the titles of a cell's row and column. */
let pointed = [];
function point(cell) {
  pointed.forEach((th) => th.classList.remove("on"));
  pointed = cell ? [thAt(cell[0] + 1, 0), thAt(0, cell[1] + 1)] : [];
  pointed.forEach((th) => th.classList.add("on"));
}

function show(cell) {
  explain(cell);
  point(cell);
}

// Keyboard and pointer.

const thAt = (row, column) => at("scroll").firstElementChild.rows[row].cells[column];
const positionOf = (td) => td.dataset.at.split(",").map(Number);

/** The cell at a position; undefined outside of the table. */
function tdAt(i, j) {
  const { rows, columns } = view.shape;
  return i in rows && j in columns ? thAt(i + 1, j + 1) : undefined;
}

/** Makes a cell the one that Tab reaches; and the chosen one, whose reason is shown. */
let reached = null;
function mark(i, j, chosen) {
  if (reached) {
    reached.setAttribute("tabindex", "-1");
    reached.removeAttribute("aria-selected");
    reached.removeAttribute("aria-describedby");
  }
  const td = tdAt(i, j);
  reached = td;
  td.setAttribute("tabindex", "0");
  if (chosen) {
    td.setAttribute("aria-selected", "true");
    td.setAttribute("aria-describedby", "reason");
  }
  show(chosen ? [i, j] : null);
}

function activate(i, j) {
  view.cell = [i, j];
  mark(i, j, true);
  remember(view.shape.rows[i] + "," + view.shape.columns[j]);
}

function moveTo(i, j) {
  activate(i, j);
  tdAt(i, j).focus();
}

/** Scrolls the table, not the page, until a cell is clear of the titles. */
function reveal(td) {
  const box = at("scroll").getBoundingClientRect(), cell = td.getBoundingClientRect();
  const corner = at("scroll").querySelector("th").getBoundingClientRect();
  const by = (low, high, least, most) => (low < least ? low - least : Math.max(0, high - most));
  at("scroll").scrollLeft += by(cell.left, cell.right, box.left + corner.width, box.right);
  at("scroll").scrollTop += by(cell.top, cell.bottom, box.top + corner.height, box.bottom);
}

/** The next cell in which the rule sets differ, in a direction of 1 or -1. */
function nextDifference(direction) {
  const width = view.shape.columns.length, all = width * view.shape.rows.length;
  const [i, j] = view.cell || [0, -1];
  for (let step = 1, k = i * width + j; step <= all; step += 1) {
    k = (k + direction + all) % all;
    if (differsAt(Math.floor(k / width), k % width)) return [Math.floor(k / width), k % width];
  }
  return null;
}

/** Where a key leads from a cell; null if nowhere. */
function target(event, i, j) {
  const bottom = view.shape.rows.length - 1, right = view.shape.columns.length - 1;
  const corner = event.ctrlKey || event.metaKey;
  switch (event.key) {
    case "ArrowUp": return [i - 1, j];
    case "ArrowDown": return [i + 1, j];
    case "ArrowLeft": return [i, j - 1];
    case "ArrowRight": return [i, j + 1];
    case "Home": return [corner ? 0 : i, 0];
    case "End": return [corner ? bottom : i, right];
    case "PageUp": return [Math.max(0, i - 5), j];
    case "PageDown": return [Math.min(bottom, i + 5), j];
    case "n": return corner ? null : nextDifference(1);
    case "p": return corner ? null : nextDifference(-1);
    default: return null;
  }
}

function onKey(event) {
  const td = event.target.closest("td");
  const to = td && target(event, ...positionOf(td));
  if (!to) return;
  event.preventDefault();
  if (tdAt(...to)) moveTo(...to);
}

function onCell(act) {
  return (event) => {
    const td = event.target.closest("td");
    if (td) act(...positionOf(td));
  };
}

function onSearchKey(event) {
  if (event.key === "ArrowDown") {
    event.preventDefault();
    at("op").focus();
  } else if (event.key === "Enter" && at("op").options.length) {
    choose({ op: at("op").options[0].value });
  }
}

function render() {
  view = resolve();
  document.documentElement.dataset.theme = state.theme;
  at("theme").value = state.theme;
  at("op").value = view.op.name;
  describe();
  summarize();
  drawTable();
}

at("search").addEventListener("input", listOps);
at("search").addEventListener("keydown", onSearchKey);
at("op").addEventListener("change", (e) => choose({ op: e.target.value }));
at("compare").addEventListener("change", (e) => choose({ compare: e.target.value }));
at("operands").addEventListener("change", (e) => choose({ operands: e.target.value }));
at("theme").addEventListener("change", (e) => choose({ theme: e.target.value }));
at("next").addEventListener("click", () => moveTo(...nextDifference(1)));
at("scroll").addEventListener("keydown", onKey);
at("scroll").addEventListener("focusin", onCell(activate));
at("scroll").addEventListener("click", onCell(moveTo));
at("scroll").addEventListener("mouseover", onCell((i, j) => show([i, j])));
at("scroll").addEventListener("mouseleave", () => show(view.cell));
addEventListener("hashchange", () => {
  readHash();
  render();
});
makeRules();
listOps();
readHash();
render();
