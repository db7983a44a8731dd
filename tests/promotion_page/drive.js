"use strict";

// Appended to a copy of the page by the tests: uses its controls as a reader does, and writes what it shows as lines.

const lines = [];
const texts = new Map();
const say = (...parts) => lines.push(parts.join("\t"));
const get = (id) => document.getElementById(id);
const cells = () => [...document.querySelectorAll("#scroll td")];
const values = (select) => [...select.options].map((o) => o.value);
const radiosOf = () => [...document.querySelectorAll("#rules input")];

function set(control, value) {
  control.value = value;
  control.dispatchEvent(new Event("change", { bubbles: true }));
}

/** The number of a text, which is written once. */
function numberOf(text) {
  if (!texts.has(text)) {
    texts.set(text, texts.size);
    say("text", text);
  }
  return texts.get(text);
}

const titles = (selector) => [...document.querySelectorAll(selector)].map((th) => th.textContent).join(",");
const heading = () => document.querySelector("#reason h3").textContent;
const shownIn = (e) => e.querySelector(".dtype").textContent.replaceAll(" ", "_");

/** The reason that is shown when the pointer is on a cell. */
function reasonOf(td) {
  td.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
  return [...document.querySelectorAll("#reason li")].map((li) => li.textContent).join(" / ");
}

function sayTable(op, tier, rules) {
  const found = cells().map((td) => td.className + ":" + shownIn(td) + ":" + numberOf(reasonOf(td)));
  say("table", op, tier, rules, titles("#scroll tbody th"), titles("#scroll thead th + th"), found.join(" "),
    get("legend").textContent);
}

/** Every cell of some of the ops: part `k` of `n`. */
function everyCell(k, n) {
  values(get("op")).filter((_, i) => i % n === k).forEach((op) => {
    set(get("op"), op);
    for (const tier of [...get("operands").options]) {
      set(get("operands"), tier.value);
      for (const radio of radiosOf()) {
        radio.click();
        sayTable(op, tier.textContent, radio.value);
      }
    }
  });
}

function sayDifferences(op, tier, rules, other) {
  const found = cells().map((td) => {
    const halves = [...td.querySelectorAll(".half")].map((h) => h.classList[1] + ":" + shownIn(h));
    return td.className + "|" + (halves.length ? halves.join("|") : shownIn(td));
  });
  say("differences", op, tier, rules, other, found.join(" "), get("count").textContent, get("legend").textContent);
}

/** The difference view of each two rule sets, for some ops. */
function differences(step) {
  values(get("op")).filter((_, i) => i % step === 0).forEach((op) => {
    set(get("op"), op);
    for (const tier of [...get("operands").options]) {
      set(get("operands"), tier.value);
      radiosOf().forEach((radio, i) => radiosOf().slice(i + 1).forEach((other) => {
        radio.click();
        set(get("compare"), other.value);
        sayDifferences(op, tier.textContent, radio.value, other.value);
      }));
      set(get("compare"), "");
    }
  });
}

function keyboard() {
  set(get("op"), "add");
  cells()[0].focus();
  const keys = ["ArrowRight", "ArrowDown", "ArrowDown", "ArrowLeft", "ArrowLeft", "End", "PageDown", "^Home",
    "ArrowUp", "^End", "Home", "PageUp", "q"];
  for (const key of keys) {
    const [ctrlKey, name] = key.startsWith("^") ? [true, key.slice(1)] : [false, key];
    const event = new KeyboardEvent("keydown", { key: name, ctrlKey, bubbles: true, cancelable: true });
    document.activeElement.dispatchEvent(event);
    const td = document.activeElement;
    const tabbed = cells().filter((c) => c.tabIndex === 0).length;
    const chosen = document.querySelectorAll("td[aria-selected=true]");
    const only = chosen.length === 1 && chosen[0] === td;
    say("key", key, td.dataset.at, tabbed, only, td.getAttribute("aria-describedby"), heading(), titles("#scroll th.on"));
  }
}

function press(key) {
  const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true });
  document.activeElement.dispatchEvent(event);
  say("difference", document.activeElement.className, document.activeElement.dataset.at);
}

function stepThroughDifferences() {
  set(get("compare"), "numpy");
  get("next").click();
  press("n");
  press("n");
  press("p");
  set(get("compare"), "");
}

function pointer() {
  const [first, second] = [cells()[0], cells()[1]];
  first.click();
  say("tap", first === document.activeElement, heading());
  second.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
  say("hover", heading());
  get("scroll").dispatchEvent(new MouseEvent("mouseleave"));
  say("leave", heading());
  const row = titles("#scroll tbody th").split(",").indexOf("i64");
  cells()[row * document.querySelectorAll("#scroll thead th + th").length].click();
  say("every", heading(), get("every").textContent);
}

function search() {
  get("search").value = "multiply";
  get("search").dispatchEvent(new Event("input"));
  say("search", values(get("op")).join(","), get("found").textContent);
  get("search").dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
  say("entered", get("name").textContent);
  get("search").value = "";
  get("search").dispatchEvent(new Event("input"));
}

function sayState(what) {
  const chosen = document.querySelector("td[aria-selected=true]");
  const rules = radiosOf().find((r) => r.checked).value;
  say("state", what, get("op").value, rules, get("compare").value, get("operands").value,
    chosen ? chosen.dataset.at : "none", document.documentElement.dataset.theme, location.hash);
}

/** Does something that changes the address, and waits until the page knows. */
function changed(act) {
  return new Promise((done) => {
    addEventListener("hashchange", () => setTimeout(done), { once: true });
    act();
  });
}

async function addresses() {
  sayState("opened");
  set(get("op"), "mul");
  radiosOf()[1].click();
  sayState("chosen");
  await changed(() => history.back());
  sayState("back");
  const links = [
    "op=div&rules=jax,x64&compare=paddle&operands=tensor,0-d-tensor&cell=i64,f32&theme=dark",
    "op=exp&rules=jax&operands=weak-tensor&cell=,f32*",
    "op=nothing&rules=x&compare=y&operands=9&cell=z&more=1",
  ];
  for (const hash of links) {
    await changed(() => { location.hash = hash; });
    sayState("linked");
  }
}

/** The colours of texts, and of what is behind them. */
function colours(theme) {
  set(get("theme"), theme);
  const found = new Set();
  const clear = (e) => getComputedStyle(e).backgroundColor === "rgba(0, 0, 0, 0)";
  const opaque = (e) => (clear(e) ? opaque(e.parentElement) : e);
  for (const e of document.body.querySelectorAll("*")) {
    const own = [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim());
    if (!own || !e.offsetParent || e.closest("option")) continue;
    found.add(getComputedStyle(e).color + "\t" + getComputedStyle(opaque(e)).backgroundColor);
  }
  found.forEach((pair) => say("colours", theme, pair));
}

function everyColour() {
  location.hash = "";
  for (const theme of ["light", "dark"]) {
    set(get("compare"), "jax");
    cells()[2].click();
    colours(theme);
    set(get("compare"), "");
    colours(theme);
  }
}

async function run(parts) {
  try {
    for (const part of parts) await part();
  } catch (e) {
    say("failed", String(e && e.stack).replaceAll("\n", " "));
  }
  say("done");
  const seen = Object.assign(document.createElement("pre"), { id: "seen", textContent: lines.join("\n") });
  document.body.replaceChildren(seen);
}
