// The page of runs: a filter, and a person's label and note of a run.

{
  const byId = (id) => document.getElementById(id);
  const rows = [...document.querySelectorAll("#runs > tbody > tr")];
  const search = byId("search");

  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (row) => words.every((word) => row.textContent.toLowerCase().includes(word));
    for (const row of rows) row.hidden = !fits(row);
    const n = rows.filter((row) => !row.hidden).length;
    byId("count").textContent = words.length
      ? `${n} of ${rows.length} run${rows.length === 1 ? "" : "s"}` : "";
  };
  if (search) {
    search.oninput = filter;
    filter(); // what the browser filled in again
  }

  const dialog = byId("noting");
  let noted = null; // the row that is written about
  const field = (row, name) => row.querySelector(`[data-field=${name}]`);
  const warn = (text) => {
    byId("kept").textContent = text;
    byId("kept").hidden = !text;
  };
  const show = (row, texts) => {
    for (const name of ["label", "note"]) {
      field(row, name).textContent = texts[name];
      field(row, name).hidden = !texts[name];
    }
  };
  const seen = (row) => ({ label: field(row, "label").textContent, note: field(row, "note").textContent });
  const fill = (texts) => {
    byId("label").value = texts.label;
    byId("note").value = texts.note;
  };

  const keep = async (event) => {
    event.preventDefault();
    const wanted = { label: byId("label").value, note: byId("note").value };
    let answer = null;
    let reply = { error: "graphrag eval view does not answer; is it still running?" };
    try {
      const headers = { "Content-Type": "application/json" };
      const body = JSON.stringify({ wanted, seen: seen(noted) });
      answer = await fetch(`/runs/${encodeURIComponent(noted.dataset.run)}/note`, { method: "POST", headers, body });
      reply = await answer.json();
    } catch {
      answer = null;
    }
    if (answer?.ok) {
      show(noted, reply);
      dialog.close();
    } else if (answer?.status === 409) {
      show(noted, reply);
      warn(`Changed elsewhere meanwhile to: ${[reply.label, reply.note].join(" ").trim() || "nothing"}. Save again to replace it.`);
    } else {
      warn(reply.error);
    }
  };

  for (const button of document.querySelectorAll("button[data-noted]")) {
    button.onclick = () => {
      noted = button.closest("tr");
      warn("");
      fill(seen(noted));
      byId("of").textContent = noted.dataset.run;
      dialog.showModal();
    };
  }
  if (dialog) {
    dialog.querySelector("form").onsubmit = keep;
    byId("cancel").onclick = () => dialog.close();
    dialog.onclose = () => noted?.querySelector("button[data-noted]").focus();
  }
}
