// One question, and the start of the page.

function contextText(detail, lines) {
  return detail.context === null || detail.unknown ? null : detail.context.map((n) => lines[n]).join("\n");
}

function usageTable(name, detail) {
  const rows = detail.phases.map(([name, ...counts]) =>
    [name, ...counts.map((n) => n.toLocaleString("en"))]);
  if (detail.judge) rows.push(["judge", ...detail.judge.slice(0, 3).map((n) => n.toLocaleString("en"))]);
  if (!rows.length) return make("p", { class: "note", text: "What it took was not counted." });
  return table("Tokens by phase", ["Phase", "Calls", "In", "Out"], rows, name);
}

function took(answer) {
  const parts = [answer.latency === null ? "latency unknown" : `${answer.latency.toFixed(2)} s`,
    answer.tokens === null ? "tokens not counted" : `${answer.tokens.toLocaleString("en")} tokens`];
  if (answer.cost === null) parts.push("cost not known");
  else if (answer.cost) parts.push(`$${answer.cost.toFixed(4)}`);
  return parts.join(", ");
}

/** Return the state of an answer and of its evidence, as badges. */
function badges(answer) {
  const state = answer.states[0];
  const kind = state === 1 ? "good" : counted(state) === 0 ? "bad" : "";
  const made = [];
  if (state !== undefined) made.push(make("span", { class: `badge ${kind}`, text: WORDS[state] || state }));
  if (answer.declined && state !== "abstained") made.push(make("span", { class: "badge", text: "declined" }));
  if (answer.lost) {
    // It is shown for a right answer, too, but is no fault.
    const isPart = answer.share > 0 && answer.share < 1
      && !["in_answer", "judged_correct"].includes(answer.lost);
    made.push(make("span", { class: answer.end === answer.lost ? "badge bad" : "badge",
      text: `${isPart ? "part of the evidence" : "evidence"} ${index.lost[answer.lost]}`,
      title: "the first stage that the method depends on and an expected quote did not pass" }));
  }
  if (answer.rank) {
    const part = answer.share < 1 ? `, ${Math.round(100 * answer.share)} % of it found` : "";
    made.push(make("span", { class: "badge", text: `evidence first at rank ${answer.rank}${part}` }));
  }
  return make("p", { class: "badges" }, ...made);
}

/** Return an answer with its context, and a function that goes to a row there. */
function read(question, answer, detail, details) {
  const text = contextText(detail, details.lines);
  const sections = text ? readContext(text) : [];
  const patterns = question.evidence.map(patternOf);
  const trial = answer.trial ? `, search ${answer.trial + 1}` : "";
  const hits = patterns.map((pattern) => pattern && sections.flatMap((section) =>
    section.rows.filter((each) => each.text.search(pattern) >= 0)
      .map((each) => ({ section, each })))[0]);
  return { question, answer, detail, text, sections, trial, hits,
    ...contextBox(sections, patterns.filter(Boolean), `${answer.method}${trial}`) };
}

/** Return an assertion with the judge's ruling and reason. */
function ruled({ text, weight, must, ruling, reason, is_met: met }) {
  return make("li", {}, mark(met === null ? "no ruling" : Number(met)),
    make("b", { text: ` ${weight}${must === "say" ? "" : ", must not be said"} ` }), own(text),
    make("span", { class: "note" }, ` ${ruling || "no ruling"}: `, own(reason || "-")));
}

function side({ answer, detail, text, sections, trial, box, go }) {
  const { assertions, claims, doubt, ...grades } = detail.grades || {};
  const verdicts = index.metrics.map((metric, n) => make("li", {}, mark(answer.states[n]),
    make("b", { text: ` ${metric} ` }), own(detail.reasons[n])));
  const made = make("section", { class: "side card", "aria-label": `${answer.method}${trial}` },
    make("h2", {}, own(answer.method), trial), badges(answer),
    cited(answer.response, sections, go, `${answer.method}${trial}`, claims?.claims || []),
    make("ul", { class: "verdicts" }, ...verdicts));
  if (claims) made.append(claimsBox(claims, sections, go));
  for (const cause of answer.causes || []) made.append(make("p", { class: "note" }, own(cause)));
  if (assertions) made.append(make("ul", { class: "verdicts", "aria-label": "Assertions" }, ...assertions.rulings.map(ruled)));
  if (Object.keys(grades).length) {
    made.append(make("details", {}, make("summary", { text: "Further judges" }),
      make("pre", { dir: "auto", tabindex: 0, text: JSON.stringify(grades, null, 2) })));
  }
  made.append(text === null
    ? make("p", { class: "note", text: detail.unknown ? "What its model was shown is unknown: it does not report it."
      : "Its context is left out to keep this page small." }) : box,
  make("p", { class: "note", text: took(answer) }), usageTable(`${answer.method}${trial}`, detail));
  return made;
}

