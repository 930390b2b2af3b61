// The list of questions, its filters and pages.

const PAGE_ROWS = 50;
const WORDS = { 1: "right", 0: "wrong", search_failed: "search failed", judge_failed: "unscored",
  judge_unparseable: "unscored", not_judged: "not judged", abstained: "abstained" };
let shown = []; // positions of the questions that pass the filters, in order
let first = 0;

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
  if (outcome === "unscored") return state === "judge_failed" || state === "judge_unparseable";
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
