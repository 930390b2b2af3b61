// Think-on-Graph's paths.

const MANY_PRUNED = 30;

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
        to: walk.entities[target], relationship, forward, score, leads: walk.leads[n] };
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

const COLUMN = 180, ROW = 30, PAD = 22;

function svg(tag, values, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(values)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Draw a tree from left to right, a column a depth; an edge that is chosen is told of. */
function treeDrawing(nodes, tell) {
  const children = new Map(nodes.map((node) => [node.id, []]));
  for (const node of nodes) children.get(node.parent)?.push(node);
  const places = new Map();
  let rows = 0, columns = 0;
  const place = (node, column) => {
    columns = Math.max(columns, column);
    const below = children.get(node.id).map((child) => place(child, column + 1));
    const y = below.length ? (below[0] + below.at(-1)) / 2 : PAD + ROW * rows++;
    places.set(node.id, [PAD + column * COLUMN, y]);
    return y;
  };
  place(nodes.find((node) => node.kind === "question"), 0);
  const links = [];
  const drawn = nodes.filter((node) => places.has(node.id)).map((node) => {
    const [x, y] = places.get(node.id);
    const label = node.label.length > 24 ? `${node.label.slice(0, 23)}…` : node.label;
    const parts = [svg("title", {}, node.title || node.label),
      svg("circle", { class: node.kind, cx: x, cy: y, r: 5 }),
      svg("text", { x: x - 5, y: y - 8 }, label)];
    if (!places.has(node.parent)) return svg("g", {}, ...parts);
    const [left, top] = places.get(node.parent);
    const kind = node.leads ? `${node.kind} leads` : node.kind;
    const bend = `M${left} ${top} C${left + 60} ${top} ${x - 60} ${y} ${x} ${y}`;
    links.push(svg("path", { class: kind, d: bend }));
    const group = svg("g", { "data-edge": node.id }, ...parts);
    links.at(-1).onclick = group.onclick = () => tell(node.id);
    return group;
  });
  const [width, height] = [PAD * 2 + columns * COLUMN + 170, PAD * 2 + ROW * rows];
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` }, ...links, ...drawn);
}

/** Return the edges that lead to what the answer cites, as sentences; and what none leads to. */
function leadsBox(walk, edges, tell) {
  const leading = edges.filter((edge) => edge.leads);
  const items = leading.map((edge) => make("li", {},
    make("button", { class: "cite", type: "button", onclick: () => tell(edge.id) },
      own(`${edge.from} ${edge.forward ? "→" : "←"} ${edge.to}`)), " leads to ", own(edge.leads)));
  return make("div", {}, items.length ? make("ul", { class: "leading" }, ...items) : "",
    walk.unreached ? make("p", { class: "unreached", text: walk.unreached }) : "");
}

function pathsBox({ question, answer, detail, sections, trial }, elsewhere) {
  const name = `${answer.method}${trial}`;
  const box = make("section", { class: "paths card", "aria-label": `Paths of ${name}` },
    make("h2", {}, "How ", own(name), " walked the graph"));
  if (detail.texts) {
    box.append(make("p", { class: "texts" }, own(detail.texts)));
    return box;
  }
  if (!detail.walk) {
    box.append(make("p", { class: "note", text: `Only the paths that the model was shown${
      detail.isWhole ? "" : ": this run did not record which edges were scored and pruned"
    }. Scores are of the path so far.` }));
  }
  const { edges } = treeOf(question.question, detail, true);
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
      ` (score ${edge.score}, ${edge.isPath ? "on a path shown" : edge.kind}`,
      edge.leads ? `, leads to ${edge.leads}, which the answer cites)` : ")"),
      make("p", { class: "note", text: source }),
      make("p", { dir: "auto", class: "row", text: (row || other)?.text || "" }));
  };
  const graph = make("div", { class: "graph", tabindex: 0, role: "region",
    "aria-label": `Drawing of the paths of ${name}; the table below says the same` });
  const redraw = (withPruned) => {
    const { nodes } = treeOf(question.question, detail, withPruned);
    graph.replaceChildren(treeDrawing(nodes, tell));
  };
  if (detail.walk) box.append(leadsBox(detail.walk, edges, tell));
  const few = nPruned <= MANY_PRUNED;
  const tick = make("input", { type: "checkbox", onchange: () => redraw(tick.checked) });
  tick.checked = few;
  box.append(make("ul", { class: "key" }, make("li", { text: detail.walk ? "walked on" : "shown" }),
    detail.walk ? make("li", { class: "kept", text: "kept as evidence" }) : null,
    detail.walk ? make("li", { class: "pruned", text: "pruned" }) : null,
    edges.some((edge) => edge.leads)
      ? make("li", { class: "leads", text: "leads to what the answer cites" }) : null));
  if (nPruned) box.append(make("label", { class: "tick" }, tick, ` draw the ${nPruned} pruned edges`));
  box.append(graph, said);
  const rows = edges.map((edge) => [
    make("button", { class: "cite", type: "button", onclick: () => tell(edge.id) },
      own(`${edge.from} ${edge.forward ? "→" : "←"} ${edge.to}`)),
    String(edge.depth), String(edge.score), edge.isPath ? "shown" : edge.kind,
    ...(detail.walk ? [edge.leads] : [])]);
  box.append(make("details", {}, make("summary", { text: `All ${edges.length} edges as a table` }),
    table(`Edges of ${name}`, ["Edge", "Depth", "Score", "Fate",
      ...(detail.walk ? ["Leads to, of what is cited"] : [])], rows)));
  if (detail.walk?.rounds.length) {
    box.append(make("details", {}, make("summary", { text: "Rounds" }),
      table(`Rounds of ${name}`, ["Depth", "Scored by", "Edges", "Kept", "Note"],
        detail.walk.rounds.map((told) => told.map(String)))));
  }
  redraw(few);
  return box;
}
