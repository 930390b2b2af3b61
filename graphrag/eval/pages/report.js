
"use strict";
(() => {
const PAGE_ROWS = 50;
const MANY_PRUNED = 30;
const WORDS = { 1: "right", 0: "wrong", search_failed: "search failed", judge_failed: "unscored",
  judge_unparseable: "unscored", not_judged: "not judged", abstained: "abstained" };
const byId = (id) => document.getElementById(id);
const page = JSON.parse(byId("page").textContent);
const packed = {};
let index = null;
let shown = []; // positions of the questions that pass the filters, in order
let first = 0;

// ---- what is in the file

function unpack(name) {
  packed[name] ??= (async () => {
    const bytes = Uint8Array.from(atob(byId(`packed-${name}`).textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  })();
  return packed[name];
}

const details = (() => {
  let found = null;
  return () => (found ??= unpack("details").then(JSON.parse));
})();

const library = (() => {
  let loaded = null;
  return () => (loaded ??= unpack("library").then((text) => {
    const script = document.createElement("script");
    script.textContent = text; // its hash stands in the page's policy
    document.head.append(script);
  }));
})();

// ---- elements: text is only ever set as text

function make(tag, values = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(values)) {
    if (name === "text") made.textContent = value;
    else if (name.startsWith("on")) made[name] = value;
    else if (value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

const own = (text) => make("bdi", { dir: "auto", text });

function table(caption, columns, rows) {
  const head = make("tr", {}, ...columns.map((text) => make("th", { scope: "col", text })));
  const body = rows.map((row) => make("tr", {}, ...row.map((cell, n) =>
    make(n ? "td" : "th", n ? {} : { scope: "row" }, cell instanceof Node ? cell : own(cell)))));
  return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    make("table", {}, make("caption", { text: caption }), make("thead", {}, head),
      make("tbody", {}, ...body)));
}

// ---- plots

async function draw(target, spec) {
  await library();
  // Vega's own interpreter of expressions stands in for eval, which the policy forbids.
  const options = { ast: true, actions: false, renderer: "svg", defaultStyle: false,
    tooltip: false, logLevel: 1 };
  return (await window.vegaEmbed(target, spec, options)).view;
}

async function drawPlots() {
  for (const [id, spec] of Object.entries(page.plots)) await draw(byId(id), spec);
  document.documentElement.dataset.drawn = "yes";
}

// ---- the list

function mark(state) {
  const [sign, kind] = state === 1 ? ["✓", " good"] : state === 0 ? ["✗", " bad"]
    : state === "search_failed" ? ["!", ""] : state === undefined ? ["–", ""] : ["?", ""];
  return make("span", { class: `mark${kind}`, role: "img",
    "aria-label": state === undefined ? "not asked" : WORDS[state] || state, text: sign });
}

/** Return the answers of the first search of each method; kept, as every filter asks for them. */
function answersOf(question) {
  return question.first ??= question.answers.filter((answer) => !answer.trial);
}

function chosen() {
  const metric = byId("metric").selectedIndex;
  return { text: byId("search").value.trim().toLowerCase(), film: byId("film").value,
    method: byId("method").value, metric: Math.max(metric, 0), outcome: byId("outcome").value,
    tag: byId("tag").value, order: byId("order").value, disagree: byId("disagree").checked,
    changed: byId("changed").checked };
}

// A search that failed counts 0, so it is no different from a wrong answer; a missing verdict is.
function counted(state) {
  return state === "search_failed" ? 0 : state === 1 || state === 0 ? state : null;
}

function fits(state, outcome) {
  if (outcome === "unscored") return state === "judge_failed" || state === "judge_unparseable"
    || state === "abstained";
  return String(state) === outcome;
}

function passes(question, by) {
  if (by.film && question.film !== by.film) return false;
  if (by.tag && !question.tags.includes(by.tag)) return false;
  const answers = answersOf(question);
  const asked = by.method ? answers.filter((a) => a.method === by.method) : answers;
  if (by.method && !asked.length) return false;
  if (by.outcome && !asked.some((a) => fits(a.states[by.metric], by.outcome))) return false;
  if (by.disagree) {
    const scores = answers.map((a) => counted(a.states[by.metric])).filter((s) => s !== null);
    if (new Set(scores).size < 2) return false;
  }
  if (by.changed && !asked.some((a) => {
    const [now, before] = [a.states[by.metric], a.before?.[by.metric]].map(counted);
    return before !== null && now !== null && before !== now;
  })) return false;
  return !by.text || question.searched.includes(by.text);
}

function inOrder(positions, by) {
  const most = (question, name) => answersOf(question).reduce((found, a) =>
    (by.method && a.method !== by.method ? found : Math.max(found, a[name] ?? -1)), -1);
  const wrong = (question) => answersOf(question)
    .filter((a) => counted(a.states[by.metric]) === 0).length;
  const key = { question: (q) => q.byQuestion, film: (q) => q.byFilm, wrong: (q) => -wrong(q),
    latency: (q) => -most(q, "latency"), tokens: (q) => -most(q, "tokens") }[by.order];
  if (!key) return positions;
  const keyed = positions.map((position) => [key(index.questions[position]), position]);
  keyed.sort(([a, m], [b, n]) => (a < b ? -1 : a > b ? 1 : m - n));
  return keyed.map(([, position]) => position);
}

function row(position, metric) {
  const question = index.questions[position];
  const marks = answersOf(question).map((answer) =>
    make("span", {}, own(answer.method), " ", mark(answer.states[metric])));
  return make("li", {}, make("a", { href: `#q=${position}` }, own(question.question || question.id)),
    make("span", { class: "film" }, own(question.film)), make("span", { class: "marks" }, ...marks));
}

function showRows() {
  const metric = Math.max(byId("metric").selectedIndex, 0);
  const rows = shown.slice(first, first + PAGE_ROWS);
  byId("list").replaceChildren(...rows.map((position) => row(position, metric)));
  byId("pager").hidden = shown.length <= PAGE_ROWS;
  byId("where").textContent = `${first + 1} to ${first + rows.length} of ${shown.length}`;
  byId("earlier").disabled = first === 0;
  byId("later").disabled = first + PAGE_ROWS >= shown.length;
}

function filter() {
  const by = chosen();
  const all = index.questions;
  shown = inOrder([...all.keys()].filter((position) => passes(all[position], by)), by);
  first = 0;
  byId("count").textContent = shown.length
    ? `${shown.length} of ${all.length} question${all.length === 1 ? "" : "s"}`
    : `None of ${all.length} questions fits; clear a filter.`;
  showRows();
}

function fill(select, values) {
  select.append(...values.map((value) => make("option", { value, text: value })));
  select.closest("label").hidden = values.length < 2 && select.options.length < 2;
}

function prepare() {
  const tags = new Set();
  for (const question of index.questions) {
    question.searched = [question.id, question.question, question.truth,
      ...question.answers.map((answer) => answer.response)].join("\n").toLowerCase();
    question.tags.forEach((tag) => tags.size < 500 && tags.add(tag));
  }
  rank("byQuestion", (question) => question.question);
  rank("byFilm", (question) => question.film);
  fill(byId("film"), index.films);
  fill(byId("method"), index.methods);
  byId("metric").append(...index.metrics.map((text) => make("option", { text })));
  fill(byId("tag"), [...tags].sort());
  byId("tag").closest("label").hidden = !tags.size;
  byId("changed-label").hidden = !index.baseline;
  const waiting = {};
  byId("search").oninput = () => {
    cancelAnimationFrame(waiting.frame);
    waiting.frame = requestAnimationFrame(filter);
  };
  byId("filters").onchange = filter;
  byId("filters").onreset = () => setTimeout(filter);
  byId("filters").onsubmit = (event) => event.preventDefault();
  byId("earlier").onclick = () => turn(-PAGE_ROWS);
  byId("later").onclick = () => turn(PAGE_ROWS);
}

/** Note each question's place among the others, so that no filter has to compare texts. */
function rank(name, textOf) {
  const texts = [...new Set(index.questions.map(textOf))].sort();
  const places = new Map(texts.map((text, place) => [text, place]));
  for (const question of index.questions) question[name] = places.get(textOf(question));
}

function turn(by) {
  first = Math.max(0, first + by);
  showRows();
  byId("list").querySelector("a")?.focus();
}

// ---- contexts and citations

/** Read the tables of a context: sections "-----Name-----", rows "id|...", texts in quotes. */
function readContext(text) {
  const sections = [];
  let section = null;
  let open = false; // within a quoted text that spans lines
  for (const line of text.split("\n")) {
    const title = open ? null : /^-----(.+)-----$/.exec(line);
    if (title) {
      sections.push(section = { name: title[1].trim(), rows: [] });
      continue;
    }
    const starts = open ? null : /^([^|\s"]{1,64})\|/.exec(line);
    if (!section && (starts || line)) {
      sections.push(section = { name: starts ? "Sources" : "Context", rows: [] });
    }
    if (starts && starts[1] !== "id") section.rows.push({ id: starts[1], text: line });
    else if (starts) section.header = line;
    else if (section && section.rows.length && open) section.rows.at(-1).text += `\n${line}`;
    else if (section && line) section.rows.push({ id: "", text: line });
    if ((line.split('"').length - 1) % 2) open = !open;
  }
  return sections;
}

function rowOf(sections, name, id) {
  const wanted = name.trim().toLowerCase();
  return sections.find((s) => s.name.toLowerCase() === wanted)?.rows.find((r) => r.id === id);
}

/** Return an answer's text with each cited id as a button that shows its row. */
function cited(text, sections, go) {
  const box = make("div", { class: "text", dir: "auto", tabindex: 0 });
  let at = 0;
  for (const found of text.matchAll(/\[Data:[^\]]*\]/g)) {
    box.append(text.slice(at, found.index));
    let name = "";
    for (const part of found[0].split(/([\w-]+ *(?=\())|(\b[\w-]+\b)/)) {
      if (!part) continue;
      if (/^[\w-]+ *$/.test(part) && !/^\d/.test(part) && part !== "Data" && part !== "more") {
        name = part;
        box.append(part);
      } else if (/^[\w-]+$/.test(part) && name) {
        const hit = rowOf(sections, name, part);
        const section = name;
        box.append(make("button", { class: "cite", type: "button", text: part,
          "data-lost": hit ? undefined : "yes",
          title: hit ? `${section.trim()} ${part}` : "not in the context that the model was shown",
          onclick: () => hit && go(hit) }));
      } else box.append(part);
    }
    at = found.index + found[0].length;
  }
  box.append(text.slice(at));
  return box;
}

function contextBox(sections) {
  const rows = make("div", { class: "rows", tabindex: 0, role: "region", "aria-label": "Context" });
  const n = sections.reduce((sum, section) => sum + section.rows.length, 0);
  const box = make("details", {}, make("summary", { text: `Context: ${n} rows` }), rows);
  const fillOnce = () => {
    if (rows.firstChild) return;
    for (const section of sections) {
      rows.append(make("h4", {}, own(section.name)));
      for (const each of section.rows) {
        each.element = make("div", { class: "row", dir: "auto", tabindex: -1, text: each.text });
        rows.append(each.element);
      }
    }
  };
  box.ontoggle = () => box.open && fillOnce();
  const go = (hit) => {
    box.open = true;
    fillOnce();
    rows.querySelectorAll(".cited").forEach((each) => each.classList.remove("cited"));
    hit.element.classList.add("cited");
    hit.element.focus();
  };
  return { box, go };
}

// ---- Think-on-Graph's paths

/** Return the tree of what was walked: the question, its starts, and each scored edge. */
function treeOf(question, detail, withPruned) {
  const nodes = [{ id: "q", kind: "question", label: "question", title: question }];
  const edges = [];
  const { walk, paths } = detail;
  if (walk) {
    const at = new Map(); // "depth entity" -> node that the next round goes on from
    for (const start of walk.starts) {
      const node = { id: `s${start}`, parent: "q", kind: "start", label: walk.entities[start] };
      nodes.push(node);
      at.set(`0 ${start}`, node.id);
    }
    walk.edges.forEach(([depth, source, target, relationship, forward, score, fate], n) => {
      const parent = at.get(`${depth - 1} ${source}`);
      const edge = { id: `e${n}`, parent, kind: fate, depth, from: walk.entities[source],
        to: walk.entities[target], relationship, forward, score };
      edges.push(edge);
      if (fate === "walked") at.set(`${depth} ${target}`, edge.id);
      if (parent !== undefined && (withPruned || fate !== "pruned")) {
        nodes.push({ ...edge, label: `${score} ${edge.to}` });
      }
    });
  } else {
    const seen = new Map();
    for (const path of paths || []) {
      let parent = "q";
      let before = "";
      for (const [hop, source, target, forward, score] of path) {
        const [from, to] = forward ? [source, target] : [target, source];
        if (hop === 1 && !seen.has(from)) {
          seen.set(from, `s${seen.size}`);
          nodes.push({ id: seen.get(from), parent: "q", kind: "start", label: from });
        }
        if (hop === 1) parent = before = seen.get(from);
        const key = `${hop} ${before} ${from} ${to}`;
        if (!seen.has(key)) {
          seen.set(key, `e${seen.size}`);
          const edge = { id: seen.get(key), parent, kind: "walked", depth: hop, from, to, forward,
            score, isPath: true };
          edges.push(edge);
          nodes.push({ ...edge, label: `${score} ${to}` });
        }
        parent = seen.get(key);
        before = parent;
      }
    }
  }
  // The best of each branch first; parents stay before their children for the layout.
  nodes.sort((a, b) => (b.score ?? 2) - (a.score ?? 2));
  return { nodes, edges };
}

const fields = (line) => line.split("|").map((part) => part.replace(/^"|"$/g, ""));

function sameEnds(text, edge) {
  const [, a, b] = fields(text);
  return (a === edge.from && b === edge.to) || (a === edge.to && b === edge.from);
}

function supporting(edge, sections) {
  const rows = sections.find((s) => s.name.toLowerCase() === "relationships")?.rows || [];
  return rows.find((each) => (edge.relationship === undefined ? sameEnds(each.text, edge)
    : each.id === edge.relationship));
}

function pathsBox(question, name, detail, { sections, elsewhere }) {
  const box = make("section", { class: "paths", "aria-label": `Paths of ${name}` },
    make("h3", {}, "How ", own(name), " walked the graph"));
  if (!detail.walk) {
    box.append(make("p", { class: "note", text: "Only the paths that the model was shown: this run "
      + "did not record which edges were scored and pruned. Scores are of the path so far." }));
  }
  const { edges } = treeOf(question, detail, true);
  const nPruned = edges.filter((edge) => edge.kind === "pruned").length;
  const said = make("div", { class: "said", role: "status",
    text: "Choose an edge to see the text that supports it." });
  const tell = (id) => {
    const edge = edges.find((each) => each.id === id);
    if (!edge) return;
    const arrow = edge.forward ? "-->" : "<--";
    const row = supporting(edge, sections) || null;
    const other = row ? null : elsewhere(edge);
    const source = row ? "" : other ? "The model was not shown this text; another context of the "
      + "same document has it. " : "The model was not shown this relationship, and no context in "
      + "this page has its text.";
    said.replaceChildren(make("p", {}, own(edge.from), ` ${arrow} `, own(edge.to),
      ` (score ${edge.score}, ${edge.isPath ? "on a path shown" : edge.kind})`),
      make("p", { class: "note", text: source }),
      make("p", { dir: "auto", class: "row", text: (row || other)?.text || "" }));
  };
  const graph = make("div", { class: "graph", tabindex: 0, role: "region",
    "aria-label": "Drawing of the paths; the table below says the same" });
  const redraw = async (withPruned) => {
    const { nodes } = treeOf(question, detail, withPruned);
    const spec = structuredClone(page.tree);
    spec.data[0].values = nodes;
    graph.replaceChildren();
    const inner = make("div");
    graph.append(inner);
    const view = await draw(inner, spec);
    view.addSignalListener("chosen", (_, id) => tell(id));
    graph.dataset.drawn = "yes";
  };
  const few = nPruned <= MANY_PRUNED;
  const tick = make("input", { type: "checkbox", onchange: () => redraw(tick.checked) });
  tick.checked = few;
  box.append(make("ul", { class: "key" }, make("li", { text: detail.walk ? "walked on" : "shown" }),
    detail.walk ? make("li", { class: "kept", text: "kept as evidence" }) : null,
    detail.walk ? make("li", { class: "pruned", text: "pruned" }) : null));
  if (nPruned) box.append(make("label", { class: "tick" }, tick, ` draw the ${nPruned} pruned edges`));
  box.append(graph, said);
  const rows = edges.map((edge) => [
    make("button", { class: "cite", type: "button", onclick: () => tell(edge.id) },
      own(`${edge.from} ${edge.forward ? "→" : "←"} ${edge.to}`)),
    String(edge.depth), String(edge.score), edge.isPath ? "shown" : edge.kind]);
  box.append(make("details", {}, make("summary", { text: `All ${edges.length} edges as a table` }),
    table("Edges", ["Edge", "Depth", "Score", "Fate"], rows)));
  if (detail.walk?.rounds.length) {
    box.append(make("details", {}, make("summary", { text: "Rounds" }),
      table("Rounds", ["Depth", "Scored by", "Edges", "Kept", "Note"],
        detail.walk.rounds.map((told) => told.map(String)))));
  }
  redraw(few);
  return box;
}

// ---- one question

function contextText(detail, lines) {
  return detail.context === null ? null : detail.context.map((n) => lines[n]).join("\n");
}

function usageTable(answer, detail) {
  const rows = detail.phases.map(([name, ...counts]) =>
    [name, ...counts.map((n) => n.toLocaleString("en"))]);
  if (detail.judge) rows.push(["judge", ...detail.judge.slice(0, 3).map((n) => n.toLocaleString("en"))]);
  if (!rows.length) return make("p", { class: "note", text: "What it took was not counted." });
  return table("Usage by phase", ["Phase", "Calls", "Prompt tokens", "Output tokens"], rows);
}

function took(answer) {
  const parts = [answer.latency === null ? "latency unknown" : `${answer.latency.toFixed(2)} s`,
    answer.tokens === null ? "tokens not counted" : `${answer.tokens.toLocaleString("en")} tokens`];
  if (answer.cost) parts.push(`$${answer.cost.toFixed(4)}`);
  return parts.join(", ");
}

function side(question, answer, detail, found) {
  const text = contextText(detail, found.lines);
  const sections = text ? readContext(text) : [];
  const { box, go } = contextBox(sections);
  const trial = answer.trial ? `, search ${answer.trial + 1}` : "";
  const verdicts = index.metrics.map((metric, n) => {
    const was = answer.before?.[n];
    const changed = was !== undefined && was !== answer.states[n]
      ? make("em", { text: ` (before: ${WORDS[was] || was})` }) : null;
    return make("li", {}, mark(answer.states[n]), make("b", { text: ` ${metric}` }), changed, ": ",
      own(detail.reasons[n]));
  });
  const made = make("section", { class: "side", "aria-label": answer.method },
    make("h3", {}, own(answer.method), trial), make("p", { class: "note", text: took(answer) }),
    cited(answer.response, sections, go), make("ul", { class: "verdicts" }, ...verdicts));
  if (detail.grades) {
    made.append(make("details", {}, make("summary", { text: "Further judges" }),
      make("pre", { dir: "auto", text: JSON.stringify(detail.grades, null, 2) })));
  }
  made.append(text === null
    ? make("p", { class: "note", text: "Its context is left out to keep this page small." }) : box,
  usageTable(answer, detail));
  const elsewhere = (edge) => findElsewhere(question.film, edge, found);
  const paths = detail.walk || detail.paths
    ? pathsBox(question.question, `${answer.method}${trial}`, detail, { sections, elsewhere }) : null;
  return { made, paths };
}

/** Return the row of a relationship from any context of the same document. */
function findElsewhere(film, edge, found) {
  for (const [position, question] of index.questions.entries()) {
    if (question.film !== film) continue;
    for (const detail of found.details[position]) {
      const text = contextText(detail, found.lines);
      const row = text && text.includes(edge.from) && supporting(edge, readContext(text));
      if (row && sameEnds(row.text, edge)) return row;
    }
  }
  return null;
}

async function showQuestion(position) {
  const question = index.questions[position];
  const found = await details();
  const at = shown.indexOf(position);
  const link = (text, to) => (to === undefined ? make("span", { text })
    : make("a", { href: `#q=${to}`, text }));
  const sides = question.answers.map((answer, n) =>
    side(question, answer, found.details[position][n], found));
  byId("question").replaceChildren(
    make("nav", { class: "marks", "aria-label": "Other questions" },
      make("a", { href: "#questions", text: "All questions" }),
      link("Earlier question", shown[at - 1]), link("Next question", at < 0 ? undefined : shown[at + 1])),
    make("h3", {}, own(question.question || question.id)),
    make("p", {}, make("b", { text: "Accepted answer: " }), own(question.truth || "none is given")),
    make("p", { class: "note" }, own(question.film), ", ", own(question.id),
      question.tags.length ? ", " : "", own(question.tags.join(", "))),
    make("div", { class: "sides" }, ...sides.map((each) => each.made)),
    ...sides.map((each) => each.paths).filter(Boolean));
  for (const id of ["filters", "list", "count", "marks"]) byId(id).hidden = true;
  byId("pager").hidden = true;
  byId("question").hidden = false;
  byId("question").focus({ preventScroll: true });
  byId("questions").scrollIntoView();
}

function showList() {
  for (const id of ["filters", "list", "count", "marks"]) byId(id).hidden = false;
  byId("question").hidden = true;
  byId("question").replaceChildren();
  showRows();
}

async function follow() {
  const asked = /^#q=(\d+)$/.exec(location.hash);
  if (asked && index.questions[asked[1]]) await showQuestion(Number(asked[1]));
  else if (!byId("question").hidden) showList();
}

addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !byId("question").hidden) location.hash = "#questions";
});

function trouble(error) {
  byId("trouble").textContent = `This page could not be read (${error}); a newer browser may help. `
    + "The tables above are complete without it.";
  byId("trouble").hidden = false;
  byId("count").hidden = true;
}

async function start() {
  try {
    index = JSON.parse(await unpack("index"));
    prepare();
    filter();
    document.documentElement.dataset.listed = "yes";
    addEventListener("hashchange", follow);
    await follow();
    await drawPlots();
  } catch (error) {
    trouble(error);
    console.error(error);
  }
}
start();
})();
