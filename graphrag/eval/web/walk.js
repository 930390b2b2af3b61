// The way of a graph search, from call to call.

const sources = (ids) => (ids.length ? `Sources (${ids.join(", ")})` : "no text");

function wayBox({ answer, detail, trial }) {
  const name = `${answer.method}${trial}`;
  const steps = detail.way.map((step) => {
    const items = [];
    const add = (kind, ...parts) => items.push(make("li", { class: kind }, ...parts));
    if (step.missing) add("missing", "missing: ", own(step.missing));
    if (step.kept.length) add("kept", "kept ", sources(step.kept));
    for (const row of step.followed) add("followed", "followed ", own(row));
    for (const text of step.looked_up) add("looked", "looked up “", own(text), "”");
    if (step.note) add("note", own(step.note));
    for (const number of step.cited) add("cited", `the answer cites Sources (${number})`);
    const rows = step.n_rows ? ` and ${step.n_rows} row${step.n_rows === 1 ? "" : "s"}` : "";
    return make("li", {}, make("p", {}, make("b", { text: `Call ${step.call}` }),
      ` read ${sources(step.shown)}${rows}`), items.length ? make("ul", {}, ...items) : "");
  });
  return make("section", { class: "way card", "aria-label": `Way of ${name}` },
    make("h2", {}, "How ", own(name), " went from text to text"),
    make("p", { class: "note", text: "A cited text is listed with the call that read it first." }),
    make("ol", {}, ...steps));
}
