const EVERY_MS = 2000;
const live = document.getElementById("live");
const pause = document.getElementById("pause");
const trouble = document.getElementById("trouble");

const isOver = () => document.getElementById("state")?.dataset.status === "finished";

/** Put in what changed, part by part, so that what a person reads or has focused stays. */
function put(text) {
  const made = new DOMParser().parseFromString(text, "text/html").body;
  const parts = [...made.children].filter((part) => part.id);
  for (const part of parts) {
    const before = document.getElementById(part.id);
    if (before?.outerHTML === part.outerHTML) continue;
    const focused = before?.contains(document.activeElement)
      ? document.activeElement.getAttribute("aria-label") : null;
    if (before) before.replaceWith(part);
    else live.append(part);
    if (focused) part.querySelector(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
  }
}

async function refresh() {
  if (document.hidden || pause.getAttribute("aria-pressed") === "true") return;
  let problem = "";
  try {
    const answer = await fetch(live.dataset.now);
    const text = await answer.text();
    if (answer.ok) put(text);
    else problem = new DOMParser().parseFromString(text, "text/html").querySelector("#error")
      ?.textContent || text;
  } catch {
    problem = "graphrag eval view does not answer any more; what is shown is as it was.";
  }
  trouble.textContent = problem;
  trouble.hidden = !problem;
}

async function watch() {
  let wait = EVERY_MS;
  while (!isOver()) {
    await new Promise((resolve) => setTimeout(resolve, wait));
    const begun = performance.now();
    await refresh();
    // A run of many thousand searches takes seconds to read: the machine is not kept busy by it.
    wait = Math.max(EVERY_MS, 4 * (performance.now() - begun));
  }
  // A finished run has another page, with everything.
  if (live.dataset.hasPage) location.reload();
  pause.hidden = true;
}

if (pause) {
  pause.onclick = () => {
    const paused = pause.getAttribute("aria-pressed") !== "true";
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Go on" : "Pause";
  };
  watch();
}
