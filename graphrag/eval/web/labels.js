const data = JSON.parse(document.getElementById("data").textContent);
const items = data.items;
const storageKey = `graphrag-audit/${data.run}/${data.metric}`;
const byId = (id) => document.getElementById(id);
const names = { question: "Question", ground_truth: "Ground truth", response: "Response",
  context: "Context" };
let marks = {}; // item -> {label: "1" | "0" | "", skipped, comment}
let seen = {}; // the marks of the server, as far as this page knows
const changed = new Set(); // items that the server has yet to keep
let sending = null;
let later = 0;
let at = 0;

function warn(text) {
  byId("warning").textContent = text;
  byId("warning").hidden = false;
}

function unwarn() {
  byId("warning").hidden = true;
}

function load() {
  try {
    marks = JSON.parse(localStorage.getItem(storageKey)) || {};
  } catch {
    warn("This browser does not let the page keep your labels: download them before you leave.");
  }
}

function save() {
  if (data.keeper) {
    changed.add(items[at].item);
    send();
    return;
  }
  try {
    localStorage.setItem(storageKey, JSON.stringify(marks));
  } catch {
    warn("Your labels could not be kept in this browser: download them before you leave.");
  }
}

const UNTOUCHED = { label: "", skipped: false, comment: "" };

function send() {
  clearTimeout(later);
  sending ??= sendAll().finally(() => { sending = null; });
  return sending;
}

/** Give the server one change after the other; what it does not take is tried again. */
async function sendAll() {
  while (changed.size) {
    const [item] = changed;
    const now = marks[item] || UNTOUCHED;
    byId("kept").textContent = "Keeping ...";
    let answer = null;
    let reply = {};
    try {
      const body = JSON.stringify({ item, ...now, seen: seen[item] || UNTOUCHED });
      const headers = { "Content-Type": "application/json" };
      // Sent to its end also where the page is left; a browser takes no more than 64 KiB so.
      const keepalive = body.length < 10000;
      answer = await fetch(data.keeper, { method: "POST", headers, body, keepalive });
      reply = await answer.json();
    } catch {
      reply = { error: "graphrag eval view does not answer; is it still running?" };
    }
    if (answer?.ok || answer?.status === 409) {
      seen[item] = reply;
      if (answer.ok) {
        unwarn();
        if (marks[item] === now) changed.delete(item);
      } else {
        changed.delete(item);
        marks[item] = reply;
        const number = items.findIndex((each) => each.item === item) + 1;
        warn(`Response ${number} has been labeled elsewhere meanwhile, and is left as it is there; ` +
          "label it again to change it.");
        show();
      }
      continue;
    }
    byId("kept").textContent = "";
    warn(`Not kept yet: ${reply.error} It is tried again as long as this page is open.`);
    later = setTimeout(send, 2000);
    return;
  }
  byId("kept").textContent = "All labels are kept.";
}

/** Take over what another tab, or a spreadsheet, has put into the file meanwhile. */
async function refresh() {
  if (changed.size) return;
  try {
    const answer = await fetch(data.keeper);
    if (!answer.ok) return;
    const reply = await answer.json();
    if (changed.size) return;
    seen = reply;
    marks = { ...reply };
    show();
  } catch { /* the next label warns that nothing answers */ }
}

function entry(item) {
  return marks[item.item] || UNTOUCHED;
}

function isOpen(item) {
  const { label, skipped } = entry(item);
  return label === "" && !skipped;
}

function element(tag, className, text) {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

function section(name, text) {
  const made = element("section", name, "");
  const box = element("p", "text", text);
  box.tabIndex = 0;
  made.append(element("h2", "", names[name]), box);
  return made;
}

function show() {
  const item = items[at];
  const { label, skipped, comment } = entry(item);
  const shown = data.shown.map((name) => section(name, item[name]));
  const others = Object.keys(names).filter((n) => !data.shown.includes(n) && item[n] !== "");
  if (others.length) {
    const folded = document.createElement("details");
    folded.append(element("summary", "", "What the judge did not see"));
    folded.append(...others.map((name) => section(name, item[name])));
    shown.push(folded);
  }
  byId("item").replaceChildren(...shown);
  byId("comment").value = comment;
  byId("label-1").setAttribute("aria-pressed", String(label === "1"));
  byId("label-0").setAttribute("aria-pressed", String(label === "0"));
  byId("skip").setAttribute("aria-pressed", String(skipped));
  const labelled = items.filter((each) => entry(each).label !== "").length;
  const passed = items.filter((each) => entry(each).skipped).length;
  const left = items.length - labelled - passed;
  switchOff({ back: at === 0, next: at === items.length - 1, open: left === 0 });
  byId("bar").max = items.length;
  byId("bar").value = labelled + passed;
  byId("progress").textContent = `Response ${at + 1} of ${items.length}: ${labelled} labeled, ` +
    `${passed} skipped, ${left} open.` + (left ? "" : data.keeper ? " Done." : " Done: download the CSV.");
}

function go(to) {
  at = Math.min(Math.max(to, 0), items.length - 1);
  show();
  window.scrollTo(0, 0);
}

function goToOpen() {
  const open = items.findIndex(isOpen);
  go(open < 0 ? items.length - 1 : open);
}

function setLabel(label, skipped) {
  marks[items[at].item] = { ...entry(items[at]), label, skipped };
  save();
  const next = items.findIndex((item, n) => n > at && isOpen(item));
  if (next < 0) goToOpen(); else go(next);
}

function cell(text) {
  const harmless = /^'*[=+\-@\t\r\n]/.test(text) ? `'${text}` : text;
  return `"${harmless.replaceAll('"', '""')}"`;
}

function csv() {
  const rows = items.map((item) => ({ ...item, ...entry(item) }));
  const lines = rows.map((row) => data.columns.map((name) => cell(row[name])).join(","));
  return "\ufeff" + [data.columns.map(cell).join(","), ...lines].join("\r\n") + "\r\n";
}

function download() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
  link.download = `audit_${data.metric}_labels.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

const actions = {
  1: () => setLabel("1", false),
  0: () => setLabel("0", false),
  s: () => setLabel("", true),
  o: goToOpen,
  ArrowLeft: () => go(at - 1),
  ArrowRight: () => go(at + 1),
};
byId("label-1").onclick = actions[1];
byId("label-0").onclick = actions[0];
byId("skip").onclick = actions.s;
byId("open").onclick = goToOpen;
byId("back").onclick = actions.ArrowLeft;
byId("next").onclick = actions.ArrowRight;
byId("download").onclick = download;
byId("comment").oninput = (event) => {
  marks[items[at].item] = { ...entry(items[at]), comment: event.target.value };
  if (data.keeper) {
    changed.add(items[at].item);
    clearTimeout(later);
    later = setTimeout(send, 400);
  } else save();
};
addEventListener("keydown", (event) => {
  if (event.target === byId("comment")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  // A key that is held down, or is part of a browser's own shortcut, labels nothing.
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return;
  const action = actions[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});
addEventListener("beforeunload", (event) => {
  if (!changed.size) return;
  event.preventDefault();
  send();
});
addEventListener("visibilitychange", () => {
  if (!data.keeper) return;
  if (document.hidden) send();
  else refresh();
});
addEventListener("storage", (event) => {
  if (!data.keeper && event.key === storageKey) {
    load();
    show();
  }
});
if (data.keeper) {
  seen = data.marks;
  marks = { ...data.marks };
  refresh(); // what the page before sent as it was left may have come after this one was asked for
} else load();
goToOpen();
