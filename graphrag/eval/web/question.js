// One question, and the start of the page.

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
  if (answer.cost === null) parts.push("cost not known");
  else if (answer.cost) parts.push(`$${answer.cost.toFixed(4)}`);
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
  } catch (error) {
    trouble(error);
    console.error(error);
  }
}
start();
