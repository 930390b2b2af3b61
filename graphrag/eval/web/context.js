// Contexts and citations.

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
  const box = make("details", {}, make("summary", { text: `Context: ${n} row${n === 1 ? "" : "s"}` }), rows);
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
