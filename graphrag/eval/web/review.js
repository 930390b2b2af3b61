const byId = (id) => document.getElementById(id);
const proofNames = { oracle: "From the quotes alone", closed_book: "Without any text" };
let { rows } = JSON.parse(byId("data").textContent);
let at = 0;
let busy = false;
let mending = false;

function element(tag, className, text = "") {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

function section(name, text, className = "") {
  const made = element("section", className);
  const box = element("p", "text", text);
  box.tabIndex = 0;
  made.append(element("h2", "", name), box);
  return made;
}

function warn(text) {
  byId("warning").textContent = text;
  byId("warning").hidden = !text;
}

function proofs(row) {
  return Object.entries(row.proofs || {}).map(([name, value]) =>
    section(proofNames[name] || name, value === null ? "declined to answer"
      : typeof value === "string" ? value : JSON.stringify(value)));
}

function decided(row) {
  const { name, decision, time } = typeof row.vetted_by === "string"
    ? { name: row.vetted_by } : row.vetted_by || {};
  if (!name) return "Nobody has decided on it yet.";
  const earlier = decision === "mended" && row.proofs ? " The proofs are of the wording before." : "";
  return `${decision || "vetted"} by ${name}${time ? `, ${time}` : ""}.${earlier}`;
}

function count() {
  return rows.filter((each) => each.vetted_by).length;
}

/** While a question is mended nothing else can be done. */
function showButtons() {
  switchOff({ back: mending || at === 0, next: mending || at >= rows.length - 1,
    open: mending || count() === rows.length });
  for (const id of ["accept", "change", "reject"]) byId(id).disabled = mending || !rows[at];
}

function show() {
  const row = rows[at];
  const n = count();
  byId("bar").max = Math.max(1, rows.length);
  byId("bar").value = n;
  byId("progress").textContent = row
    ? `Question ${at + 1} of ${rows.length}: ${n} decided, ${rows.length - n} open.`
    : "No question is left in the file.";
  showButtons();
  if (!row) {
    byId("item").replaceChildren();
    byId("texts").replaceChildren();
    return;
  }
  const about = Object.entries(row.about).map(([name, value]) => `${name}: ${value}`).join("; ");
  const assertions = row.assertions.map((each) => each.text || String(each)).join("\n");
  byId("item").replaceChildren(
    element("p", "note", `${decided(row)} ${about}`),
    section("Question", row.question, "question"),
    section("Answer", row.answer || (row.about.answerable === false
      ? "The texts don't answer this question." : "none")),
    ...(row.doubt ? [section("A judge doubts the answer", row.doubt)] : []),
    ...(assertions ? [section("What an answer must say", assertions), element("p", "note",
      "Mend the question or the answer, and this goes; graphrag eval draft --assertions writes it again.")] : []),
    ...proofs(row),
  );
  showTexts(row);
}

/** Show the text units of a row, with its quotes marked. */
async function showTexts(row) {
  byId("texts").replaceChildren();
  let reply;
  try {
    reply = await (await fetch(`/texts/${row.seen}`)).json();
  } catch {
    return; // the next decision warns that nothing answers
  }
  if (rows[at] !== row) return;
  const quoted = row.evidence.filter((quote) => !reply.texts?.length || reply.missing.includes(quote));
  const missing = quoted.map((quote) =>
    section(reply.missing?.includes(quote) ? "A quote that is in no text unit" : "Quote", quote));
  const shown = (reply.texts || []).map(({ document: title, text, marks }) => {
    const made = section(row.evidence.length ? `In ${title}` : `Among the nearest texts: ${title}`, "");
    const box = made.querySelector(".text");
    const letters = [...text]; // Python counts characters, not halves of them
    let end = 0;
    for (const [from, to] of marks) {
      box.append(letters.slice(end, from).join(""), element("mark", "", letters.slice(from, to).join("")));
      end = to;
    }
    box.append(letters.slice(end).join(""));
    return made;
  });
  byId("texts").replaceChildren(...missing, ...shown);
}

function go(to) {
  if (mending) return;
  at = Math.min(Math.max(to, 0), Math.max(0, rows.length - 1));
  show();
  window.scrollTo(0, 0);
}

function goToOpen() {
  const open = [...rows.keys()].map((n) => (at + n) % rows.length).find((n) => !rows[n].vetted_by);
  go(open ?? at);
}

/** Add a box for a quote; writing into the last one adds another. */
function addQuote(quote) {
  const box = element("textarea", "cited");
  box.value = quote;
  box.setAttribute("aria-label", `Quote ${byId("quotes").children.length + 1}`);
  box.oninput = () => { if (box.value && box === byId("quotes").lastChild) addQuote(""); };
  byId("quotes").append(box);
}

function mend(on) {
  const row = rows[at];
  if (!row) return;
  const was = mending;
  mending = on;
  byId("mend").hidden = !on;
  byId("item").hidden = on;
  showButtons();
  if (!on && was) byId("change").focus();
  if (!on) return;
  byId("question").value = row.question;
  byId("answer").value = row.answer ?? "";
  byId("quotes").replaceChildren();
  [...row.evidence, ""].forEach(addQuote);
  byId("question").focus();
}

/** Ask for the file as it is now, and stay at the question that is shown where it is still there. */
async function reload() {
  try {
    const answer = await fetch("/rows");
    const reply = await answer.json();
    if (!answer.ok) return warn(reply.error);
    const same = reply.findIndex((row) => row.seen === rows[at]?.seen);
    if (same >= 0 && reply.length === rows.length && reply.every((r, n) => r.seen === rows[n].seen)) return;
    rows = reply;
    at = same >= 0 ? same : Math.min(at, Math.max(0, rows.length - 1));
    show();
  } catch { /* the next decision warns that nothing answers */ }
}

async function decide(decision, texts = {}) {
  const row = rows[at];
  if (busy || !row) return;
  busy = true;
  byId("kept").textContent = "Writing ...";
  let answer = null;
  let reply = { error: "graphrag eval view does not answer; is it still running?" };
  try {
    const body = JSON.stringify({ seen: row.seen, decision, ...texts });
    const headers = { "Content-Type": "application/json" };
    answer = await fetch("/decide", { method: "POST", headers, body });
    reply = await answer.json();
  } catch { /* the warning is below */ }
  busy = false;
  byId("kept").textContent = "";
  if (!answer?.ok) {
    if (answer?.status === 409) {
      await reload();
      reply.error += " The page shows the file as it is now; decide again.";
    }
    return warn(reply.error);
  }
  warn("");
  mend(false);
  if (reply.row) rows[at] = reply.row;
  else rows.splice(at, 1);
  byId("kept").textContent = `The question is ${decision}; that is in the file.`;
  goToOpen();
}

const actions = {
  a: () => decide("accepted"),
  m: () => mend(true),
  r: () => decide("rejected"),
  o: goToOpen,
  ArrowLeft: () => go(at - 1),
  ArrowRight: () => go(at + 1),
};
byId("accept").onclick = actions.a;
byId("change").onclick = actions.m;
byId("reject").onclick = actions.r;
byId("open").onclick = goToOpen;
byId("back").onclick = actions.ArrowLeft;
byId("next").onclick = actions.ArrowRight;
byId("leave").onclick = () => mend(false);
byId("mend").onsubmit = (event) => {
  event.preventDefault();
  const evidence = [...document.querySelectorAll(".cited")].map((box) => box.value.trim()).filter(Boolean);
  decide("mended", { question: byId("question").value, answer: byId("answer").value, evidence });
};
addEventListener("keydown", (event) => {
  // A key that is held down, or is part of a browser's own shortcut, decides nothing.
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
  if (mending) {
    if (event.key === "Escape") mend(false);
    return;
  }
  const action = actions[event.key];
  if (!action || byId("keys").open) return;
  event.preventDefault();
  action();
});
addEventListener("beforeunload", (event) => {
  if (mending || busy) event.preventDefault();
});
addEventListener("visibilitychange", () => {
  if (!document.hidden && !mending && !busy) reload();
});
goToOpen();
