// The page of runs: a filter, and what a person says of a run.

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
  const field = (row, name) => row.querySelector(`[data-said=${name}]`);
  const told = (text) => {
    byId("kept").textContent = text;
    byId("kept").hidden = !text;
  };
  const show = (row, said) => {
    for (const name of ["label", "note"]) {
      field(row, name).textContent = said[name];
      field(row, name).hidden = !said[name];
    }
  };
  const seen = (row) => ({ label: field(row, "label").textContent, note: field(row, "note").textContent });
  const fill = (said) => {
    byId("label").value = said.label;
    byId("note").value = said.note;
  };

  const keep = async (event) => {
    event.preventDefault();
    const wanted = { label: byId("label").value, note: byId("note").value };
    let answer = null;
    let said = { error: "graphrag eval view does not answer; is it still running?" };
    try {
      const headers = { "Content-Type": "application/json" };
      const body = JSON.stringify({ wanted, seen: seen(noted) });
      answer = await fetch(`/runs/${encodeURIComponent(noted.dataset.run)}/note`, { method: "POST", headers, body });
      said = await answer.json();
    } catch {
      answer = null;
    }
    if (answer?.ok) {
      show(noted, said);
      dialog.close();
    } else if (answer?.status === 409) {
      show(noted, said);
      told(`Changed elsewhere meanwhile to: ${[said.label, said.note].join(" ").trim() || "nothing"}. Save again to replace it.`);
    } else {
      told(said.error);
    }
  };

  for (const button of document.querySelectorAll("button[data-noted]")) {
    button.onclick = () => {
      noted = button.closest("tr");
      told("");
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