/** Return the expected quotes, each with its row in the context of each method. */
function expected(question, answers) {
  if (!question.evidence.length) return [];
  return [make("h2", { text: question.evidence.length > 1 ? "Expected quotes" : "Expected quote" }),
    ...question.evidence.map((quote, n) => make("blockquote", {}, make("p", {}, own(quote)),
      make("p", { class: "marks" }, ...answers.map(({ answer, detail, trial, hits, go, text }) => {
        const name = `${answer.method}${trial}`;
        if (!hits[n]) {
          return make("span", { class: "note" }, own(name),
            detail.unknown ? ": unknown" : text === null ? ": not kept" : ": not shown");
        }
        const { section, each } = hits[n];
        return make("button", { class: "cite", type: "button", onclick: () => go(each) },
          own(`${name}: ${section.name} ${each.id}`.trim()));
      }))))];
}

async function showQuestion(position) {
  const question = index.questions[position];
  const details = await parse("details");
  const at = shown.indexOf(position);
  const link = (text, to, name) => (to === undefined ? make("span", { class: "note", text })
    : make("a", { href: `#q=${to}`, text, [name]: "" }));
  const answers = question.answers.map((answer, n) =>
    read(question, answer, details.answers[position][n], details));
  const ways = answers.filter(({ detail }) => detail.way).map(wayBox);
  byId("question").replaceChildren(
    make("nav", { class: "marks", "aria-label": "Other questions" },
      make("a", { href: "#questions", text: "← All questions", "data-up": "" }),
      link("Earlier", shown[at - 1], "data-earlier"),
      link("Next", at < 0 ? undefined : shown[at + 1], "data-next"),
      make("span", { class: "note", text: at < 0 ? "" : `${at + 1} of ${shown.length}` })),
    make("h1", {}, own(question.question || question.id)),
    make("p", { class: "truth" }, make("b", { text: "Accepted answer " }),
      own(question.truth || "none is given")),
    ...(question.doubt ? [make("p", {}, make("b", { text: "The judge doubts it " }), own(question.doubt))] : []),
    make("p", { class: "note" }, own(question.film), ", ", own(question.id),
      question.tags.length ? ", " : "", own(question.tags.join(", "))),
    ...expected(question, answers),
    make("div", { class: "sides" }, ...answers.map(side)), ...ways,
    make("section", { class: "calls card" }, make("h2", { text: "Every prompt and reply" }),
      ...answers.map(({ answer, trial }, n) => callsBox(`${answer.method}${trial}`, question, position, n))));
  show(true);
  byId("question").focus({ preventScroll: true });
  scrollTo(0, 0);
}

/** Show one question, or all else of the page. */
function show(one) {
  document.body.classList.toggle("one", one);
  byId("question").hidden = !one;
}

function showList(left) {
  show(false);
  byId("question").replaceChildren();
  const link = byId("list").querySelector(`a[href="#q=${left}"]`);
  if (link) link.focus();
  else byId("questions").scrollIntoView();
}

let open = null; // position of the question that is shown

async function follow() {
  const [, kind, value] = /^#(q=|id=|f\?)(.*)$/.exec(location.hash) || [];
  const left = open;
  const at = kind === "id=" ? index.questions.findIndex((q) => q.id === decodeURIComponent(value))
    : kind === "q=" ? Number(value) : -1;
  open = index.questions[at] ? at : null;
  if (open !== null) return showQuestion(open);
  if (kind === "f?") filterByAddress(value);
  if (left !== null) showList(left);
  else if (kind === "f?") byId("questions").scrollIntoView();
}

addEventListener("keydown", (event) => {
  if (event.key === "Escape" && open !== null && !byId("keys").open) location.hash = "#questions";
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
