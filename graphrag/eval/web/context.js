// Contexts, citations, and the expected quotes in them.

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

/** Return an answer's text with each cited id as a button that shows its row, and with the
 *  sentences marked that a claim in them makes flawed. */
function cited(text, sections, go, name, claims) {
  const box = make("div", { class: "text", dir: "auto", tabindex: 0, role: "region",
    "aria-label": `Answer of ${name}` });
  let at = 0;
  for (const [sentence, ruling] of worstRulings(claims)) {
    const start = text.indexOf(sentence, at);
    if (start < 0) continue;
    cite(box, text.slice(at, start), sections, go);
    at = start + sentence.length;
    const flaw = RULINGS[ruling];
    const part = flaw ? make("mark", { class: ruling, title: flaw }) : box;
    cite(part, sentence, sections, go);
    if (flaw) box.append(part);
  }
  cite(box, text.slice(at), sections, go);
  return box;
}

const RULINGS = { contradicted: "contradicted by what was shown",
  not_found: "not found in what was shown" };

/** Return sentence -> its worst ruling, in the order of the answer. */
function worstRulings(claims) {
  const worst = new Map();
  const rank = (ruling) => ["contradicted", "not_found"].indexOf(ruling) >>> 0;
  for (const { sentence, ruling } of claims) {
    if (!worst.has(sentence) || rank(ruling) < rank(worst.get(sentence))) worst.set(sentence, ruling);
  }
  return worst;
}

/** Return the claims of an answer with their rulings, each with buttons to the rows that decide. */
function claimsBox({ claims, misplaced }, sections, go) {
  const rowButton = (text) => {
    const [, table, id] = /^(.*) \((.*)\)$/.exec(text) || ["", text, ""];
    const hit = rowOf(sections, table, id);
    return make("button", { class: "cite", type: "button", text, onclick: () => hit && go(hit) });
  };
  const n = claims.filter(({ ruling }) => ruling === "supported").length;
  const items = claims.map(({ text, ruling, texts }) => make("li", {},
    make("b", { class: ruling === "supported" ? "good" : "bad",
      text: `${ruling ? ruling.replace("_", " ") : "no ruling"} ` }),
    own(text), " ", ...texts.map(rowButton)));
  items.push(...misplaced.map(({ sentence, citation }) => make("li", {},
    make("b", { class: "bad", text: "misplaced citation " }), rowButton(citation), " ",
    own(sentence))));
  return make("details", { class: "claims" }, make("summary", { text: claims.length
    ? `Claims: ${n} of ${claims.length} supported` : "No claims" }), make("ul", {}, ...items));
}

function cite(box, text, sections, go) {
  let at = 0;
  for (const match of text.matchAll(/\[Data:[^\]]*\]/g)) {
    box.append(text.slice(at, match.index));
    let section = "";
    for (const part of match[0].split(/([\w-]+ *(?=\())|(\b[\w-]+\b)/)) {
      if (!part) continue;
      if (/^[\w-]+ *$/.test(part) && !/^\d/.test(part) && part !== "Data" && part !== "more") {
        section = part;
        box.append(part);
      } else if (/^[\w-]+$/.test(part) && section) {
        const hit = rowOf(sections, section, part);
        box.append(make("button", { class: "cite", type: "button", text: part,
          "data-lost": hit ? undefined : "yes",
          title: hit ? `${section.trim()} ${part}` : "not in the context that the model was shown",
          onclick: () => hit && go(hit) }));
      } else box.append(part);
    }
    at = match.index + match[0].length;
  }
  box.append(text.slice(at));
}

/** Return a pattern of a quote's words, whatever is between them; null without words. */
function patternOf(quote) {
  const parts = quote.split(/…|\.{2,}|[\r\n]+|\[[^\]]{0,12}\]/)
    .map((part) => part.match(/[\p{L}\p{N}]+/gu) || [])
    .filter((words, _, all) => all.length === 1 || (words.length > 2 && words.join("").length > 7));
  const sources = parts.filter((words) => words.length).map((words) => words.join("[^\\p{L}\\p{N}]+"));
  return sources.length ? new RegExp(`(?<![\\p{L}\\p{N}])(?:${sources.join("|")})(?![\\p{L}\\p{N}])`, "giu")
    : null;
}

/** Return a row's text with the quotes in it marked. */
function marked(text, patterns) {
  const spans = patterns.flatMap((pattern) =>
    [...text.matchAll(pattern)].map((match) => [match.index, match.index + match[0].length]));
  spans.sort((a, b) => a[0] - b[0]);
  const pieces = [];
  let at = 0;
  for (const [from, to] of spans) {
    if (to <= at) continue;
    pieces.push(text.slice(at, from), make("mark", { text: text.slice(Math.max(from, at), to) }));
    at = to;
  }
  return [...pieces, text.slice(at)];
}

function contextBox(sections, patterns, name) {
  const rows = make("div", { class: "rows", tabindex: 0, role: "region", "aria-label": `What ${name} was shown` });
  const n = sections.reduce((sum, section) => sum + section.rows.length, 0);
  const box = make("details", {}, make("summary", {
    text: `What the model was shown: ${n} row${n === 1 ? "" : "s"}` }), rows);
  const fillOnce = () => {
    if (rows.firstChild) return;
    for (const section of sections) {
      rows.append(make("h3", {}, own(section.name)));
      for (const each of section.rows) {
        each.element = make("div", { class: "row", dir: "auto", tabindex: -1 },
          ...marked(each.text, patterns));
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
    (hit.element.querySelector("mark") || hit.element).scrollIntoView({ block: "center" });
  };
  return { box, go };
}
