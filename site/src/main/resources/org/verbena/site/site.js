"use strict";

for (const code of document.querySelectorAll('code[class^="language-"]')) {
  Prism.highlightElement(code);
}

const menuButton = document.getElementById("ui-menu-button");
/** On a narrow screen the menu covers the page. */
function openMenu(open) {
  document.body.classList.toggle("open", open);
  menuButton.setAttribute("aria-expanded", String(open));
}

menuButton.addEventListener("click", () => openMenu(!document.body.classList.contains("open")));
document.addEventListener("keydown", event => {
  if (event.key === "Escape" && document.body.classList.contains("open")) {
    openMenu(false);
    menuButton.focus();
  }
});
// Focus must not wander under the menu.
document.querySelector("main").addEventListener("focusin", () => openMenu(false));

const input = document.getElementById("ui-search");
const results = document.getElementById("ui-results");
let loading = null;

/** Loads a script once: a page that was opened as a file may load scripts, and nothing else. */
function load(name) {
  return new Promise((done, fail) => {
    const script = document.createElement("script");
    script.src = name;
    script.onload = done;
    script.onerror = fail;
    document.head.append(script);
  });
}

/** The index is made when somebody begins to search. */
function prepare() {
  loading ??= Promise.all([load("lunr.js"), load("search-data.js"), load("search.js")]).then(() => makeIndex());
  return loading;
}

/** The part of a text that has the first word that was found. */
function excerpt(text, query) {
  const lower = text.toLowerCase();
  const places = query.toLowerCase().split(/[^\p{L}\p{N}_]+/u).filter(word => word).map(term => lower.indexOf(term)).filter(place => place >= 0);
  const start = Math.max(0, Math.min(...places, text.length) - 40);
  const from = places.length === 0 || start === 0 ? 0 : text.indexOf(" ", start) + 1;
  const to = text.length > from + 140 ? text.lastIndexOf(" ", from + 140) : text.length;
  return (from > 0 ? "… " : "") + text.slice(from, to) + (to < text.length ? " …" : "");
}

function show() {
  const query = input.value.trim();
  results.replaceChildren();
  const hits = query === "" ? [] : find(query).slice(0, 20);
  for (const hit of hits) {
    const item = document.createElement("li");
    item.id = "ui-result-" + results.childElementCount;
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", "false");
    const link = item.appendChild(document.createElement("a"));
    link.href = hit.url;
    link.tabIndex = -1;
    const title = link.appendChild(document.createElement("b"));
    title.textContent = hit.section && !hit.url.startsWith("api/") ? hit.page + " › " + hit.section : hit.page;
    const text = link.appendChild(document.createElement("small"));
    text.textContent = hit.url.startsWith("api/")
      ? hit.section + (hit.text ? ": " + excerpt(hit.text, "") : "")
      : excerpt(hit.text, query);
    results.append(item);
  }
  if (query !== "" && hits.length === 0) {
    const none = results.appendChild(document.createElement("li"));
    none.className = "none";
    none.textContent = "Nothing found for “" + query + "”";
  }
  showResults(query !== "");
}

function showResults(shown) {
  results.hidden = !shown;
  input.setAttribute("aria-expanded", String(shown));
  input.removeAttribute("aria-activedescendant");
}

function select(step) {
  const items = [...results.querySelectorAll('[role="option"]')];
  const now = items.findIndex(item => item.getAttribute("aria-selected") === "true");
  const next = items[(now + step + items.length + (now < 0 && step < 0 ? 1 : 0)) % items.length];
  items.forEach(item => item.setAttribute("aria-selected", String(item === next)));
  if (next) {
    input.setAttribute("aria-activedescendant", next.id);
    next.scrollIntoView({ block: "nearest" });
  }
}

input.addEventListener("focus", prepare);
input.addEventListener("input", () => prepare().then(show));
input.addEventListener("keydown", event => {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    select(event.key === "ArrowDown" ? 1 : -1);
  } else if (event.key === "Enter") {
    (results.querySelector('[aria-selected="true"] a') ?? results.querySelector("a"))?.click();
  } else if (event.key === "Escape") {
    input.value = "";
    showResults(false);
  }
});
results.addEventListener("click", () => showResults(false));
for (const leaving of ["click", "focusin"]) {
  document.addEventListener(leaving, event => {
    if (!event.target.closest(".search")) {
      showResults(false);
    }
  });
}
document.addEventListener("keydown", event => {
  if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) {
    event.preventDefault();
    input.focus();
  }
});

// A link to a word that is searched for: page.html?q=credits
const query = new URLSearchParams(location.search).get("q");
if (query) {
  input.value = query;
  prepare().then(show);
}
