// The model calls of one answer, unpacked when they are first asked for.

const FOLDED = 1200; // characters from which a text is folded

function callHead({ attempt }) {
  if (!attempt.model) return "the reply of another run: nothing was sent";
  const tokens = [attempt.prompt_tokens, attempt.output_tokens].map((n) => n.toLocaleString("en"));
  return `${attempt.phase} by ${attempt.model}: ${tokens[0]} tokens in, ${tokens[1]} out, `
    + `${attempt.latency_s.toFixed(2)} s${attempt.error ? `, failed: ${attempt.error}` : ""}`;
}

function textBox(role, text, isFolded = text.length > FOLDED) {
  const words = make("pre", { dir: "auto", tabindex: 0, text });
  if (!isFolded) return [make("h4", { text: role }), words];
  return [make("details", {}, make("summary", {
    text: `${role}, ${text.length.toLocaleString("en")} characters` }), words)];
}

function callItem({ sent, settings, reply, ...about }, lines, question) {
  const text = (numbers) => (numbers === null ? "None came." : numbers
    ? numbers.map((n) => lines[n]).join("")
    : `Left out to keep this page small; graphrag eval show --question ${question.id} --calls prints it.`);
  const parts = sent.flatMap(([role, numbers]) => textBox(role, text(numbers)));
  if (settings.length) parts.push(...textBox("settings", text(settings), true));
  return make("li", {}, make("p", {}, own(callHead(about))), ...parts, ...textBox("reply", text(reply)));
}

function callList({ work, exchanges }, lines, question) {
  const who = work === "search" ? "the search" : work === "judge" ? "the judge" : `the judge (${work})`;
  return [make("h3", { text: `Calls of ${who}: ${exchanges.length}` }), exchanges.length
    ? make("ol", {}, ...exchanges.map((each) => callItem(each, lines, question)))
    : make("p", { class: "note", text: "None were seen: what it asked, if anything, went past graphrag's models." })];
}

function callsBox(name, question, position, n) {
  const inside = make("div", {});
  const box = make("details", {}, make("summary", {}, own(name)), inside);
  box.ontoggle = async () => {
    if (inside.firstChild || !box.open) return;
    const { lines, answers } = await parse("calls");
    const calls = answers[position][n];
    inside.replaceChildren(...calls.flatMap((each) => callList(each, lines, question)),
      calls.length ? "" : make("p", { class: "note", text: "They were not kept: output.keep_calls keeps them." }));
  };
  return box;
}
