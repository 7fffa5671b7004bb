"use strict";

// The search, without the page that shows it: lunr.js and search-data.js are loaded before.

let index = null;

/** The words of a name: "max" and "bytes" of MAX_BYTES, "event" and "loop" of EventLoop. */
function parts(text) {
  return (text.match(/[\p{L}\p{N}_]+/gu) ?? [])
    .map(word => word.split(/_|(?<=[a-z0-9])(?=[A-Z])/))
    .filter(words => words.length > 1)
    .flat()
    .join(" ");
}

function makeIndex() {
  lunr.tokenizer.separator = /[^\p{L}\p{N}_]+/u;
  index = lunr(function () {
    this.ref("id");
    this.field("words", { boost: 40 });
    this.field("page", { boost: 8 });
    this.field("section", { boost: 8 });
    this.field("parts", { boost: 3 });
    this.field("text");
    this.b(0.3); // a short entry is not better for being short
    for (const entry of searchData) {
      this.add({ ...entry, parts: parts(entry.page + " " + entry.section) });
    }
  });
}

/** How much a place counts for: what explains comes before lists of functions and types. */
function weight(url) {
  if (url.startsWith("api/")) {
    return 0.5;
  }
  const page = url.replace(/\.html.*/, "");
  const weights = {
    guide: 1.6, recipes: 1.3, tutorial: 1.2, running: 1.2,
    notebook: 0.5, concepts: 0.5, changelog: 0.4, coverage: 0.3, "coverage-librdmacm": 0.3,
  };
  return weights[page] ?? 1;
}

/** The entries that have all words, best first: whole words before beginnings, and those before words that differ by a letter. */
function find(query) {
  let scores = null;
  for (const word of query.toLowerCase().split(lunr.tokenizer.separator).filter(part => part)) {
    const found = new Map();
    const hits = index.query(clauses => {
      clauses.term(word, { boost: 10 });
      clauses.term(word, { boost: 3, usePipeline: false, wildcard: lunr.Query.wildcard.TRAILING });
      if (word.length > 4) {
        clauses.term(word, { boost: 0.5, editDistance: 1 });
      }
    });
    for (const hit of hits) {
      if (scores === null || scores.has(hit.ref)) {
        found.set(hit.ref, hit.score + (scores?.get(hit.ref) ?? 0));
      }
    }
    scores = found;
  }
  const rank = ([ref, score]) => weight(searchData[ref].url) * score;
  return [...(scores ?? [])].sort((one, other) => rank(other) - rank(one)).map(([ref]) => searchData[ref]);
}
