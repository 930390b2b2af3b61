// The script of a run's page is these files in one, within a function of their own: report.js, list.js,
// context.js, walk.js, calls.js, question.js.

const byId = (id) => document.getElementById(id);
const packed = {};
let index = null;

// ---- the data in the file

function unpack(name) {
  packed[name] ??= (async () => {
    const bytes = Uint8Array.from(atob(byId(`packed-${name}`).textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  })();
  return packed[name];
}

const parsed = {};
/** Return {lines, answers} of the details or the calls, which name lines by their numbers. */
const parse = (name) => (parsed[name] ??= unpack(name).then(JSON.parse));

// ---- elements: text is only ever set as text

function make(tag, values = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(values)) {
    if (name === "text") made.textContent = value;
    else if (name.startsWith("on")) made[name] = value;
    else if (value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

const own = (text) => make("bdi", { dir: "auto", text });

function table(caption, columns, rows, of = "") {
  const head = make("tr", {}, ...columns.map((text) => make("th", { scope: "col", text })));
  const body = rows.map((row) => make("tr", {}, ...row.map((cell, n) =>
    make(n ? "td" : "th", n ? {} : { scope: "row" }, cell instanceof Node ? cell : own(cell)))));
  return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": of ? `${caption} of ${of}` : caption },
    make("table", {}, make("caption", { text: caption }), make("thead", {}, head),
      make("tbody", {}, ...body)));
}
