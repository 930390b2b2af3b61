// The list of questions, its filters and pages. The choice is in the address, "#f?...".

const PAGE_ROWS = 50;
const WORDS = { 1: "right", 0: "wrong", search_failed: "search failed", judge_failed: "unscored",
  judge_unparseable: "unscored", not_judged: "not judged", abstained: "declined" };
const OUTCOMES = { 1: "right", 0: "wrong", search_failed: "search failed", declined: "declined",
  unscored: "no verdict", not_judged: "not judged" };
let shown = []; // positions of the questions that pass the filters, in order
let first = 0;

function mark(state) {
  const [sign, kind] = state === 1 ? ["✓", " good"] : state === 0 ? ["✗", " bad"]
    : state === "search_failed" ? ["!", " bad"] : state === undefined ? ["–", ""] : ["?", ""];
  return make("span", { class: `mark${kind}`, role: "img",
    "aria-label": state === undefined ? "not asked" : WORDS[state] || state, text: sign });
}

/** Return the answers of the first search of each method; kept, as every filter asks for them. */
function answersOf(question) {
  return question.first ??= question.answers.filter((answer) => !answer.trial);
}

function chosen() {
  const by = Object.fromEntries(new FormData(byId("filters")));
  by.metric = Math.max(byId("metric").selectedIndex, 0);
  by.text = by.text.trim().toLowerCase();
  by.are = Object.entries(by).filter(([name, value]) => name.startsWith("is:") && value)
    .map(([name, value]) => [name.slice(3), value]);
  const cut = by.lost?.lastIndexOf("|");
  if (by.lost) by.lost = [by.lost.slice(0, cut), by.lost.slice(cut + 1)];
  return by;
}

// A search that failed counts 0, so it is no different from a wrong answer; a missing verdict is.
function counted(state) {
  return state === "search_failed" ? 0 : state === 1 || state === 0 ? state : null;
}

function fits(answer, metric, outcome) {
  const state = answer.states[metric];
  if (outcome === "declined") return Boolean(answer.declined);
  if (outcome === "unscored") return state === "judge_failed" || state === "judge_unparseable";
  return String(state) === outcome;
}

function passes(question, by) {
  if (by.film && question.film !== by.film) return false;
  if (by.tag && !question.tags.includes(by.tag)) return false;
  const answers = answersOf(question);
  for (const [method, outcome] of by.are) {
    if (!answers.some((a) => (!method || a.method === method) && fits(a, by.metric, outcome))) {
      return false;
    }
  }
  if (by.lost && !answers.some((a) => a.method === by.lost[0] && a.end === by.lost[1])) return false;
  if (by.cause && !question.answers.some((a) => a.causes?.includes(by.cause))) return false;
  if (by.differ) {
    const scores = answers.map((a) => counted(a.states[by.metric])).filter((s) => s !== null);
    if (new Set(scores).size < 2) return false;
  }
  return !by.text || question.searched.includes(by.text);
}

function inOrder(positions, by) {
  const most = (question, name) => Math.max(...answersOf(question).map((a) => a[name] ?? -1), -1);
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
    ...(question.doubt ? [make("span", { class: "badge", text: "ground truth doubted" })] : []),
    make("span", { class: "marks" }, ...marks), make("span", { class: "note" }, own(question.film)));
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

/** Filter by the form, and put it into the address, which can be sent to others. */
function filterByForm() {
  const values = [...new FormData(byId("filters"))].filter(([name, value]) =>
    value && !(name === "metric" && value === index.metrics[0]));
  history.replaceState(null, "", values.length ? `#f?${new URLSearchParams(values)}` : "#questions");
  filter();
}

/** Filter by an address, such as those that the tables' figures lead to. */
function filterByAddress(text) {
  const values = new URLSearchParams(text);
  for (const field of byId("filters").elements) {
    if (!field.name) continue;
    const value = values.get(field.name);
    if (field.type === "checkbox") field.checked = value !== null;
    else field.value = value ?? (field.id === "metric" ? index.metrics[0] ?? "" : "");
  }
  filter();
}

function option(value, text = value) {
  return make("option", { value, text });
}

function fill(select, values) {
  select.append(...values.map((value) => option(value)));
  select.closest("label").hidden = select.options.length < 3;
}

/** Add a choice of outcomes for each method, and one for any. */
function fillOutcomes() {
  const methods = index.methods.length > 1 ? ["", ...index.methods] : index.methods;
  byId("outcomes").append(...methods.map((method) => make("label", {},
    method ? own(method) : "any method",
    make("select", { name: `is:${method}` }, option("", "any"),
      ...Object.entries(OUTCOMES).map(([value, text]) => option(value, text))))));
}

/** Offer the stages at which each method's evidence was lost, with how often. */
function fillLost() {
  const others = { unknown: "not known", right: "right", right_anyway: "right anyway",
    unjudged: "no verdict" };
  for (const method of index.methods) {
    const n = {};
    for (const question of index.questions) {
      for (const answer of answersOf(question)) {
        if (answer.method === method && answer.end) n[answer.end] = (n[answer.end] || 0) + 1;
      }
    }
    const options = Object.entries({ ...index.lost, ...others }).filter(([stage]) => n[stage])
      .map(([stage, text]) => option(`${method}|${stage}`, `${method}: ${text} (${n[stage]})`));
    if (options.length) byId("lost").append(make("optgroup", { label: method }, ...options));
  }
  byId("lost").closest("label").hidden = byId("lost").options.length < 2;
}

function prepare() {
  const [tags, causes] = [new Set(), new Set()];
  for (const question of index.questions) {
    question.searched = [question.id, question.question, question.truth,
      ...question.answers.map((answer) => answer.response)].join("\n").toLowerCase();
    question.tags.forEach((tag) => tags.size < 500 && tags.add(tag));
    for (const answer of question.answers) answer.causes?.forEach((each) => causes.add(each));
  }
  rank("byQuestion", (question) => question.question);
  rank("byFilm", (question) => question.film);
  fill(byId("film"), index.films);
  byId("metric").append(...index.metrics.map((text) => option(text)));
  fill(byId("tag"), [...tags].sort());
  byId("tag").closest("label").hidden = !tags.size;
  fill(byId("cause"), [...causes]);
  byId("cause").closest("label").hidden = !causes.size;
  fillOutcomes();
  fillLost();
  const waiting = {};
  byId("search").oninput = () => {
    cancelAnimationFrame(waiting.frame);
    waiting.frame = requestAnimationFrame(filterByForm);
  };
  byId("filters").onchange = filterByForm;
  byId("filters").onreset = () => setTimeout(filterByForm);
  byId("filters").onsubmit = (event) => event.preventDefault();
  byId("earlier").onclick = () => turn(-PAGE_ROWS);
  byId("later").onclick = () => turn(PAGE_ROWS);
}

/** Note each question's rank among the others, so that no filter has to compare texts. */
function rank(name, textOf) {
  const texts = [...new Set(index.questions.map(textOf))].sort();
  const ranks = new Map(texts.map((text, n) => [text, n]));
  for (const question of index.questions) question[name] = ranks.get(textOf(question));
}

function turn(by) {
  first = Math.max(0, first + by);
  showRows();
  byId("list").querySelector("a")?.focus();
}
